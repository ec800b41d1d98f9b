"""Distance of an embedding from the truth, where the truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import LARGEST, as_numbers, brief

__all__ = ["RigidMap", "calibrate", "stress"]

# Up to this many points all pairs are taken, in slabs; beyond it, this many random pairs.
ALL_PAIRS = 5_000
RANDOM_PAIRS = 10_000_000
SLAB = 1 << 20


def _pair(X: ArrayLike, Z: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    X, Z = as_numbers("X", X), as_numbers("Z", Z)
    if X.ndim != 2 or Z.ndim != 2 or len(X) != len(Z):
        raise ValueError(f"X and Z must be 2-d with the same number of rows; got shapes {X.shape} and {Z.shape}.")
    for name, points in (("X", X), ("Z", Z)):
        bad = np.flatnonzero(~(np.abs(points) <= LARGEST).all(axis=1))  # nan is not
        if len(bad):
            raise ValueError(
                f"{name} must be finite, up to {LARGEST:g}; row {bad[0]} (of {len(bad)} such rows) is "
                f"{brief(points[bad[0]].tolist())}."
            )
    return X, Z


def stress(X: ArrayLike, Z: ArrayLike, *, scale: bool = False) -> float:
    """Mean over all pairs i < j of (‖x_i − x_j‖ − c ‖z_i − z_j‖)².

    Parameters
    ----------
    X : (n, d) array
        True latents.
    Z : (n, e) array
        Embedding of the same points.
    scale : bool, default=False
        False: c = 1. True: c is the factor that minimises the stress.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the arrays do not match, are not finite, or have fewer than 2 rows.

    Notes
    -----
    With more than 5000 points the mean is over 10⁷ random pairs, always the same ones; it is accurate to about 0.1 %.
    No n × n matrix is formed.

    Examples
    --------
    >>> stress([[0.0], [1.0], [3.0]], [[0.0], [2.0], [6.0]], scale=True)
    0.0
    """
    X, Z = _pair(X, Z)
    n = len(X)
    if n < 2:
        raise ValueError(f"stress needs at least 2 points; got {n}.")
    xx = xz = zz = difference = 0.0
    n_pairs = 0
    for i, j in _pairs(n):
        dx = np.linalg.norm(X[i] - X[j], axis=1)
        dz = np.linalg.norm(Z[i] - Z[j], axis=1)
        xx, xz, zz = xx + float(dx @ dx), xz + float(dx @ dz), zz + float(dz @ dz)
        difference += float(np.square(dx - dz).sum())
        n_pairs += len(dx)
    if not scale:
        return difference / n_pairs
    return float(max(xx - xz * xz / zz, 0.0) if zz > 0 else xx) / n_pairs


def _pairs(n: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield pairs i < j in slabs: all of them, or `RANDOM_PAIRS` random ones if there are many points."""
    if n <= ALL_PAIRS:
        size = max(1, SLAB // n)
        for start in range(0, n - 1, size):
            i, j = np.triu_indices(min(size, n - start), 1, n - start)
            yield i + start, j + start
        return
    random = np.random.RandomState(0)  # a stress is a property of X and Z: the same on every call
    for start in range(0, RANDOM_PAIRS, SLAB):
        i = random.randint(n, size=min(SLAB, RANDOM_PAIRS - start))
        yield i, (i + random.randint(1, n, size=len(i))) % n


@dataclass(frozen=True)
class RigidMap:
    """Rigid map z ↦ scale · z · rotation + shift.

    Attributes
    ----------
    rotation : (d, e) array
        Orthonormal rows (columns if d > e); may be a reflection.
    shift : (e,) array
    scale : float, default=1

    Examples
    --------
    >>> import numpy as np
    >>> RigidMap(np.eye(2), np.array([1.0, 0.0])).apply([[2.0, 3.0]])
    array([[3., 3.]])
    """

    rotation: NDArray[np.float64]
    shift: NDArray[np.float64]
    scale: float = 1.0

    def apply(self, Z: ArrayLike) -> NDArray[np.float64]:
        """Map points.

        Parameters
        ----------
        Z : (n, d) array

        Returns
        -------
        (n, e) array
        """
        points = as_numbers("Z", Z)
        if points.ndim < 1 or points.shape[-1] != len(self.rotation) or not np.isfinite(points).all():
            raise ValueError(f"Z has shape {points.shape}; expected finite numbers (n, {len(self.rotation)}).")
        return self.scale * points @ self.rotation + self.shift


def calibrate(X: ArrayLike, Z: ArrayLike, *, scale: bool = False) -> RigidMap:
    """Find the rigid map of an embedding onto the truth with the least mean squared error.

    Parameters
    ----------
    X : (n, e) array
        True latents.
    Z : (n, d) array
        Embedding of the same points; if d ≠ e, the smaller is padded with zeros.
    scale : bool, default=False
        Whether the map may also scale.

    Returns
    -------
    RigidMap
        From R^d to R^e.

    Raises
    ------
    ValueError
        If the arrays do not match or are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> Z = X @ [[0, 1], [-1, 0]] + 5
    >>> bool(np.allclose(calibrate(X, Z).apply(Z), X))
    True
    """
    X, Z = _pair(X, Z)
    x_mean, z_mean = X.mean(axis=0), Z.mean(axis=0)
    left, singular, right = np.linalg.svd((Z - z_mean).T @ (X - x_mean), full_matrices=False)
    rotation = left @ right  # (d, e)
    spread = float(np.square(Z - z_mean).sum())
    factor = float(singular.sum()) / spread if scale and spread > 0 else 1.0
    return RigidMap(rotation, x_mean - factor * z_mean @ rotation, factor)
