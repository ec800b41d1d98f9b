"""Points that a user passes to a fitted model: real finite numbers, of the features of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import LARGEST, as_numbers
from pyloca.errors import BurstError

__all__ = ["COMPONENT", "FEATURE", "as_points", "feature_axis", "is_labelled", "refuse_other_features"]

FEATURE, COMPONENT = "feature", "component"  # dimensions of measurements and of coordinates in xarray


def is_labelled(data: Any) -> bool:
    """Tell whether `data` is an `xarray.DataArray`; imports nothing. A Dataset is refused: it holds several."""
    if type(data).__module__.partition(".")[0] != "xarray" or not hasattr(data, "dims"):
        return False
    if hasattr(data, "data_vars"):
        raise BurstError(
            f"this is an xarray.Dataset with the variables {', '.join(map(str, data.data_vars)) or 'none'}; expected a "
            "DataArray. Choose one by name, ds['…'], or stack them with ds.to_dataarray('feature')."
        )
    return hasattr(data, "coords")


def feature_axis(data: Any, wanted: str = FEATURE) -> Any:
    """Return the dimension of a DataArray along which there are features: the one of this name, or else the last."""
    return wanted if wanted in data.dims else data.dims[-1]


def as_points(points: Any, dim: int, name: str, names: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Finite numbers (…, dim). What has labels of its own, as data frames do, must have those of `names`, in order.

    In a DataArray, features are along the dimension of that name, wherever it is.
    """
    labels = getattr(points, "columns", getattr(points, "index", None) if hasattr(points, "iloc") else None)
    if is_labelled(points) and points.ndim:
        along = feature_axis(points, COMPONENT if name == "Z" else FEATURE)
        labels = points.coords[along].values if along in points.coords else None
        points = points.transpose(..., along)
    if names is not None and labels is not None:
        found, expected = [str(label) for label in labels], [str(label) for label in names]
        own = [f"loca{i}" for i in range(dim)]  # as get_feature_names_out calls coordinates
        if found != expected and not (name == "Z" and found == own):
            raise ValueError(
                f"{name} has the features {', '.join(found)}; expected {', '.join(expected)}, in this order. Choose "
                "them by name, or pass an array."
            )
    array = as_numbers(name, points)
    if array.ndim < 1 or array.shape[-1] != dim:
        raise ValueError(f"{name} has shape {array.shape}; expected (…, {dim}).")
    bad = ~(np.abs(array) <= LARGEST)  # nan is not
    if bad.any():
        first = np.argwhere(bad)[0].tolist()
        raise ValueError(
            f"{name} contains NaN, infinity or values beyond {LARGEST:g}, first at {first}; remove or repair these "
            "points."
        )
    return array


def refuse_other_features(
    known: Sequence[str] | None,
    known_units: Sequence[str] | None,
    names: Sequence[str] | None,
    units: Sequence[str] | None,
) -> None:
    """Raise if names or units are not those of the fit; what either side does not know is not compared."""
    for feature, (unit, other) in enumerate(zip(known_units or (), units or (), strict=False)):
        if unit and other and unit != other:
            raise BurstError(
                f"feature {feature if names is None else names[feature]!r} is in {other}; the model was fitted to "
                f"{unit}. Convert it."
            )
    if known is None or names is None or list(names) == list(known):
        return
    if sorted(names) == sorted(known):
        raise BurstError(
            f"the bursts have the features of the fit in a different order: {', '.join(names)}; expected "
            f"{', '.join(known)}. Put the columns in this order."
        )
    missing = [name for name in known if name not in names]
    extra = [name for name in names if name not in known]
    raise BurstError(
        f"the bursts do not have the features of the fit: {', '.join(missing)} missing, {', '.join(extra)} unknown."
    )
