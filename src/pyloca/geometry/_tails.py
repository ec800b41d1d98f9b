"""How much sampling changes the covariance of a burst, by the fourth moments of its points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["tails_from_fourths"]

Array = NDArray[np.float64]

# The fourth moment of M points is taken in units of their own variance, which the far points of heavy tails have
# enlarged, so it is too near to that of Gaussian points, the more so the fewer points there are. Simulated for
# half-normal, exponential and Student-t points (3 and 5 degrees of freedom, independent and elliptical; k = 1, 2, 3, 6;
# M = 10, 30, 100): the true median loss is this power of what the moment says, for short tails (uniform in a cube and
# in a ball) half as much beyond 1.
OWN_UNITS, OWN_UNITS_PER_DIMENSION, SHORT_TAILS, FEWEST_POINTS = 16.0, 3.0, 0.5, 7.0
OUTLYING = 3.0  # times the median that one burst counts at most: single bad points are no tails
LEAST_TAILS, MOST_TAILS = 0.2, 20.0


def tails_from_fourths(fourths: Array, counts: Array, k: int) -> float:
    """Estimate how many times as much sampling changes the covariance of bursts as it does for Gaussian points.

    To second order, a perfect encoder has the whitening loss ½‖G − I‖², whose expectation is
    ½ (E|x|⁴ − k) / (M − 1) for white x in R^k; for Gaussian points, E|x|⁴ = k (k + 2).

    Parameters
    ----------
    fourths : (N,) array
        Mean of |z|⁴ over the points of each burst, z white by its own covariance (divisor M); NaN where unknown.
        For Gaussian points its expectation is k (k + 2) (M − 1) / (M + 1).
    counts : (N,) array
        M_i.
    k : int
        Intrinsic dimension.

    Returns
    -------
    float
        Ratio of the losses; 1 for Gaussian points, or if nothing is known.

    Examples
    --------
    >>> points = np.random.RandomState(0).exponential(size=(500, 30))
    >>> z = (points - points.mean(axis=1, keepdims=True)) / points.std(axis=1, keepdims=True)
    >>> round(tails_from_fourths((z**4).mean(axis=1), np.full(500, 30), 1), 1)
    3.7
    """
    known = np.isfinite(fourths) & (counts > k + 2)
    if not known.any():
        return 1.0
    moment, points = fourths[known], counts[known]
    moment = moment * (points + 1) / (points - 1)
    moment = np.minimum(moment, OUTLYING * np.median(moment))
    excess = moment / (k * (k + 2)) - 1
    found, error = float(excess.mean()), 2 * float(excess.std() / np.sqrt(len(excess)))
    if abs(found) <= error:
        return 1.0
    found *= 1 - (error / found) ** 2  # shrunk towards 0 by what chance explains
    ratio = max((k * (k + 2) * (1 + found) - k) / (k * (k + 1)), LEAST_TAILS)
    beyond = (OWN_UNITS + OWN_UNITS_PER_DIMENSION * k) / max(float(np.median(points)), FEWEST_POINTS)
    return float(np.clip(ratio ** (1 + beyond * (1.0 if ratio > 1 else SHORT_TAILS)), LEAST_TAILS, MOST_TAILS))
