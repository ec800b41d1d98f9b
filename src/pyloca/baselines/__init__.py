"""The methods that the paper compares LOCA with, as scikit-learn estimators, and `compare`."""

from pyloca.baselines._anisotropic import AnisotropicDiffusionMaps
from pyloca.baselines._autoencoder import Autoencoder
from pyloca.baselines._burst_alignment import BurstAlignment
from pyloca.baselines._compare import Comparison, Score, compare
from pyloca.baselines._diffusion_maps import DiffusionMaps
from pyloca.baselines._isomap import IntrinsicIsomap
from pyloca.baselines._relaxation import RiemannianRelaxation

__all__ = [
    "AnisotropicDiffusionMaps",
    "Autoencoder",
    "BurstAlignment",
    "Comparison",
    "DiffusionMaps",
    "IntrinsicIsomap",
    "RiemannianRelaxation",
    "Score",
    "compare",
]
