"""Section 6.3: decoding straight lines in the embedding gives the measurements of straight latent lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyloca.paper.experiments import frame
from pyloca.paper.experiments._experiment import Experiment, Merit, Result

__all__ = ["EXPERIMENT", "DecoderSettings", "run"]


@dataclass(frozen=True, kw_only=True)
class DecoderSettings:
    """Settings of the model, which is that of `frame`, and the number of points on each line."""

    frame: frame.FrameSettings
    line_points: int = 50


FULL = DecoderSettings(frame=frame.FULL)
QUICK = DecoderSettings(frame=frame.QUICK)


def run(seed: int, solver: str = "fast", quick: bool = False) -> Result:
    """Compute the mean squared error of decoded lines between facing boundary points."""
    settings = QUICK if quick else FULL
    data, model, seconds = frame.fit_frame(seed, solver, settings.frame)
    weight = np.linspace(0, 1, settings.line_points)[:, None, None]
    starts, ends = data.extras["interpolation_starts"], data.extras["interpolation_ends"]  # (200, 2) each
    latent = (1 - weight) * starts + weight * ends  # (line_points, 200, 2)
    embedded = (1 - weight) * model.transform(data.measure(starts)) + weight * model.transform(data.measure(ends))
    decoded = model.inverse_transform(embedded.reshape(-1, 2))
    error = np.square(decoded - data.measure(latent.reshape(-1, 2))).sum(axis=1)
    figures = {
        "decoder": Merit(float(error.mean()), bar=2e-5, paper=2.3e-4),
        "decoder, deviation": Merit(float(error.std()), paper=2.4e-4),
    }
    scene = {"data": data, "model": model, "latent": latent, "embedded": embedded, "decoded": decoded}
    return Result("decoder", seed, solver, quick, settings, figures, seconds, model.diagnostics_.warnings, scene)


EXPERIMENT = Experiment(
    "decoder",
    "6.3",
    "Generation",
    "Points that face each other across the hole of the frame are joined by straight lines in the embedding, and the "
    "lines are decoded. They should equal the measurements of straight latent lines, where there were no bursts.",
    FULL,
    QUICK,
    run,
)
