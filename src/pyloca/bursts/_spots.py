"""Bursts from a camera: one frame per flash, each with one hot spot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import LARGEST, brief, check_real, refuse_masked
from pyloca.bursts._arrays import Array
from pyloca.bursts._container import Bursts
from pyloca.bursts._labels import Labels, check_ids
from pyloca.errors import BurstError

__all__ = ["from_spots"]

RING = 8  # points that stand for a spot
ABOVE = 5.0  # deviations of the pixel noise by which a spot, or the dip between two, stands out
PART = 0.1  # and the part of the highest pixel, for frames with hardly any noise
LEVELS = 12  # heights at which a frame is cut to see whether it has one hill or more
SMALLEST = 4  # pixels of a hill; fewer are dead pixels
WHOLE = 3.0  # deviations of the spot from its centre to the border: 2e-4 of its variance is beyond them
FAR = 4.0  # deviations beyond which pixels are background
WINDOW = 5.0  # deviations that are looked at: the weight there is 4e-6
FEW = 20  # pixels that tell a background
NARROWEST = 0.5  # pixels: a spot of less is inside one
PIXEL = 1 / 12  # variance of a place inside a pixel
ITERATIONS, SETTLED = 100, 1e-7
GAUSSIAN_MAD = 0.6745  # median absolute deviation of a normal variable of unit variance
SHOWN = 5  # ids in a message

NO_SPOT, TWO, CUT = "without a spot", "with more than one spot", "with a spot cut by the border"
NARROW, BAD = "with a spot narrower than a pixel", "with pixels that are not finite"


class _Spot(NamedTuple):
    mean: Array  # (2,) in pixels, x and y
    covariance: Array  # (2, 2)
    worth: float  # effective count


def from_spots(
    frames: ArrayLike | Iterable[ArrayLike],
    *,
    ids: Labels | None = None,
    pixel_size: float = 1.0,
    on_bad: str = "raise",
) -> Bursts:
    """Take the hot spot of each frame as a burst: a camera that looks at flashes, one frame per flash.

    Place and covariance of a spot are its moments under a Gaussian weight of its own shape (adaptive moments), so that
    neither the background nor the edge of a window enters; both are exact for a Gaussian spot.

    Parameters
    ----------
    frames : array of shape (N, height, width), or iterable of N arrays of shape (height, width)
        Brightness or temperature. An iterator is read frame by frame.
    ids : sequence of N labels, optional
        Ids of the frames. None numbers them from 0.
    pixel_size : float, default=1.0
        Side of a pixel in the units that you want.
    on_bad : {"raise", "drop"}, default="raise"
        What happens to frames without a spot, with more than one, or with one that is cut by the border, narrower than
        a pixel or not finite: they are refused, or dropped and counted in ``provenance``.

    Returns
    -------
    Bursts
        One per frame: eight points (x, y) on an ellipse that have the mean and the covariance of the spot, from the
        centre of the first pixel. They are not samples: `effective_counts` says how many would tell the covariance as
        well, π A² √det C / 4 s², from the height A of the spot and the noise s of a pixel. σ is not known.

    Raises
    ------
    BurstError
        If `frames` are not grey pictures, if some are bad, or if none is good.
    ValueError
        If `pixel_size` or `on_bad` is wrong.

    Notes
    -----
    The spots must have one size and be round on the surface. A lens that blurs makes all of them larger by the same
    covariance, which is not corrected: focus, or use spots much larger than the blur. Two spots that overlap so
    much that there is no dip between them are taken as one.

    Examples
    --------
    >>> import numpy as np
    >>> y, x = np.mgrid[:40, :40]
    >>> frames = [np.exp(-(((x - c) / 3) ** 2 + ((y - 20) / 2) ** 2) / 2) for c in (15.5, 22.0)]
    >>> bursts = from_spots(frames)
    >>> np.round(bursts[0].mean(axis=0), 3).tolist(), np.round(np.cov(bursts[0].T).diagonal() + 1 / 12, 3).tolist()
    ([15.5, 20.0], [9.0, 4.0])
    """
    check_real("pixel_size", pixel_size)
    if on_bad not in ("raise", "drop"):
        raise ValueError(f'on_bad must be "raise" or "drop"; got {brief(on_bad)}.')
    seen = [_look(frame) for frame in _of_one_shape(_each(frames))]
    if not seen:
        raise BurstError("there are no frames.")
    labels = np.arange(len(seen)) if ids is None else check_ids(ids, len(seen))
    spots = [spot for spot in seen if not isinstance(spot, str)]
    listed = _list_bad(seen, labels)
    if listed and (on_bad == "raise" or not spots):
        advice = (
            'Remove them, or drop them: on_bad="drop" (--on-bad drop in the shell).'
            if spots
            else "Pass frames with one bright spot on a darker ground."
        )
        raise BurstError(
            f"{len(seen) - len(spots)} of {len(seen)} frames have no spot that can be used: {listed}. {advice}"
        )
    good = np.array([not isinstance(spot, str) for spot in seen])
    return Bursts(
        pixel_size * _rings(np.array([spot.mean for spot in spots]), np.array([spot.covariance for spot in spots])),
        ids=labels[good] if ids is not None or listed else None,
        effective_counts=[spot.worth for spot in spots],
        provenance=f"from_spots: {len(spots)} spot{'s' * (len(spots) != 1)}"
        + (f"; dropped frames: {listed}" if listed else ""),
    )


def _each(frames: Any) -> Iterable[Any]:
    if hasattr(frames, "ndim") and frames.ndim != 3:
        hint = " For one frame pass frames[None]." if frames.ndim == 2 else " Frames must be grey: average the colours."
        raise BurstError(f"frames has shape {tuple(frames.shape)}; expected (N, height, width).{hint}")
    if not isinstance(frames, Iterable):
        raise BurstError(f"frames must be an array (N, height, width) or an iterable of pictures; got {brief(frames)}.")
    return frames


def _of_one_shape(frames: Iterable[Any]) -> Iterator[NDArray[Any]]:
    """Yield frames as arrays; places in frames that were cropped differently cannot be compared."""
    first: tuple[int, ...] | None = None
    for i, frame in enumerate(frames):
        array = _as_frame(frame, i)
        first = array.shape if first is None else first
        if array.shape != first:
            raise BurstError(
                f"frame {i} has shape {array.shape}, the first one {first}: a camera that stands still takes frames of "
                "one size."
            )
        yield array


def _as_frame(frame: Any, i: int) -> NDArray[Any]:
    refuse_masked(f"frame {i}", frame, BurstError)
    array = np.asarray(frame)
    if array.ndim != 2 or not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise BurstError(
            f"frame {i} has shape {array.shape} and dtype {array.dtype}; expected real numbers (height, width)."
        )
    if not (np.abs(np.nan_to_num(array)) <= LARGEST).all():
        raise BurstError(f"frame {i} has values beyond {LARGEST:g}, too large to be squared.")
    return array


def _list_bad(seen: list[_Spot | str], labels: NDArray[Any]) -> str:
    parts = []
    for reason in (NO_SPOT, TWO, CUT, NARROW, BAD):
        which = [repr(label) for spot, label in zip(seen, labels.tolist(), strict=True) if spot == reason]
        if which:
            more = f" and {len(which) - SHOWN} more" if len(which) > SHOWN else ""
            parts.append(f"{len(which)} {reason} (frame{'s' * (len(which) > 1)} {', '.join(which[:SHOWN])}{more})")
    return "; ".join(parts)


def _look(frame: NDArray[Any]) -> _Spot | str:
    """Measure the spot of a frame, or say what is wrong with it."""
    rounding = PIXEL if np.issubdtype(frame.dtype, np.integer) else 0.0
    values = frame.astype(np.float64)
    if not np.isfinite(values).all():
        return BAD
    found = _one_hill(values, rounding)
    if isinstance(found, str):
        return found
    y, x = found
    ground = float(np.median(values))
    mean, covariance = np.array([x.mean(), y.mean()]), np.atleast_2d(np.cov(x, y, bias=True)) + PIXEL * np.eye(2)
    # Twice: the ground is what lies far from the spot, and that is known when the spot is.
    for _ in range(2):
        fitted = _adaptive(values, ground, mean, covariance)
        if fitted is None:
            return CUT if _touches(y, x, values.shape) else NO_SPOT
        mean, covariance, height = fitted
        if _cut(mean, covariance, values.shape):
            return CUT
        far = values[_squares(_window(values.shape), mean, covariance) > FAR**2]
        if len(far) < FEW:
            return CUT
        ground = float(np.median(far))
    narrow = covariance - PIXEL * np.eye(2)
    if np.linalg.eigvalsh(narrow)[0] < NARROWEST**2:
        return NARROW
    noise = max(_variance(far - ground) + rounding, _misfit(values - ground, mean, covariance, height))
    if height < ABOVE * np.sqrt(_variance(far - ground)):
        return NO_SPOT
    return _Spot(mean, narrow, _worth(height, noise, covariance, narrow))


def _one_hill(values: Array, rounding: float) -> tuple[NDArray[np.int64], NDArray[np.int64]] | str:
    """Return the pixels (rows, columns) of the one hill that stands out of the frame."""
    from scipy.ndimage import label, median_filter  # takes a while to import

    smooth = median_filter(values, 3, mode="nearest")  # without dead pixels
    ground, top = float(np.median(smooth)), float(smooth.max())
    noise = float(np.sqrt(_variance(values - np.median(values)) + rounding))
    clear = max(ABOVE * noise, PART * (top - ground))
    if top - ground <= clear:
        return NO_SPOT
    for level in ground + np.linspace(clear, top - ground, LEVELS, endpoint=False):
        parts, n = label(smooth > level, np.ones((3, 3)))
        if n > 1:
            high = np.bincount(parts[smooth > level + clear], minlength=n + 1) > 0
            if np.sum(high & (np.bincount(parts.ravel(), minlength=n + 1) >= SMALLEST)) > 1:
                return TWO
    y, x = np.nonzero(smooth > 0.5 * (ground + top))
    return (y, x) if len(y) >= SMALLEST else NARROW


def _adaptive(values: Array, ground: float, mean: Array, covariance: Array) -> tuple[Array, Array, float] | None:
    """Iterate weighted moments to mean, covariance and height; None if they do not settle.

    A Gaussian spot under a Gaussian weight of the same covariance C has the covariance C / 2 and a mean halfway.
    """
    for _ in range(ITERATIONS):
        rows, columns = _window(values.shape, mean, covariance)
        if not rows.size or not columns.size:
            return None
        weights = np.exp(-0.5 * _squares((rows, columns), mean, covariance))
        weighted = weights * (values[rows[0, 0] : rows[-1, 0] + 1, columns[0, 0] : columns[0, -1] + 1] - ground)
        total = float(weighted.sum())
        if total <= 0:
            return None
        dx, dy = columns - mean[0], rows - mean[1]
        step = np.array([(weighted * dx).sum(), (weighted * dy).sum()]) / total
        xx, xy, yy = ((weighted * product).sum() / total for product in (dx * dx, dx * dy, dy * dy))
        halved = np.array([[xx, xy], [xy, yy]]) - np.outer(step, step)
        if not 0 < np.linalg.eigvalsh(halved)[0] <= np.trace(halved) < max(values.shape) ** 2:
            return None
        # What the weight left of the spot, without the weight: a Gaussian is found in one step, from any start.
        precision = np.linalg.inv(halved) - np.linalg.inv(covariance)
        sure = np.linalg.eigvalsh(precision)[0] > 0.25 / np.trace(halved)
        found = np.linalg.inv(precision) if sure else 2 * halved
        size = np.trace(found)
        moved = max(np.abs(found - covariance).max() / size, np.abs(step).max() / np.sqrt(size))
        mean, covariance = mean + 2 * step, found
        if moved < SETTLED:
            return mean, covariance, total / float(np.square(weights).sum())
    return None


def _window(shape: tuple[int, ...], mean: Array | None = None, covariance: Array | None = None) -> tuple[Array, Array]:
    """Return rows (h, 1) and columns (1, w) of the pixels around a spot, or of all."""
    low, high = np.zeros(2, dtype=int), np.array(shape[::-1])
    if mean is not None and covariance is not None:
        reach = WINDOW * np.sqrt(covariance.diagonal())
        low = np.maximum(low, np.floor(mean - reach).astype(int))
        high = np.minimum(high, np.ceil(mean + reach).astype(int) + 1)
    return np.arange(low[1], high[1])[:, None], np.arange(low[0], high[0])[None]


def _squares(pixels: tuple[Array, Array], mean: Array, covariance: Array) -> Array:
    """Squared distances of pixels from the spot, in its own deviations, (h, w)."""
    a, b, c = np.linalg.inv(covariance)[[0, 0, 1], [0, 1, 1]]
    dx, dy = pixels[1] - mean[0], pixels[0] - mean[1]
    return np.asarray(a * dx * dx + 2 * b * dx * dy + c * dy * dy)


def _cut(mean: Array, covariance: Array, shape: tuple[int, ...]) -> bool:
    reach = WHOLE * np.sqrt(covariance.diagonal())
    return bool(np.any(mean - reach < -0.5) or np.any(mean + reach > np.array(shape[::-1]) - 0.5))


def _touches(y: NDArray[np.int64], x: NDArray[np.int64], shape: tuple[int, ...]) -> bool:
    return bool(min(y.min(), x.min()) == 0 or y.max() == shape[0] - 1 or x.max() == shape[1] - 1)


def _variance(centred: Array) -> float:
    return float(np.median(np.abs(centred)) / GAUSSIAN_MAD) ** 2


def _misfit(values: Array, mean: Array, covariance: Array, height: float) -> float:
    """Mean square of what a Gaussian leaves of the spot: shot noise, and shapes that are not Gaussian."""
    squares = _squares(_window(values.shape), mean, covariance)
    inside = squares < 4
    return float(np.square(values[inside] - height * np.exp(-0.5 * squares[inside])).mean())


def _worth(height: float, noise: float, covariance: Array, narrow: Array) -> float:
    """Return the number of independent points with the same error of the covariance.

    Weighted moments settle where least squares does; its error is that of 1 + π A² √det C / 4 s² points in each entry.
    """
    if noise == 0:
        return np.inf
    left = np.linalg.det(narrow) / np.linalg.det(covariance)  # the error stays when the pixel is subtracted
    return max(2.0, 1 + float(np.pi * height**2 * np.sqrt(np.linalg.det(covariance)) * left / (4 * noise)))


def _rings(means: Array, covariances: Array) -> Array:
    """Return points (N, 8, 2) whose means and covariances, with divisor M − 1, are these."""
    angles = 2 * np.pi * np.arange(RING) / RING
    circle = np.sqrt(2 * (RING - 1) / RING) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.asarray(means[:, None] + circle @ np.linalg.cholesky(covariances).transpose(0, 2, 1))
