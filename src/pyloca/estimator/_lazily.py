"""Coordinates of arrays that are computed later, or that name their axes: Dask and xarray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from pyloca._points import COMPONENT, FEATURE, feature_axis
from pyloca.bursts import along_rows
from pyloca.errors import BurstError

__all__ = ["is_lazy", "transform_labelled", "transform_lazy"]

DIMS = ("burst", "point", FEATURE)


def is_lazy(X: Any) -> bool:
    """Tell whether `X` is an array of Dask; imports nothing."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "rechunk")


def transform_lazy(model: Any, X: Any, return_trust: bool) -> Any:
    """Embed points (n, D) or bursts (N, M, D) of Dask, block by block, when they are computed."""
    import dask.array as da
    from dask.delayed import delayed

    if X.ndim not in (2, 3) or X.shape[-1] != model.n_features_in_:
        raise BurstError(
            f"X is a Dask array of shape {X.shape}; expected points (n, {model.n_features_in_}) or bursts (N, M, "
            f"{model.n_features_in_})."
        )
    X, wide = along_rows(X, "X"), model.n_components_ + int(return_trust)
    out = da.map_blocks(
        _block,
        X,
        delayed(model, pure=False),  # one copy in the graph, not one per block
        return_trust,
        name=f"loca-{uuid4().hex}",
        dtype=np.float64,
        chunks=(X.chunks[0], (wide,)),
        drop_axis=[] if X.ndim == 2 else [1],
        meta=np.empty((0, 0)),  # given, so that blocks of length 0 never reach a check
    )
    return (out[:, :-1], out[:, -1]) if return_trust else out


def _block(
    block: NDArray[Any], model: Any, return_trust: bool, block_info: dict[Any, Any] | None = None
) -> NDArray[np.float64]:
    first = block_info[0]["array-location"][0][0] if block_info else 0  # messages count rows of the whole array
    found = model._transform(block, return_trust, named=True, first=first)
    return np.column_stack(found) if return_trust else found


def transform_labelled(model: Any, X: Any, return_trust: bool) -> Any:
    """Embed a DataArray of points (…, feature) or bursts (burst, point, feature); other coordinates are kept."""
    import xarray

    feature = feature_axis(X)
    bursts = {"burst", "point"} <= set(X.dims)
    kept = tuple(dim for dim in X.dims if dim not in ((*DIMS[1:],) if bursts else (feature,)))
    if len(kept) != 1:
        raise BurstError(
            f"X is a DataArray with the dimensions {', '.join(map(str, X.dims))}; expected {', '.join(DIMS)} for "
            "bursts, or one dimension and 'feature' for points."
        )
    _refuse_other_names(model, X, feature)
    ordered = X.transpose(*kept, *(("point", "feature") if bursts else (feature,)))
    found = model._transform(ordered.data, return_trust, named=True)
    Z, trust = found if return_trust else (found, None)
    coords = {name: value for name, value in ordered.coords.items() if set(value.dims) <= set(kept)}
    names = {COMPONENT: model.get_feature_names_out()}
    out = xarray.DataArray(Z, dims=(*kept, COMPONENT), coords=coords | names, name="loca")
    return (out, xarray.DataArray(trust, dims=kept, coords=coords, name="trust")) if return_trust else out


def _refuse_other_names(model: Any, X: Any, feature: Any) -> None:
    known: Sequence[str] | None = getattr(model, "feature_names_in_", None)
    if known is None or feature not in X.coords:
        return
    names = [str(name) for name in X.coords[feature].values]
    if names != list(known):
        raise BurstError(
            f"X has the features {', '.join(names)}; expected {', '.join(known)}, in this order. Choose them with "
            f"X.sel({feature}=[…])."
        )
