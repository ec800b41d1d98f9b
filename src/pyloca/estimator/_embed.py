"""A fitted model applied to rows: checked by scikit-learn's rules, scaled, embedded a slab at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from pyloca._arguments import LARGEST, refuse_masked, refuse_text
from pyloca._points import as_points
from pyloca.bursts import Bursts
from pyloca.estimator._looks import feature_label
from pyloca.estimator._reading import holds_bursts, inner, means_like
from pyloca.estimator._sound import training_embedding
from pyloca.networks import apply_rows

__all__ = ["checked_points", "embed", "rows_as_fitted", "scaled_points", "transform_unnamed"]

Array = NDArray[np.float64]

SLAB = 1 << 18  # rows that are scaled and embedded at a time, so that memory does not grow with their number


def embed(model: Any, X: Any, return_trust: bool, *, named: bool = False, first: int = 0) -> Any:
    """Embed points or bursts; see `LOCA.transform`.

    Parameters
    ----------
    model : LOCA
        Fitted.
    X : array, or bursts in any form
    return_trust : bool
    named : bool
        Whether the names of the features have been checked.
    first : int
        Which row X begins with, for messages.

    Returns
    -------
    (n, d) array, or with `return_trust` also an (n,) array
    """
    bursts = holds_bursts(X)
    rows = means_like(model, X) if bursts else _checked_rows(model, X, named, first)
    embedded, trust = np.empty((len(rows), model.n_components_)), np.empty(len(rows) if return_trust else 0)
    known = training_embedding(model) if return_trust else None
    for start in range(0, len(rows), SLAB):
        part = slice(start, start + SLAB)
        points = rows[part] if bursts else _scaled(model, rows[part])
        embedded[part] = apply_rows(inner(model, "encoder"), points, model.n_components_)
        if known is not None:
            trust[part] = model.trust_scale_.trust(inner(model, "decoder"), points, embedded[part], known)
    return (embedded, trust) if return_trust else embedded


def transform_unnamed(model: Any, X: Any) -> tuple[Array, Array]:
    """Compute coordinates and trust as `LOCA.transform` does, without its warning that an array has no feature names.

    Whoever predicts readings of one instrument from those of another has arrays all the time. Data frames are still
    checked by name.

    Parameters
    ----------
    model : LOCA
        Fitted.
    X : (n, D) array or data frame, or bursts
        The columns of an array are those of the fit, in their order.

    Returns
    -------
    Z : (n, d) array
    trust : (n,) array

    Examples
    --------
    >>> from pyloca import LOCA, Bursts, datasets
    >>> data = datasets.mushroom(n_bursts=100, n_points=20, random_state=0)
    >>> bursts = Bursts(data.bursts, feature_names=["u", "v"])
    >>> model = LOCA(burst_std=0.01, hidden_layers=(5,), random_state=0).fit(bursts)
    >>> Z, trust = transform_unnamed(model, data.Y)
    """
    framed = hasattr(X, "columns") or hasattr(X, "__dataframe__")
    found: tuple[Array, Array] = model._transform(X, True, named=not framed)
    return found


def rows_as_fitted(model: Any, X: Any) -> Array:
    """Return points, or the means of bursts, as the networks of a model see them.

    Parameters
    ----------
    model : LOCA
        Fitted.
    X : (n, D) array or data frame, or bursts

    Returns
    -------
    (n, D) array
        Divided by the scale of each feature.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> data = datasets.mushroom(n_bursts=100, n_points=20, random_state=0)
    >>> model = LOCA(burst_std=0.01, hidden_layers=(5,), random_state=0).fit(data.bursts)
    >>> rows_as_fitted(model, data.bursts[:5]).shape
    (5, 2)
    """
    framed = hasattr(X, "columns") or hasattr(X, "__dataframe__")
    return means_like(model, X) if holds_bursts(X) else _scaled(model, _checked_rows(model, X, not framed, 0))


def scaled_points(model: Any, Y: Any) -> Array:
    """Convert measurements (…, D) to what the encoder takes; refuse what is not finite numbers."""
    names = getattr(model, "feature_names_in_", None)
    return _scaled(model, checked_points(Y, model.n_features_in_, "Y", names))


def checked_points(points: Any, dim: int, name: str, names: Sequence[str] | None = None) -> Array:
    """Convert to finite numbers (…, dim), by the rules of `as_points`; Bursts are not points."""
    if isinstance(points, Bursts):
        raise TypeError(f"{name} is a Bursts object; use transform to embed the means, or encode(burst) for each.")
    return as_points(points, dim, name, names)


def _scaled(model: Any, points: Array) -> Array:
    scale: Array = model.feature_scale_
    return points if np.all(scale == 1) else points / scale


def _checked_rows(model: Any, X: Any, named: bool, before: int) -> Array:
    """Validate points (n, D) by scikit-learn's rules, names included; name the first bad cell."""
    refuse_masked("X", X)
    refuse_text("X", X)
    options: dict[str, Any] = {"dtype": np.float64, "order": "C", "ensure_all_finite": False}
    if named and np.shape(X)[1:] == (model.n_features_in_,):  # scikit-learn would miss the names
        rows = check_array(X, **options)
    else:
        rows = validate_data(model, X, reset=False, **options)
    slabs = (rows[start : start + SLAB] for start in range(0, len(rows), SLAB))
    if not all((np.abs(slab) <= LARGEST).all() for slab in slabs):  # nan is not
        bad = ~(np.abs(rows) <= LARGEST)
        where = np.flatnonzero(bad.any(axis=0))
        cells = ", ".join(f"{feature_label(model, int(j))}: {bad[:, j].sum()}" for j in where)
        n, first = int(bad.any(axis=1).sum()), before + int(np.argmax(bad.any(axis=1)))
        raise ValueError(
            f"Input X contains NaN, infinity or values beyond {LARGEST:g} in {n} of {len(rows)} rows, the first is "
            f"row {first}, counted from 0 (cells by sensor: {cells}). There is one row of coordinates for each row "
            "of X: remove or repair these rows."
        )
    return np.asarray(rows)
