"""What a burst tells locally: its mean, its tangents, what lies off them, and how many points stand behind it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Local", "look"]

Array = NDArray[np.float64]


class Local(NamedTuple):
    """Local pictures of b bursts.

    Attributes
    ----------
    means : (b, D) array
        μ_i.
    tangents : (b, k, D) array
        A_i, rows orthogonal and longest first, with A_iᵀ A_i the rank-k part of the burst covariance.
    residuals : (b,) array
        Trace of the covariance off the tangents.
    counts : (b,) array
        Points behind each covariance.
    """

    means: Array
    tangents: Array
    residuals: Array
    counts: Array


def look(block: Array, k: int) -> Local:
    """Compute the local pictures of bursts of equal length, by thin SVD.

    Parameters
    ----------
    block : (b, M, D) array
    k : int
        Intrinsic dimension.

    Returns
    -------
    Local
    """
    means = block.mean(axis=1)
    centred = block - means[:, None]
    m, dim = centred.shape[1:]
    total = np.square(centred).sum(axis=(1, 2)) / (m - 1)
    if m > 2 * dim:  # the triangular factor has the same right singular vectors and is smaller
        centred = np.asarray(np.linalg.qr(centred, mode="r"))
    _, singular, rows = np.linalg.svd(centred, full_matrices=False)
    singular = singular[:, :k] / np.sqrt(m - 1)
    rest = np.maximum(total - np.square(singular).sum(axis=1), 0)
    return Local(means, singular[:, :, None] * rows[:, :k], rest, np.full(len(block), float(m)))
