"""Errors of positions after calibration, as positioning and channel charting print them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca.metrics._arrays import check_pair
from pyloca.metrics._calibration import calibrate, calibrate_affine

__all__ = ["PlaceErrors", "place_errors"]


@dataclass(frozen=True, repr=False)
class PlaceErrors:
    """How far embedded points lie from the truth, in its unit.

    Attributes
    ----------
    errors : (n,) array
        Distance of each point from its true place.
    mean : float
        Mean absolute error.
    cep : float
        Circular error probable: half of the points lie closer (the median).
    r95 : float
        95 % of the points lie closer.
    calibration : str or None
        The map by which the embedding was laid onto the truth first.

    Examples
    --------
    >>> import numpy as np
    >>> PlaceErrors(np.array([1.0, 2.0, 3.0]), 2.0, 2.0, 2.9, "rigid")
    PlaceErrors(mean=2, cep=2, r95=2.9, calibration='rigid')
    """

    errors: NDArray[np.float64]
    mean: float
    cep: float
    r95: float
    calibration: str | None

    def __repr__(self) -> str:
        figures = ", ".join(f"{name}={getattr(self, name):.3g}" for name in ("mean", "cep", "r95"))
        return f"PlaceErrors({figures}, calibration={self.calibration!r})"


def place_errors(
    X: ArrayLike, Z: ArrayLike, *, calibration: Literal["rigid", "similar", "affine"] | None = "rigid"
) -> PlaceErrors:
    """Mean absolute error, CEP and R95 of an embedding that is laid onto the truth.

    Parameters
    ----------
    X : (n, e) array
        True places.
    Z : (n, d) array
        Embedding of the same points.
    calibration : {"rigid", "similar", "affine"} or None, default="rigid"
        The map that is fitted to all points first, by least squares: rotation or reflection and shift; these and one
        factor; or any affine map. An affine map forgives wrong distances: its figures do not measure isometry. None:
        Z is in the coordinates of X already, for example by your own anchors: ``calibrate(X[:9], Z[:9]).apply(Z)``.

    Returns
    -------
    PlaceErrors

    Raises
    ------
    ValueError
        If the arrays do not match or are not finite, or are too few for the map.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> sheared = X @ [[1.0, 0.5], [0.0, 1.0]]
    >>> place_errors(X, sheared, calibration="affine").r95 < 1e-12 < place_errors(X, sheared).cep
    True
    """
    X, Z = check_pair(X, Z)
    if not len(X):
        raise ValueError("place_errors needs at least 1 point; got none.")
    if calibration is None:
        if X.shape != Z.shape:
            raise ValueError(
                f"without calibration Z must be in the coordinates of X; got shapes {X.shape} and {Z.shape}. "
                "Pass calibration='rigid', 'similar' or 'affine'."
            )
    elif calibration == "affine":
        Z = calibrate_affine(X, Z).apply(Z)
    elif calibration in ("rigid", "similar"):
        Z = calibrate(X, Z, scale=calibration == "similar").apply(Z)
    else:
        raise ValueError(f"calibration must be 'rigid', 'similar', 'affine' or None; got {calibration!r}.")
    errors = np.linalg.norm(X - Z, axis=1)
    cep, r95 = np.quantile(errors, [0.5, 0.95])
    return PlaceErrors(errors, float(errors.mean()), float(cep), float(r95), calibration)
