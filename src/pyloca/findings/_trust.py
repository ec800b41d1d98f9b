"""Is a new measurement like those that the encoder has seen? A conformal p-value for each point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import nn

from pyloca.bursts import Bursts
from pyloca.networks import apply_rows
from pyloca.predict import TIE
from pyloca.thresholds import CALIBRATION

__all__ = ["TrustScale"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TrustScale:
    """What is usual for points of held-out bursts: the reference of trust.

    A point is strange when decoding its embedding does not give it back (it lies off the manifold), or when it is
    embedded far from all training bursts (extrapolation); its strangeness is the larger of the two, in units of what
    is usual. The trust in a point is the fraction of held-out points that are at least as strange: uniform between 0
    and 1 for points of the same kind, and 1 / (n + 1), the smallest possible value, for points unlike all of them.

    Attributes
    ----------
    round_trip, gap : float
        Median round-trip error and median distance to the nearest training burst, of held-out points.
    scores : (n,) array
        Their strangeness, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> TrustScale(round_trip=0.01, gap=0.1, scores=np.array([0.5, 1.0, 2.0])).gap
    0.1
    """

    round_trip: float
    gap: float
    scores: Array

    @classmethod
    def calibrate(
        cls, encoder: nn.Module, decoder: nn.Module, held_out: Bursts | Array, training: Array, *, seed: int = 0
    ) -> TrustScale:
        """Measure what is usual for held-out points.

        Parameters
        ----------
        encoder, decoder : torch.nn.Module
        held_out : Bursts or (n, D) array
            Bursts, of whose points a sample is taken; or points.
        training : (N, d) array
            Embedding of the training bursts.
        seed : int, default=0
            Of the sample.

        Returns
        -------
        TrustScale
        """
        points = _sample(held_out, seed)
        embedded = apply_rows(encoder, points, training.shape[1])
        errors, gaps = _round_trip(decoder, points, embedded), _gaps(training, embedded)
        # A perfect decoder or a repeated point must not make a unit of zero.
        size = float(np.abs(points - points.mean(axis=0)).max())
        spread = float(np.abs(training - training.mean(axis=0)).max())
        round_trip = max(float(np.median(errors)), 1e-9 * size)
        gap = max(float(np.median(gaps)), 1e-9 * spread)
        return cls(round_trip, gap, np.sort(np.maximum(errors / round_trip, gaps / gap)))

    def trust(self, decoder: nn.Module, points: Array, embedded: Array, training: Array) -> Array:
        """Compute the trust in points.

        Parameters
        ----------
        decoder : torch.nn.Module
        points : (n, D) array
        embedded : (n, d) array
            The points after the encoder.
        training : (N, d) array
            Embedding of the training bursts.

        Returns
        -------
        (n,) array
        """
        errors, gaps = _round_trip(decoder, points, embedded), _gaps(training, embedded)
        score = np.maximum(errors / self.round_trip, gaps / self.gap)
        at_least = len(self.scores) - np.searchsorted(self.scores, (1 - TIE) * score, side="left")
        return (1 + at_least) / (1 + len(self.scores))


def _sample(held_out: Bursts | Array, seed: int) -> Array:
    if not isinstance(held_out, Bursts):
        return held_out
    random = np.random.RandomState(seed)
    each = max(1, CALIBRATION // len(held_out))
    parts = [burst[random.permutation(len(burst))[:each]] for burst in held_out]
    points = np.concatenate(parts)
    return np.asarray(points[random.permutation(len(points))[:CALIBRATION]], dtype=np.float64)


def _round_trip(decoder: nn.Module, points: Array, embedded: Array) -> Array:
    return np.asarray(np.linalg.norm(apply_rows(decoder, embedded, points.shape[1]) - points, axis=1))


def _gaps(training: Array, embedded: Array) -> Array:
    return np.asarray(cKDTree(training).query(embedded)[0])
