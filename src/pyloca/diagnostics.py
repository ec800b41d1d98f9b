"""What the bursts themselves say about a fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pyloca.geometry import BurstStatistics
from pyloca.networks import pushforward
from pyloca.objectives import likelihood_pushed, sampling_floor

__all__ = ["Diagnostics", "diagnose_fit", "overlap_warning", "whiten_bursts"]

CHUNK = 8192
# Stretch of a tangent, √ of an eigenvalue of G. Below the first a direction is lost; sampling never does that.
COLLAPSED = 0.05
# A held-out burst whitened this many times worse than sampling explains, on the median, is not whitened.
FAR_FROM_FLOOR = 5.0
# … and where sampling explains nothing (exact Jacobians), a median stretch error of about 20 %.
POOR_LOSS = 0.1
# A burst this many times worse than its sampling explains, and by this much, is lost. A fold loses a tenth of all
# bursts and more; a measurement that is singular along an edge (mushroom) one in a hundred.
LOST_FLOORS, LOST_LOSS, MANY_LOST, LEAST_LOST = 10.0, 0.5, 0.04, 3
# A mean that comes back from encoder and decoder this part of the data's size away from itself was laid on another one.
FAR_FROM_ITSELF = 0.1


@dataclass(frozen=True)
class Diagnostics:
    """Whitening of bursts that the training did not see (of all, when none were held out).

    Attributes
    ----------
    whitening_loss, median_loss : float
        Mean and median over bursts of tr G − log det G − k.
    sampling_floor : float
        What sampling alone leaves of it, k(k+1)/2 divided by M − 1, on average.
    stretch : (float, float)
        5 % and 95 % quantiles of the factors by which the encoder stretches tangents: (1, 1) is an isometry.
    warnings : tuple of str
    """

    whitening_loss: float
    median_loss: float
    sampling_floor: float
    stretch: tuple[float, float]
    warnings: tuple[str, ...] = field(default=())

    def with_warning(self, message: str) -> Diagnostics:
        """The same with one more thing to say."""
        return replace(self, warnings=(*self.warnings, message))

    def __str__(self) -> str:
        lines = [
            f"whitening loss   {self.whitening_loss:.3g} (median {self.median_loss:.3g}; "
            f"sampling alone leaves {self.sampling_floor:.3g})",
            f"local stretch    {self.stretch[0]:.3f} to {self.stretch[1]:.3f} (5 % and 95 % of all directions)",
        ]
        return "\n".join(lines + [f"WARNING          {message}" for message in self.warnings])


def whiten_bursts(
    encoder: nn.Module, statistics: BurstStatistics, burst_std: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Push the tangents of bursts through `encoder`: loss tr G − log det G − k, sampling floor, stretches.

    Shapes (N,), (N,), (N, k). A collapsed burst has an infinite loss.
    """
    dtype = next(encoder.parameters()).dtype
    losses, stretches = [], []
    with torch.no_grad():
        for start in range(0, len(statistics), CHUNK):
            means = torch.as_tensor(statistics.means[start : start + CHUNK], dtype=dtype)
            tangents = torch.as_tensor(statistics.tangents[start : start + CHUNK] / burst_std, dtype=dtype)
            pushed = pushforward(encoder, means, tangents)[1].double()  # (n, k, d)
            losses.append(likelihood_pushed(pushed.transpose(0, 1)).numpy())
            stretches.append(torch.linalg.svdvals(pushed).numpy())
    loss = np.concatenate(losses)
    floors = sampling_floor(torch.as_tensor(statistics.counts), statistics.intrinsic_dim).numpy()
    # A collapsed direction has log det = −∞; "not a number" arises when rounding makes the determinant negative.
    return np.where(np.isnan(loss), np.inf, loss), floors, np.concatenate(stretches)


def diagnose_fit(
    encoder: nn.Module, statistics: BurstStatistics, burst_std: float, held_out: NDArray[np.int64] | None = None
) -> Diagnostics:
    """See how white the bursts of `statistics` come out of `encoder`.

    Figures are of the bursts `held_out` (None: of all). Folds are looked for in all: training does not hide them.
    """
    loss, floors, stretch = whiten_bursts(encoder, statistics, burst_std)
    lost = loss > np.maximum(LOST_FLOORS * floors, LOST_LOSS)
    rows = np.arange(len(loss)) if held_out is None else held_out
    low, high = np.quantile(stretch[rows], [0.05, 0.95])
    median, floor = float(np.median(loss[rows])), float(floors[rows].mean())
    return Diagnostics(
        float(np.average(loss[rows], weights=statistics.weights[rows])),
        median,
        floor,
        (float(low), float(high)),
        _warnings(stretch[rows], median, floor, lost),
    )


def overlap_warning(means: NDArray[np.float64], decoded: NDArray[np.float64]) -> str:
    """What to say of an embedding whose decoder cannot find the way back, which is "" when it can.

    Bursts do not see a sharp fold: each of them is white on either side of it. But where two parts of the data are
    embedded at one place, no decoder can tell them apart.
    """
    spread = np.sqrt(np.square(means - means.mean(axis=0)).sum(axis=1).mean())
    astray = np.linalg.norm(decoded - means, axis=1) > FAR_FROM_ITSELF * spread
    if astray.sum() < LEAST_LOST or astray.mean() <= MANY_LOST:
        return ""
    return (
        f"{astray.mean():.0%} of the bursts do not come back from encoder and decoder, such as burst "
        f"{int(np.argmax(astray))}: distant measurements are embedded at one place, or the decoder is too small. A "
        "closed or curved latent space needs more components than tangents."
    )


def _warnings(stretch: np.ndarray, median: float, floor: float, lost: np.ndarray) -> tuple[str, ...]:
    collapsed = np.median(stretch, axis=0)[-1]
    if collapsed < COLLAPSED:
        return (
            f"a dimension has collapsed: half of the held-out bursts are squeezed to {collapsed:.2g} of their size in "
            "one direction. The coordinates are not isometric to anything; try another random_state, and let the "
            "training end by itself (max_iter=None).",
        )
    if median > max(FAR_FROM_FLOOR * floor, POOR_LOSS):
        return (
            f"held-out bursts are not white: the median whitening loss is {median:.2g}, where sampling alone explains "
            f"{floor:.2g}. The embedding is not an isometry; try more components, smaller bursts, or more of them.",
        )
    if lost.sum() >= LEAST_LOST and lost.mean() > MANY_LOST:
        return (
            f"most bursts are white, but {lost.mean():.0%} are far from it: the embedding is folded or torn "
            "there, or these bursts are outliers. A closed or curved latent space needs more components than tangents.",
        )
    return ()
