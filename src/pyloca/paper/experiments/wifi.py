"""Section 7.2: a floor plan from the strength of Wi-Fi signals."""

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

__all__ = ["EXPERIMENT", "WifiSettings", "make_data", "run"]


@dataclass(frozen=True, kw_only=True)
class WifiSettings(Settings):
    """Numbers of places, receivers and transmitters, and the radius of the ring in pixels."""

    n_bursts: int = 4000
    n_receivers: int = 6
    radius: float = 0.5
    n_transmitters: int = 17
    paper_layers: tuple[int, ...] = (200, 200)
    paper_decoder: str = "leaky_relu"


FULL = WifiSettings()
QUICK = WifiSettings(n_bursts=400, hidden_layers=QUICK_LAYERS, paper_epochs=QUICK_EPOCHS)


def make_data(seed: int, settings: WifiSettings) -> Dataset:
    """Make the places on the floor and the signals measured there."""
    return datasets.wifi(
        settings.n_bursts, settings.n_receivers, settings.radius, settings.n_transmitters, random_state=seed
    )


def run(seed: int, solver: str = "fast", quick: bool = False) -> Result:
    """Compute the stress in square pixels, on a floor of 600 × 1000."""
    settings = QUICK if quick else FULL
    data = make_data(seed, settings)
    model, seconds = fit_loca(data.bursts, data.n_components, data.burst_std, settings, solver, seed)
    figures = {"wifi": Merit(stress(data.X, model.transform(data.Y)), bar=1e-3, unit="px²")}
    scene = {"data": data, "model": model}
    return Result("wifi", seed, solver, quick, settings, figures, seconds, model.diagnostics_.warnings, scene)


EXPERIMENT = Experiment(
    "wifi",
    "7.2",
    "Wi-Fi localization",
    "A ring of six receivers with a radius of half a pixel is moved to many places of a floor of 600 × 1000 pixels "
    "and receives 17 transmitters. LOCA recovers the floor plan from the signal strengths alone.",
    FULL,
    QUICK,
    run,
)
