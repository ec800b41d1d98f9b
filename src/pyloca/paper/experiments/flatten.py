"""Section 7.1: flattening a bent sheet from a photograph of its printed spots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from pyloca import datasets
from pyloca.bursts import from_image
from pyloca.metrics import calibrate
from pyloca.paper.experiments._experiment import (
    QUICK_EPOCHS,
    QUICK_LAYERS,
    Experiment,
    Merit,
    Result,
    Settings,
    fit_loca,
)

__all__ = ["EXPERIMENT", "FlattenSettings", "run"]


@dataclass(frozen=True, kw_only=True)
class FlattenSettings(Settings):
    """Size of the photograph, threshold for ink, and number of spots used (None: all)."""

    size: int = 1000
    threshold: float = 0.45
    n_spots: int | None = None
    paper_layers: tuple[int, ...] = (200, 200)
    paper_decoder: str = "leaky_relu"


FULL = FlattenSettings()
QUICK = FlattenSettings(n_spots=400, hidden_layers=QUICK_LAYERS, paper_epochs=QUICK_EPOCHS)


def run(seed: int, solver: str = "fast", quick: bool = False) -> Result:
    """Compute the RMS error of the grid after a scaled rigid calibration on the four corners, in sides of the sheet."""
    settings = QUICK if quick else FULL
    photo = datasets.bent_sheet(settings.size, random_state=seed)
    bursts = from_image(photo.image, settings.threshold)
    centres = np.array([burst.mean(axis=0) for burst in bursts])
    node = NearestNeighbors(n_neighbors=1).fit(photo.Y).kneighbors(centres, return_distance=False)[:, 0]
    lost = len(photo.X) - len(np.unique(node))
    corner = np.array([np.linalg.norm(centres - photo.Y[i], axis=1).argmin() for i in photo.corners])
    if settings.n_spots is not None:
        rest = np.setdiff1d(np.arange(len(bursts)), corner)
        some = np.random.RandomState(seed).choice(rest, settings.n_spots - len(corner), replace=False)
        kept = np.concatenate([corner, some])
        bursts, centres, node, corner = bursts[kept], centres[kept], node[kept], np.arange(len(corner))
    model, seconds = fit_loca(bursts, 2, None, settings, solver, seed)  # σ of a spot is unknown, so it is estimated
    truth = photo.X[node]
    flat = calibrate(truth[corner], model.embedding_[corner], scale=True).apply(model.embedding_)
    error = float(np.sqrt(np.square(flat - truth).sum(axis=1).mean()))
    figures = {"flatten": Merit(error, bar=0.02), "flatten, spots lost": Merit(float(lost))}
    scene = {"photo": photo, "model": model, "centres": centres, "truth": truth, "flat": flat}
    return Result("flatten", seed, solver, quick, settings, figures, seconds, model.diagnostics_.warnings, scene)


EXPERIMENT = Experiment(
    "flatten",
    "7.1",
    "Flattening a photograph",
    "A sheet with 50 × 50 printed spots is bent and photographed from above. A threshold and DBSCAN turn the spots "
    "into bursts of pixels; LOCA flattens the sheet. Only the four corners are used to calibrate it. The photograph is "
    "computed, with perspective, tilt, blur, noise and uneven light, so that the truth is known.",
    FULL,
    QUICK,
    run,
)
