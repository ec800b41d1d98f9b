"""`LOCA`, the scikit-learn estimator: bursts in, standardized coordinates out."""

from pyloca.estimator._candidates import ComponentFits, compare_components
from pyloca.estimator._loca import LOCA
from pyloca.estimator._looks import feature_label
from pyloca.estimator._parameters import check_parameters
from pyloca.estimator._reading import Data, Reading, read_like
from pyloca.estimator._sound import training_embedding

__all__ = [
    "LOCA",
    "ComponentFits",
    "Data",
    "Reading",
    "check_parameters",
    "compare_components",
    "feature_label",
    "read_like",
    "training_embedding",
]
