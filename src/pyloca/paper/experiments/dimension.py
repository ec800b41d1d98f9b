"""Figure 11: the number of coordinates that the latent manifold needs."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np

from pyloca import datasets
from pyloca.bursts import Bursts, from_function
from pyloca.errors import TrustWarning
from pyloca.paper.experiments._experiment import QUICK_EPOCHS, QUICK_LAYERS, Experiment, Merit, Result, Settings
from pyloca.paper.experiments._measurements import swiss_roll
from pyloca.selection import select_n_components

__all__ = ["EXPERIMENT", "DimensionSettings", "run"]


@dataclass(frozen=True, kw_only=True)
class DimensionSettings(Settings):
    """Sizes of the three data sets, and the candidates for d; there is no isometry for d < k = 2."""

    n_bursts: int = 600
    n_points: int = 100
    sphere_points: int = 400
    burst_std: float = 0.01
    curved: tuple[int, ...] = (2, 3, 4, 5)  # on the sphere
    flat: tuple[int, ...] = (2, 3, 4)  # on mushroom and Swiss roll
    paper_layers: tuple[int, ...] = (100, 100)
    paper_decoder: str = "leaky_relu"


FULL = DimensionSettings()
QUICK = DimensionSettings(
    n_bursts=200,
    n_points=60,
    sphere_points=60,
    curved=(2, 3, 4),
    flat=(2, 3),
    hidden_layers=QUICK_LAYERS,
    paper_epochs=QUICK_EPOCHS,
)
NEEDED = {"sphere": 3, "mushroom": 2, "Swiss roll": 2}


def run(seed: int, solver: str = "fast", quick: bool = False) -> Result:
    """Select the dimension of a sphere, which is 3, and of two flat sheets, which is 2."""
    settings = QUICK if quick else FULL
    selections = {}
    start = time.perf_counter()
    for name, bursts in _bursts(settings, seed).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrustWarning)  # a sphere in the plane is folded: that is the point
            selections[name] = select_n_components(
                bursts,
                burst_std=settings.burst_std,
                candidates=settings.curved if name == "sphere" else settings.flat,
                random_state=seed,
                **settings.parameters(solver),
            )
    seconds = time.perf_counter() - start
    figures = {
        f"dimension, {name}": Merit(
            float(found.n_components), bar=NEEDED[name], paper=3 if name == "sphere" else None, exact=True
        )
        for name, found in selections.items()
    }
    return Result("dimension", seed, solver, quick, settings, figures, seconds, scene={"selections": selections})


def _bursts(settings: DimensionSettings, seed: int) -> dict[str, Bursts]:
    n, m, std = settings.n_bursts, settings.n_points, settings.burst_std
    X = np.random.RandomState(seed).uniform(size=(n, 2))
    return {
        "sphere": datasets.sphere(settings.sphere_points, std, random_state=seed).bursts,
        "mushroom": datasets.mushroom(n, m, std, random_state=seed).bursts,
        "Swiss roll": from_function(swiss_roll, X, std, m, random_state=seed).without_perturbations(),
    }


EXPERIMENT = Experiment(
    "dimension",
    "Fig. 11",
    "Choice of the dimension",
    "Held-out bursts are white up to sampling noise as soon as there are enough coordinates: 3 for the sphere, 2 for a "
    "flat sheet, however it is rolled up. The curve begins at d = k = 2: fewer coordinates than a burst has directions "
    "cannot be isometric, and the likelihood that is fitted here is infinite.",
    FULL,
    QUICK,
    run,
)
