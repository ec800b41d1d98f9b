"""Section 6.1: isometry of the embedding to the latent square, compared with diffusion maps."""

from __future__ import annotations

from dataclasses import dataclass

from pyloca import datasets
from pyloca.datasets import Dataset
from pyloca.metrics import stress
from pyloca.paper.experiments._experiment import (
    QUICK_EPOCHS,
    QUICK_LAYERS,
    Experiment,
    Merit,
    Result,
    Settings,
    fit_loca,
)
from pyloca.paper.experiments._rivals import FACTORS, fit_rivals

__all__ = ["EXPERIMENT", "MushroomSettings", "make_data", "run"]


@dataclass(frozen=True, kw_only=True)
class MushroomSettings(Settings):
    """Sizes of the data, and the bandwidth factors tried for the rivals."""

    n_bursts: int = 2000
    n_points: int = 200
    burst_std: float = 0.01
    rival_factors: tuple[float, ...] = FACTORS


FULL = MushroomSettings()
QUICK = MushroomSettings(
    n_bursts=300, n_points=50, rival_factors=(0.3, 2.0), hidden_layers=QUICK_LAYERS, paper_epochs=QUICK_EPOCHS
)
PAPER_RIVALS = {"A-DM": 2e-3, "DM": 3e-2}


def make_data(seed: int, settings: MushroomSettings) -> Dataset:
    """Make the square and its measurements."""
    return datasets.mushroom(settings.n_bursts, settings.n_points, settings.burst_std, random_state=seed)


def run(seed: int, solver: str = "fast", quick: bool = False) -> Result:
    """Compute the stress of LOCA, unscaled, and of its rivals, each scaled by its best factor."""
    settings = QUICK if quick else FULL
    data = make_data(seed, settings)
    model, seconds = fit_loca(data.bursts, data.n_components, data.burst_std, settings, solver, seed)
    rivals = fit_rivals(data, settings.rival_factors)
    figures = {"mushroom": Merit(stress(data.X, model.transform(data.Y)), bar=3e-6, paper=1.5e-5)}
    for name, best in rivals.items():
        figures[f"mushroom, {name}"] = Merit(best.stress, paper=PAPER_RIVALS[name])
    scene = {"data": data, "model": model, "rivals": rivals}
    doubts = model.diagnostics_.warnings
    return Result("mushroom", seed, solver, quick, settings, figures, seconds, doubts, scene)


EXPERIMENT = Experiment(
    "mushroom",
    "6.1",
    "Isometry",
    "A square is measured through f(x) = (x₀ + x₁³, −x₀ + x₁³). LOCA sees only bursts of measurements; distances in "
    "its embedding equal those in the square, with no factor fitted. Diffusion maps (DM) and anisotropic diffusion "
    "maps (A-DM) have the bandwidth and scale that fit the truth best.",
    FULL,
    QUICK,
    run,
)
