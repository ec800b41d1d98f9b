"""Maps of an embedding onto the truth: rigid, similar, affine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca.metrics._arrays import check_pair, check_points

__all__ = ["AffineMap", "RigidMap", "calibrate", "calibrate_affine"]


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
        return self.scale * check_points(Z, len(self.rotation)) @ self.rotation + self.shift


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
    X, Z = check_pair(X, Z)
    x_mean, z_mean = X.mean(axis=0), Z.mean(axis=0)
    left, singular, right = np.linalg.svd((Z - z_mean).T @ (X - x_mean), full_matrices=False)
    rotation = left @ right  # (d, e)
    spread = float(np.square(Z - z_mean).sum())
    factor = float(singular.sum()) / spread if scale and spread > 0 else 1.0
    return RigidMap(rotation, x_mean - factor * z_mean @ rotation, factor)


@dataclass(frozen=True)
class AffineMap:
    """Affine map z ↦ z · matrix + shift.

    Attributes
    ----------
    matrix : (d, e) array
    shift : (e,) array

    Examples
    --------
    >>> import numpy as np
    >>> AffineMap(np.array([[2.0, 0.0], [1.0, 1.0]]), np.zeros(2)).apply([[1.0, 1.0]])
    array([[3., 1.]])
    """

    matrix: NDArray[np.float64]
    shift: NDArray[np.float64]

    def apply(self, Z: ArrayLike) -> NDArray[np.float64]:
        """Map points.

        Parameters
        ----------
        Z : (n, d) array

        Returns
        -------
        (n, e) array
        """
        return check_points(Z, len(self.matrix)) @ self.matrix + self.shift


def calibrate_affine(X: ArrayLike, Z: ArrayLike) -> AffineMap:
    """Find the affine map of an embedding onto the truth with the least mean squared error.

    An affine map may stretch and shear: it forgives an embedding that is wrong by a linear map; `calibrate` does not.

    Parameters
    ----------
    X : (n, e) array
        True latents.
    Z : (n, d) array
        Embedding of the same points.

    Returns
    -------
    AffineMap
        From R^d to R^e.

    Raises
    ------
    ValueError
        If the arrays do not match or are not finite, or if there are fewer than d + 2 points: through d + 1 points an
        affine map passes exactly, whatever they are.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [3.0, 1.0]])
    >>> Z = X @ [[1, 5], [0, 2]] - 1
    >>> bool(np.allclose(calibrate_affine(X, Z).apply(Z), X))
    True
    """
    X, Z = check_pair(X, Z)
    n, d = Z.shape
    if n < d + 2:
        raise ValueError(
            f"an affine map of {d} coordinates passes exactly through {d + 1} points, so at least {d + 2} are needed "
            f"to see an error; got {n}. Pass more points, or calibrate rigidly."
        )
    x_mean, z_mean = X.mean(axis=0), Z.mean(axis=0)
    matrix = np.linalg.lstsq(Z - z_mean, X - x_mean, rcond=None)[0]  # (d, e)
    return AffineMap(matrix, x_mean - z_mean @ matrix)
