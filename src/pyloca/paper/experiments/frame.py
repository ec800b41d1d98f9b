"""Section 6.2: the encoder at points that are not among the bursts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pyloca import datasets
from pyloca.datasets import Dataset
from pyloca.estimator import LOCA
from pyloca.metrics import stress
from pyloca.paper.experiments._experiment import QUICK_EPOCHS, Experiment, Merit, Result, Settings, fit_loca

__all__ = ["EXPERIMENT", "FrameSettings", "fit_frame", "run"]


@dataclass(frozen=True, kw_only=True)
class FrameSettings(Settings):
    """Sizes of the data."""

    n_bursts: int = 2000
    n_points: int = 200
    burst_std: float = 0.01
    n_test: int = 20_000


FULL = FrameSettings()
QUICK = FrameSettings(n_bursts=300, n_points=50, n_test=2000, hidden_layers=(20, 20), paper_epochs=QUICK_EPOCHS)
BARS = {"frame": 2e-5, "interpolation": 2e-5, "extrapolation": 1.5e-4}
PAPER = 1e-4  # "about", in all three regions


@lru_cache(maxsize=1)  # section 6.3 uses the same model
def fit_frame(seed: int, solver: str, settings: FrameSettings) -> tuple[Dataset, LOCA, float]:
    """Fit the model of section 6.2; return data, model and seconds."""
    data = datasets.frame(settings.n_bursts, settings.n_points, settings.burst_std, settings.n_test, random_state=seed)
    return data, *fit_loca(data.bursts, data.n_components, data.burst_std, settings, solver, seed)


def run(seed: int, solver: str = "fast", quick: bool = False) -> Result:
    """Compute the stress at new points of the frame, of its hole and of the margin around it."""
    settings = QUICK if quick else FULL
    data, model, seconds = fit_frame(seed, solver, settings)
    figures = {
        "frame" if part == "frame" else f"frame, {part}": Merit(
            stress(test.X, model.transform(test.Y)), bar=BARS[part], paper=PAPER
        )
        for part, test in data.tests.items()
    }
    scene = {"data": data, "model": model}
    return Result("frame", seed, solver, quick, settings, figures, seconds, model.diagnostics_.warnings, scene)


EXPERIMENT = Experiment(
    "frame",
    "6.2",
    "Out of sample",
    "Bursts come from a frame around a hole. The encoder is then asked for new points of the frame, of the hole "
    "(interpolation) and of a margin outside (extrapolation).",
    FULL,
    QUICK,
    run,
)
