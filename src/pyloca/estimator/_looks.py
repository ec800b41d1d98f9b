"""A fitted model as a notebook shows it, and its embedding in colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import is_integer
from pyloca._html import dots_svg, html_card

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["feature_label", "fitted_html", "plot_embedding"]

Array = NDArray[np.float64]

SHOWN = 8  # sensors that are listed
# Maps of the diagnostics: attribute, label, and whether colours follow the logarithm.
MAPS = {
    "trust": ("trust", "trust", False),
    "error": ("errors", "round-trip error / size of the data", True),
    "loss": ("losses", "whitening loss", True),
}


def feature_label(model: Any, feature: int) -> str:
    """Name a sensor with its unit: "pressure (Pa)"; "feature 3" when it has no name.

    Parameters
    ----------
    model : LOCA
        Fitted.
    feature : int
        Position of the sensor.

    Returns
    -------
    str

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> feature_label(SimpleNamespace(feature_names_in_=["pressure"], units_=("Pa",)), 0)
    'pressure (Pa)'
    """
    names = getattr(model, "feature_names_in_", None)
    name = f"feature {feature}" if names is None else str(names[feature])
    units = getattr(model, "units_", None)
    unit = "" if units is None else units[feature]
    return f"{name} ({unit})" if unit else name


def fitted_html(model: Any) -> str:
    """Show sizes, σ, sensors, verdict, and a small picture of the embedding."""
    checked, n = model.diagnostics_, len(model.embedding_)
    dim, d = model.n_features_in_, model.n_components_
    sensors = ""
    if model.units_ is not None or hasattr(model, "feature_names_in_"):
        sensors = ": " + ", ".join(feature_label(model, i) for i in range(min(SHOWN, dim))) + ", …" * (dim > SHOWN)
    given = "given" if model.burst_std_known_ else "estimated: coordinates are right up to one factor"
    if hasattr(model, "rescaling_"):
        given = f"from known distances: {model.rescaling_}"
    rows: dict[str, list[str]] = {
        "bursts": [f"N = {n:,}, {len(model.validation_indices_):,} of them held out"],
        "points per burst": [_points(model)],
        "features": [f"D = {dim:,}{sensors}"],
        "dimensions": [f"k = {model.intrinsic_dim_} directions per burst, d = {d} coordinates"],
        "σ": [f"{model.burst_std_:.4g} ({given})"],
        "training": [f"{model.n_iter_:,} iterations, {'converged' if model.converged_ else 'did not converge'}"],
    }
    if checked.strays:
        rows["left out"] = [checked.left_out()]
    for name, text in checked.verdict():
        rows.setdefault(name, []).append(text)
    drawn = _drawn(model)
    suspect = np.isin(drawn, checked.suspects)
    axes = "z0 to the right, z1 up" if d > 1 else "z0 to the right"
    label = f"Embedding of {len(drawn)} bursts, {axes}" + ("; suspect bursts in orange" if suspect.any() else "")
    return html_card(repr(model), rows, dots_svg(model.embedding_[drawn], suspect, label))


def _drawn(model: Any) -> NDArray[np.int64]:
    """Positions of the bursts in a picture: one that was left out may be embedded anywhere, far from all others."""
    return np.delete(np.arange(len(model.embedding_)), [stray.burst for stray in model.diagnostics_.strays])


def plot_embedding(model: Any, color: str | int | ArrayLike | None) -> Figure:
    """Draw the embedding of a fitted model, coloured as `LOCA.plot` says."""
    from pyloca.plots import plot_map

    drawn = _drawn(model)
    n, Z = len(model.embedding_), model.embedding_[drawn]
    if color is None:
        return plot_map(Z)
    if isinstance(color, str) and color in MAPS:
        name, label, log = MAPS[color]
        values: Array = getattr(model.diagnostics_, name)
        if not len(values):
            raise ValueError(
                f'this model has no map for color="{color}": its file was written by an earlier version. Fit again.'
            )
        return plot_map(Z, values[drawn], label, log=log)
    if isinstance(color, str) or np.ndim(color) == 0:
        feature = _feature(model, color)
        return plot_map(Z, model.decode(Z)[:, feature], f"{feature_label(model, feature)} (decoded)")
    values = np.asarray(color)
    if values.dtype.kind not in "fiub" or values.shape != (n,):
        raise ValueError(
            f"color is an array of dtype {values.dtype} and shape {values.shape}; expected {n} numbers, one per "
            "burst of the fit."
        )
    return plot_map(Z, values[drawn].astype(np.float64), str(getattr(color, "name", None) or "color"))


def _points(model: Any) -> str:
    """M, by what sampling leaves of the loss (`sampling_floor`). A model does not keep the counts themselves."""
    floor, k = model.diagnostics_.sampling_floor, model.intrinsic_dim_
    if floor == 0:
        return "the local geometry is known exactly"
    points = 1 + model.diagnostics_.tails * k * (k + 1) / (2 * floor)
    which = " (by the held-out bursts)" if len(model.validation_indices_) else ""
    return f"M {'=' if abs(points - round(points)) < 1e-6 else 'about'} {points:.0f}{which}"


def _feature(model: Any, color: Any) -> int:
    """Position of the sensor that `color` names."""
    dim = model.n_features_in_
    if isinstance(color, str):
        names = [str(name) for name in getattr(model, "feature_names_in_", ())]
        if color in names:
            return names.index(color)
        known = ", ".join(names[:SHOWN]) + ", …" * (len(names) > SHOWN)
        raise ValueError(
            f"color={color!r} is not a sensor of the fit; expected {', '.join(repr(word) for word in MAPS)}, "
            + (f"or one of {known}." if names else f"or a number from 0 to {dim - 1}: the features have no names.")
        )
    if not is_integer(color, 0) or color >= dim:
        raise ValueError(f"color={color!r} is not a sensor; expected an integer from 0 to {dim - 1}.")
    return int(color)
