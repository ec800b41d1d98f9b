"""Bursts in arrays that name their axes (xarray)."""

from __future__ import annotations

from typing import Any

from pyloca.bursts._container import CHUNK, Bursts
from pyloca.errors import BurstError

__all__ = ["from_xarray"]


def from_xarray(
    array: Any, *, burst: str = "burst", point: str = "point", feature: str = "feature", burst_std: float | None = None
) -> Bursts:
    """Take bursts from an `xarray.DataArray`, by the names of its dimensions.

    Large arrays, and those of Dask, are not read before they are used. The coordinates of `burst` are the ids, those of
    `feature` the names. Units are the coordinate ``units`` along `feature`, or the attribute ``units`` for all.

    Parameters
    ----------
    array : xarray.DataArray
        With three dimensions, in any order.
    burst, point, feature : str
        Their names.
    burst_std : float, optional
        σ; None: the attribute ``burst_std``, if there is one.

    Returns
    -------
    Bursts

    Raises
    ------
    BurstError
        If the array has other dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> array = xr.DataArray(np.zeros((2, 5, 3)), dims=("sensor", "burst", "point"), coords={"sensor": ["p", "T"]})
    >>> bursts = from_xarray(array, feature="sensor")
    >>> bursts, bursts.feature_names
    (Bursts(N=5, M=3, D=2), ('p', 'T'))
    """
    wanted = (burst, point, feature)
    if sorted(map(str, array.dims)) != sorted(wanted):
        raise BurstError(
            f"the DataArray has the dimensions {', '.join(map(str, array.dims))}; expected {', '.join(wanted)}. Rename "
            "them, or name yours: pyloca.bursts.from_xarray(array, burst=…, point=…, feature=…)."
        )
    array = array.transpose(*wanted)
    units = array.attrs.get("units")
    units = None if units is None else [str(units)] * array.sizes[feature]
    if "units" in array.coords and array.coords["units"].dims == (feature,):
        units = [str(unit) for unit in array.coords["units"].values]
    known = array.attrs.get("burst_std") if burst_std is None else burst_std
    if array.chunks is None and array.size > CHUNK:  # it may be a file that was not read yet
        array = array.chunk({burst: "auto", point: -1, feature: -1})
    return Bursts(
        array.data,
        ids=array.coords[burst].values if burst in array.coords else None,
        feature_names=[str(name) for name in array.coords[feature].values] if feature in array.coords else None,
        units=units,
        burst_std=None if known is None else float(known),
    )
