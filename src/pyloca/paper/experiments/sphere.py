"""Section 6.4: a curved latent manifold, embedded in three dimensions from two."""

from __future__ import annotations

from dataclasses import dataclass

from pyloca import datasets
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

__all__ = ["EXPERIMENT", "SphereSettings", "run"]


@dataclass(frozen=True, kw_only=True)
class SphereSettings(Settings):
    """Sizes of the data, and the bandwidth factors tried for the rivals."""

    n_points: int = 400
    burst_std: float = 0.01
    rival_factors: tuple[float, ...] = FACTORS
    paper_layers: tuple[int, ...] = (100, 100)
    paper_decoder: str = "leaky_relu"


FULL = SphereSettings()
QUICK = SphereSettings(n_points=60, rival_factors=(0.3, 20.0), hidden_layers=QUICK_LAYERS, paper_epochs=QUICK_EPOCHS)
PAPER_RIVALS = {"A-DM": 6e-3, "DM": 0.18}


def run(seed: int, solver: str = "fast", quick: bool = False) -> Result:
    """Compute the stress on the strip and on the unseen cap, and of the rivals, scaled, on the strip."""
    settings = QUICK if quick else FULL
    data = datasets.sphere(settings.n_points, settings.burst_std, random_state=seed)
    model, seconds = fit_loca(data.bursts, data.n_components, data.burst_std, settings, solver, seed)
    rivals = fit_rivals(data, settings.rival_factors)
    cap = data.tests["cap"]
    figures = {
        "sphere": Merit(stress(data.X, model.transform(data.Y)), bar=2e-4, paper=1e-3),
        "sphere, unseen cap": Merit(stress(cap.X, model.transform(cap.Y)), bar=3e-5, paper=1e-4),
    }
    for name, best in rivals.items():
        figures[f"sphere, {name}"] = Merit(best.stress, paper=PAPER_RIVALS[name])
    scene = {"data": data, "model": model, "rivals": rivals}
    doubts = model.diagnostics_.warnings
    return Result("sphere", seed, solver, quick, settings, figures, seconds, doubts, scene)


EXPERIMENT = Experiment(
    "sphere",
    "6.4",
    "A curved manifold",
    "A strip of the sphere is measured by the stereographic projection, which has two coordinates. LOCA recovers the "
    "sphere in three, and places the cap at the pole, where there were no bursts, correctly.",
    FULL,
    QUICK,
    run,
)
