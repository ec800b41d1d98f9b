"""One latent square through three instruments: the coordinates do not depend on the instrument."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pyloca import datasets
from pyloca.bursts import from_function
from pyloca.metrics import calibrate, stress
from pyloca.paper.experiments._experiment import (
    QUICK_EPOCHS,
    QUICK_LAYERS,
    Experiment,
    Merit,
    Result,
    Settings,
    fit_loca,
)
from pyloca.paper.experiments._measurements import smooth_map, swiss_roll

__all__ = ["EXPERIMENT", "InvarianceSettings", "run"]


@dataclass(frozen=True, kw_only=True)
class InvarianceSettings(Settings):
    """Sizes of the data, and the number of channels of the third instrument."""

    n_bursts: int = 2000
    n_points: int = 200
    burst_std: float = 0.01
    n_channels: int = 8


FULL = InvarianceSettings()
QUICK = InvarianceSettings(n_bursts=250, n_points=50, hidden_layers=QUICK_LAYERS, paper_epochs=QUICK_EPOCHS)


def run(seed: int, solver: str = "fast", quick: bool = False) -> Result:
    """Compare three embeddings; the worst pair's RMS distance after the best rigid motion, and its stress."""
    settings = QUICK if quick else FULL
    random = np.random.RandomState(seed)
    X = random.uniform(size=(settings.n_bursts, 2))
    instruments = {
        "mushroom, R²": datasets.mushroom(1, random_state=0).measure,
        "Swiss roll, R³": swiss_roll,
        f"random waves, R{_superscript(settings.n_channels)}": smooth_map(2, settings.n_channels, random),
    }
    embeddings, doubts, seconds = {}, [], 0.0
    for name, f in instruments.items():
        # The same seed draws the same perturbations: the instruments observe one experiment.
        bursts = from_function(f, X, settings.burst_std, settings.n_points, random_state=seed).without_perturbations()
        model, took = fit_loca(bursts, 2, settings.burst_std, settings, solver, seed)
        embeddings[name] = model.transform(f(X))
        doubts += [f"{name}: {doubt}" for doubt in model.diagnostics_.warnings]
        seconds += took
    pairs = list(combinations(embeddings.values(), 2))
    rms = [float(np.sqrt(np.square(calibrate(b, a).apply(a) - b).sum(axis=1).mean())) for a, b in pairs]
    figures = {
        "invariance, RMS": Merit(max(rms), bar=3e-3),
        "invariance, stress": Merit(max(stress(a, b) for a, b in pairs), bar=1e-5),
    }
    measured = {name: f(X) for name, f in instruments.items()}
    scene = {"X": X, "embeddings": embeddings, "measured": measured}
    return Result("invariance", seed, solver, quick, settings, figures, seconds, tuple(doubts), scene)


def _superscript(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


EXPERIMENT = Experiment(
    "invariance",
    "abstract",
    "Three instruments, one picture",
    "One latent square is observed by three instruments with 2, 3 and 8 channels. Each is fitted separately; the three "
    "embeddings differ by a rigid motion, up to O(σ²) of the bursts and sampling noise.",
    FULL,
    QUICK,
    run,
)
