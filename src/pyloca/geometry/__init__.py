"""Local geometry of bursts (mean, tangents, count, noise) and the graph of neighbouring bursts."""

from pyloca.geometry._chosen import chosen_statistics
from pyloca.geometry._columns import ColumnLook, look_at_columns
from pyloca.geometry._graph import (
    BurstGraph,
    JointMahalanobis,
    connected_graph,
    mahalanobis_graph,
    refuse_pieces,
    usual_neighbors,
)
from pyloca.geometry._means import burst_means
from pyloca.geometry._noise import Noise, as_noise
from pyloca.geometry._noise_estimate import given_noise
from pyloca.geometry._odd import find_odd
from pyloca.geometry._reduction import Reduction, find_reduction
from pyloca.geometry._regression import Regression, regress
from pyloca.geometry._sample import nearest_rows, sample_rows
from pyloca.geometry._scale import feature_scale
from pyloca.geometry._scatter_rule import Scatter, variances_within
from pyloca.geometry._sheets import SheetDistance, nearest
from pyloca.geometry._spectra import (
    BurstSpectra,
    burst_std_from_spectra,
    intrinsic_dim_from_spectra,
    noise_from_spectra,
)
from pyloca.geometry._spikes import SpikeRule, find_spikes, set_aside, without_spikes
from pyloca.geometry._statistics import BurstStatistics
from pyloca.geometry._statistics_file import (
    holds_statistics,
    read_statistics,
    save_statistics,
    statistics_burst_id,
    write_statistics,
)
from pyloca.geometry._strays import find_strays

__all__ = [
    "BurstGraph",
    "BurstSpectra",
    "BurstStatistics",
    "ColumnLook",
    "JointMahalanobis",
    "Noise",
    "Reduction",
    "Regression",
    "Scatter",
    "SheetDistance",
    "SpikeRule",
    "as_noise",
    "burst_means",
    "burst_std_from_spectra",
    "chosen_statistics",
    "connected_graph",
    "feature_scale",
    "find_odd",
    "find_reduction",
    "find_spikes",
    "find_strays",
    "given_noise",
    "holds_statistics",
    "intrinsic_dim_from_spectra",
    "look_at_columns",
    "mahalanobis_graph",
    "nearest",
    "nearest_rows",
    "noise_from_spectra",
    "read_statistics",
    "refuse_pieces",
    "regress",
    "sample_rows",
    "save_statistics",
    "set_aside",
    "statistics_burst_id",
    "usual_neighbors",
    "variances_within",
    "without_spikes",
    "write_statistics",
]
