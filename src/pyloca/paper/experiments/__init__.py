"""The paper's experiments, one module each, with frozen settings and ``run(seed, solver, quick)``.

Examples
--------
>>> from pyloca.paper.experiments import EXPERIMENTS
>>> list(EXPERIMENTS)
['mushroom', 'frame', 'decoder', 'sphere', 'dimension', 'flatten', 'wifi', 'invariance']
"""

from pyloca.paper.experiments import decoder, dimension, flatten, frame, invariance, mushroom, sphere, wifi
from pyloca.paper.experiments._experiment import Experiment, Merit, Result

__all__ = ["EXPERIMENTS", "Experiment", "Merit", "Result"]

# In the order of the paper; `decoder` comes after `frame`, whose model it uses.
EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (mushroom, frame, decoder, sphere, dimension, flatten, wifi, invariance)
}
