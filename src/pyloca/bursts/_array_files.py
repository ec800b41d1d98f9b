"""Files of named arrays: .npz, HDF5 and Zarr, and .npy with the points alone."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca._optional import need
from pyloca.bursts._container import Bursts
from pyloca.bursts._labels import choose_columns, unique_ids
from pyloca.bursts._lazy import LazyRows
from pyloca.bursts._missing import drop_missing, settle_missing
from pyloca.bursts._noise import select_noise
from pyloca.bursts._wanted import Wanted
from pyloca.bursts._zarr import open_zarr
from pyloca.errors import BurstError

__all__ = ["described_arrays", "read_hdf5", "read_npy", "read_npz", "read_zarr", "write_npy", "write_npz"]

# Arrays beside the points in .npz and HDF5.
DESCRIBED = ("ids", "feature_names", "units", "perturbations", "noise", "effective_counts")
COPY = "Only data stored in the file itself are read; copy them into it."


def read_npy(path: Path, wanted: Wanted) -> Bursts:
    """Read (N, M, D), memory-mapped."""
    bursts = _select(Bursts(np.load(path, mmap_mode="r", allow_pickle=False)), wanted)
    return drop_missing(bursts) if wanted.missing == "drop" else bursts


def read_npz(path: Path, wanted: Wanted) -> Bursts:
    """Read named arrays."""
    # opened here, because np.load leaves the file open when it cannot read it
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        bursts = _select(_from_named(set(archive), lambda name: archive[name]), wanted)
    return settle_missing(bursts, wanted.missing)


def read_hdf5(path: Path, wanted: Wanted) -> Bursts:
    """Read named datasets."""
    h5py = need("h5py", "hdf5")
    with h5py.File(path, "r") as file:
        bursts = _select(_from_named(set(file), lambda name: _own_numbers(h5py, file, name)), wanted)
    return settle_missing(bursts, wanted.missing)


def read_zarr(path: Path, wanted: Wanted) -> Bursts:
    """Read named arrays, the points of which stay in their store."""
    bursts = _select(_from_named(*open_zarr(path)), wanted)
    return drop_missing(bursts) if wanted.missing == "drop" else bursts


def _own_numbers(h5py: Any, file: Any, name: str) -> NDArray[Any]:
    """Read a dataset stored in this very file; HDF5 would silently follow links and external storage to any other."""
    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise BurstError(f"`{name}` is a link. {COPY}")
    found = file[name]
    if not isinstance(found, h5py.Dataset):
        raise BurstError(f"`{name}` is a {type(found).__name__.lower()}; expected a dataset.")
    if found.is_virtual or found.external:
        raise BurstError(f"the numbers of `{name}` are in other files ({_elsewhere(found)}). {COPY}")
    return np.asarray(found[()])


def _elsewhere(found: Any) -> str:
    files = [source.file_name for source in found.virtual_sources()] if found.is_virtual else found.external
    return ", ".join(str(one if isinstance(one, str) else one[0]) for one in files[:3])


def _from_named(names: set[str], get: Callable[[str], NDArray[Any]]) -> Bursts:
    described: dict[str, Any] = {name: get(name) for name in DESCRIBED if name in names}
    if "burst_std" in names:
        described["burst_std"] = float(get("burst_std"))
    if "provenance" in names:
        text = get("provenance")[()]
        described["provenance"] = text.decode() if isinstance(text, bytes) else str(text)
    for name in {"feature_names", "units"} & set(described):  # HDF5 has text as bytes
        described[name] = [cell.decode() if isinstance(cell, bytes) else cell for cell in described[name].tolist()]
    if "bursts" in names:
        return Bursts(get("bursts"), **described)
    if {"points", "offsets"} <= names:
        return Bursts.from_ragged(get("points"), get("offsets"), **described)
    listed = ", ".join(sorted(names)) or "nothing"
    raise BurstError(f"holds {listed}; expected `bursts` (N, M, D), or `points` (n, D) and `offsets` (N + 1).")


def _select(bursts: Bursts, wanted: Wanted) -> Bursts:
    """Select features by name."""
    if wanted.columns is None and not wanted.exclude:
        return bursts
    if bursts.feature_names is None:
        raise BurstError("its features have no names, so none can be chosen by columns= or exclude=.")
    names = choose_columns(bursts.feature_names, "", wanted.columns, wanted.exclude)
    places = [bursts.feature_names.index(name) for name in names]
    units = None if bursts.units is None else tuple(bursts.units[j] for j in places)
    points = bursts._layout.points
    # contiguous, because sums depend on the layout, in the last digit
    points = points.select(places) if isinstance(points, LazyRows) else np.ascontiguousarray(points[..., places])
    chosen = replace(bursts._layout, points=points)
    noise = bursts._noise and (select_noise(*bursts._noise, places), bursts._noise[1])
    return bursts._like(_layout=chosen, feature_names=tuple(names), units=units, _noise=noise)


def write_npy(bursts: Bursts, file: io.BytesIO) -> None:
    """Write (N, M, D), and warn if that is not all that is known."""
    np.save(file, bursts.to_array(), allow_pickle=False)
    if bursts.has_ids or bursts.feature_names is not None:
        warnings.warn(
            "a .npy file holds numbers only: ids, feature names and units are not written. Use .npz to keep them.",
            UserWarning,
            stacklevel=3,
        )


def write_npz(bursts: Bursts, file: io.BytesIO) -> None:
    """Write all that is known."""
    arrays = described_arrays(bursts)
    if bursts.is_ragged:
        arrays["points"], arrays["offsets"] = bursts.to_ragged()
    else:
        arrays["bursts"] = bursts.to_array()
    np.savez(file, allow_pickle=False, **arrays)


def described_arrays(bursts: Bursts) -> dict[str, NDArray[Any]]:
    """Return what is known of bursts beside their points."""
    arrays: dict[str, NDArray[Any]] = {}
    if bursts.has_ids or not np.array_equal(bursts.ids, np.arange(len(bursts))):
        arrays["ids"] = unique_ids(bursts.ids)
    if bursts.feature_names is not None:
        arrays["feature_names"] = np.array(bursts.feature_names)
    if bursts.units is not None:
        arrays["units"] = np.array(bursts.units)
    if bursts.perturbed_dim is not None:
        known = bursts.perturbations
        arrays["perturbations"] = np.concatenate(known) if isinstance(known, list) else np.asarray(known)
    if bursts.burst_std is not None:
        arrays["burst_std"] = np.array(bursts.burst_std)
    if bursts.noise is not None:
        arrays["noise"] = bursts.noise
    if bursts.provenance:
        arrays["provenance"] = np.array(bursts.provenance)
    if bursts.effective_counts is not None:
        arrays["effective_counts"] = bursts.effective_counts
    return arrays
