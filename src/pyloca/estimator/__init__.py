"""`LOCA`, the scikit-learn estimator: bursts in, standardized coordinates out."""

from pyloca.estimator._candidates import MORE, ComponentFits, compare_components, fit_quietly
from pyloca.estimator._embed import rows_as_fitted, transform_unnamed
from pyloca.estimator._loca import LOCA
from pyloca.estimator._looks import feature_label
from pyloca.estimator._parameters import check_parameters
from pyloca.estimator._prepare import Prepared, prepare, refuse_unfit, told_noise
from pyloca.estimator._reading import Data, Reading, in_own_units, read_like
from pyloca.estimator._rescale import burst_rows
from pyloca.estimator._sound import training_embedding

__all__ = [
    "LOCA",
    "MORE",
    "ComponentFits",
    "Data",
    "Prepared",
    "Reading",
    "burst_rows",
    "check_parameters",
    "compare_components",
    "feature_label",
    "fit_quietly",
    "in_own_units",
    "prepare",
    "read_like",
    "refuse_unfit",
    "rows_as_fitted",
    "told_noise",
    "training_embedding",
    "transform_unnamed",
]
