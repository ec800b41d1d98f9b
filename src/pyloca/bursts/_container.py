"""`Bursts`: N clouds of repeated measurements in R^D, equal or ragged, in memory or on disk.

Nearly half of this file is the documentation of one public class. Where its points lie, and how they are read, is in
`_layout`; what is refused is in `_arrays` and `_labels`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pyloca._arguments import as_numbers, brief, check_real, refuse_masked
from pyloca.bursts._arrays import (
    as_burst,
    as_indices,
    check_array,
    check_effective_counts,
    check_ragged,
    forget_pages,
    join,
    offsets_of,
    refuse_empty,
)
from pyloca.bursts._card import html_table
from pyloca.bursts._labels import (
    Labels,
    Units,
    burst_name,
    check_feature_names,
    check_ids,
    check_units,
    names_of_frames,
)
from pyloca.bursts._layout import Layout
from pyloca.bursts._lazy import as_lazy
from pyloca.bursts._noise import check_noise, divide_noise
from pyloca.bursts._on_disk import on_disk
from pyloca.bursts._perturbations import Perturbations, check_perturbations, size_of
from pyloca.bursts._split import split_indices
from pyloca.errors import BurstError

__all__ = ["CHUNK", "Bursts"]

# Numbers read at once: 32 MB in float64, large enough for BLAS, small compared with any data set.
CHUNK = 1 << 22


class Bursts:
    """N bursts of measurements in R^D.

    Parameters
    ----------
    data : array of shape (N, M, D), a sequence of N arrays of shape (M_i, D), or Bursts
        Real numbers. A memory-mapped array stays in its file, and so does an array of Zarr or Dask; they are read in
        chunks, so the data may exceed memory.
    ids : sequence of N labels, optional
        Ids of the bursts: unique integers or text; anything else becomes text. None numbers them from 0.
    feature_names : sequence of D str, optional
        Names of the features.
    units : mapping from name to unit, or sequence of D str, optional
        Units of the features, for messages, tables and figures; None or "" where one is not known.
    burst_std : float, optional
        σ, the standard deviation of a burst in the latent space, where it is known; `LOCA` uses it if it is given none.
    perturbations : array of shape (N, M, k), or a sequence of N arrays of shape (M_i, k), optional
        The latent displacement of each point from the state of its burst, when you set it: in your units, along axes
        that may be turned in each burst. Jacobians are then found by regression, without sampling noise; clouds may be
        of any shape, and differ between bursts. Coordinates have the units of the displacements, and those of a burst
        are those of the state at displacement 0. None keeps those of `data` if it is Bursts. Without `burst_std` σ is
        their root mean square.
    noise : float or array, optional
        Noise of the instrument that is known to be in these bursts; `LOCA` uses it if its ``measurement_noise`` is
        None. A number, (D,) or (N, D): standard deviations; (D, D) or (N, D, D): covariances.
    effective_counts : array of shape (N,), optional
        Where points are not independent samples, such as the pixels of a spot: how many independent ones would tell the
        covariance of each burst as well. They set its weight and its sampling error. ``inf``: it is exact.
    provenance : str, optional
        Where the bursts come from and what was assumed, in words.

    Raises
    ------
    BurstError
        If shapes or dtypes are wrong, or if labels or counts are missing, repeated or of the wrong number; if
        perturbations of a burst are not finite, do not span k directions or lie far from 0.
    ValueError
        If `burst_std` is not a number > 0.

    Attributes
    ----------
    has_ids : bool
        Whether ids were given; else the bursts have numbers.
    feature_names, units : tuple of str, or None
    burst_std : float or None
    noise : array or None
    effective_counts : (N,) array or None
        None: as many as there are points, `counts`.
    provenance : str

    Notes
    -----
    Indexing with an integer gives one burst, an array (M_i, D) in float64; indexing with a slice, a mask or an integer
    array gives another `Bursts` on the same memory, with the ids of the chosen ones. Only shapes and dtypes are checked
    here. Values are checked where they are read, in the one pass that makes `BurstStatistics`, so that a file larger
    than memory is not read twice. ``Bursts(bursts, ids=…)`` is the same data under other labels.

    Examples
    --------
    >>> import numpy as np
    >>> bursts = Bursts(np.zeros((5, 3, 2)), ids=list("abcde"), feature_names=["p", "T"], units={"p": "Pa"})
    >>> len(bursts), bursts.n_features, bursts[1:3].counts.tolist()
    (5, 2, [3, 3])
    >>> bursts[1:3].ids.tolist(), bursts.name_of(4), bursts.feature_label(0)
    (['b', 'c'], "burst 'e'", 'p (Pa)')
    """

    _layout: Layout
    _ids: NDArray[Any]  # (N,)
    _scale: NDArray[np.float64] | None
    _noise: tuple[NDArray[np.float64], bool] | None  # and whether it has one entry per burst
    has_ids: bool
    feature_names: tuple[str, ...] | None
    units: tuple[str, ...] | None
    burst_std: float | None
    effective_counts: NDArray[np.float64] | None
    provenance: str

    def __init__(
        self,
        data: ArrayLike | Sequence[ArrayLike] | Bursts,
        *,
        ids: Labels | None = None,
        feature_names: Sequence[str] | NDArray[Any] | None = None,
        units: Units | None = None,
        burst_std: float | None = None,
        perturbations: Perturbations | None = None,
        noise: ArrayLike | None = None,
        effective_counts: ArrayLike | None = None,
        provenance: str = "",
    ) -> None:
        if isinstance(data, Bursts):
            self.__dict__.update(data.__dict__)
            if ids is not None:
                self._ids, self.has_ids = check_ids(ids, len(data)), True
        else:
            refuse_masked("bursts", data, BurstError)
            if isinstance(data, (list, tuple)):
                feature_names = names_of_frames(data) if feature_names is None else feature_names
                labels = np.arange(len(data)) if ids is None else check_ids(ids, len(data))
                parts = [as_burst(part, name) for part, name in zip(data, map(burst_name, labels), strict=True)]
                if len({part.shape for part in parts}) > 1:
                    self._init(Layout.of(*join(parts, labels)), labels, ids is not None)
                else:
                    array = np.stack(parts) if parts else np.empty((0, 0, 0))
                    self._init(Layout.of(check_array(array)), labels, ids is not None)
            else:
                stored = check_array(as_lazy(data) or on_disk(data))
                labels = np.arange(len(stored)) if ids is None else check_ids(ids, len(stored))
                self._init(Layout.of(stored), labels, ids is not None)
        self._describe(feature_names, units, burst_std, noise, provenance)
        self._perturb(perturbations)
        if effective_counts is not None:
            self.effective_counts = check_effective_counts(effective_counts, self._ids)

    def _init(self, layout: Layout, ids: NDArray[Any], has_ids: bool) -> None:
        self._layout, self._ids, self.has_ids = layout, ids, has_ids
        self._scale, self._noise = None, None
        self.feature_names, self.units, self.burst_std, self.provenance = None, None, None, ""
        self.effective_counts = None

    def _describe(
        self,
        feature_names: Sequence[str] | NDArray[Any] | None,
        units: Units | None,
        burst_std: float | None,
        noise: ArrayLike | None,
        provenance: str,
    ) -> None:
        if feature_names is not None:
            self.feature_names = check_feature_names(feature_names, self.n_features)
        if units is not None:
            self.units = check_units(units, self.n_features, self.feature_names)
        if burst_std is not None:
            check_real("burst_std", burst_std)
            self.burst_std = burst_std
        if noise is not None:
            self._noise = check_noise(noise, len(self), self.n_features)
            if self._scale is not None:  # it is given for the features as they are read
                self._noise = divide_noise(*self._noise, 1 / self._scale), self._noise[1]
        self.provenance = provenance or self.provenance

    def _perturb(self, perturbations: Perturbations | None) -> None:
        if perturbations is None:
            return
        values = check_perturbations(perturbations, self.counts, self._ids)
        if self.burst_std is None:
            self.burst_std = size_of(values, self.counts)
        self._layout = self._layout.perturbed(values)

    @classmethod
    def from_ragged(
        cls,
        points: ArrayLike,
        offsets: ArrayLike,
        *,
        ids: Labels | None = None,
        feature_names: Sequence[str] | NDArray[Any] | None = None,
        units: Units | None = None,
        burst_std: float | None = None,
        perturbations: Perturbations | None = None,
        noise: ArrayLike | None = None,
        effective_counts: ArrayLike | None = None,
        provenance: str = "",
    ) -> Bursts:
        """Make bursts of unequal length: burst i is ``points[offsets[i]:offsets[i + 1]]``.

        Parameters
        ----------
        points : array of shape (n, D)
        offsets : array of N + 1 integers
            From 0 to n, increasing.
        ids, feature_names, units, burst_std, perturbations, noise, effective_counts, provenance
            As for `Bursts`; perturbations may also be one array (n, k) of all points.

        Returns
        -------
        Bursts

        Examples
        --------
        >>> import numpy as np
        >>> Bursts.from_ragged(np.zeros((5, 2)), [0, 2, 5])
        Bursts(N=2, M=2..3, D=2)
        """
        found, ends = check_ragged(points, offsets)
        n = len(ends) - 1
        labels = np.arange(n) if ids is None else check_ids(ids, n)
        refuse_empty(ends, labels)
        out = cls.__new__(cls)
        out._init(Layout.of(found, ends), labels, ids is not None)
        out._describe(feature_names, units, burst_std, noise, provenance)
        out._perturb(perturbations)
        if effective_counts is not None:
            out.effective_counts = check_effective_counts(effective_counts, labels)
        return out

    @classmethod
    def concatenate(
        cls,
        parts: Sequence[Bursts | ArrayLike],
        *,
        keys: Sequence[Any] | None = None,
        burst_std: float | None = None,
    ) -> Bursts:
        """Combine several data sets into one, in memory.

        Parameters
        ----------
        parts : sequence of Bursts
            With the same features. A part without names takes those of the others; a part without units takes those of
            the others if it has the same names, and otherwise no unit is kept, since the part may be in another one.
            Ids are kept if all parts have them; bursts that have none in any part are numbered from 0. Perturbations
            are known in all parts or in none. ``a + b`` is the same for two.
        keys : sequence of labels, one per part, optional
            Makes ids unique: the burst 'a' of the part with the key 'monday' is called 'monday/a'.
        burst_std : float, optional
            σ, when the parts do not agree on it.

        Returns
        -------
        Bursts

        Raises
        ------
        BurstError
            If features, units, σ or scales differ, or if two bursts have the same id.

        Examples
        --------
        >>> import numpy as np
        >>> a, b = Bursts(np.zeros((2, 3, 1)), ids=["r1", "r2"]), Bursts(np.ones((1, 4, 1)), ids=["r1"])
        >>> Bursts.concatenate([a, b], keys=["monday", "tuesday"]).ids.tolist()
        ['monday/r1', 'monday/r2', 'tuesday/r1']
        """
        from pyloca.bursts._concatenate import concatenate

        return concatenate([Bursts(part) for part in parts], keys, burst_std)

    # -- what it holds ------------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """D, the dimension of the measurements."""
        return int(self._layout.points.shape[-1])

    @property
    def n_used(self) -> int:
        """Number of features that are not left out by an infinite `scaled`."""
        return self.n_features if self._scale is None else int(np.isfinite(self._scale).sum())

    @property
    def ids(self) -> NDArray[Any]:
        """Ids of the bursts, (N,) of int64 or text: the given ids, else their numbers before any slicing."""
        return self._ids.copy()

    @property
    def scale(self) -> NDArray[np.float64] | None:
        """Divisor of each feature when it is read, shape (D,); None when features are read as they are."""
        return None if self._scale is None else self._scale.copy()

    @property
    def noise(self) -> NDArray[np.float64] | None:
        """Noise that is known to be in these bursts: (D,) or (N, D) deviations, (D, D) or (N, D, D) covariances."""
        if self._noise is None:
            return None
        return self._noise[0].copy() if self._scale is None else divide_noise(*self._noise, self._scale)

    @property
    def counts(self) -> NDArray[np.int64]:
        """M_i, the number of points of each burst, shape (N,), without those set aside."""
        return self._layout.counts

    @property
    def screened(self) -> bool:
        """Whether the search for spikes is off: it has been decided which points to set aside, or they are not samples.

        Bursts of known perturbations are among these: a regression sees its outliers itself, in the residuals.
        """
        here = self._layout
        return here.aside is not None or self.effective_counts is not None or here.perturbations is not None

    @property
    def set_aside(self) -> NDArray[np.int64]:
        """Number of points of each burst that were set aside, shape (N,)."""
        return self._layout.n_aside

    @property
    def perturbed_dim(self) -> int | None:
        """Number of latent directions of the known perturbations, k; None when they are not known."""
        known = self._layout.perturbations
        return None if known is None else int(known.shape[-1])

    @property
    def perturbations(self) -> NDArray[np.float64] | list[NDArray[np.float64]] | None:
        """Known perturbations, (N, M, k), or a list of N arrays (M_i, k); None when they are not known."""
        if self.perturbed_dim is None:
            return None
        if self.is_ragged:
            return [self.perturbations_of([i])[0] for i in range(len(self))]
        return self.perturbations_of(range(len(self)))

    @property
    def is_ragged(self) -> bool:
        """Whether the bursts differ in length."""
        counts = self.counts
        return len(counts) > 0 and bool(np.any(counts != counts[0]))

    @property
    def shape(self) -> tuple[int, int | None, int]:
        """(N, M, D), with None for M when the bursts differ in length."""
        alike = len(self) > 0 and not self.is_ragged
        return len(self), int(self.counts[0]) if alike else None, self.n_features

    @property
    def ndim(self) -> int:
        """Number of axes of the array (N, M, D): 3."""
        return 3

    def name_of(self, position: int) -> str:
        """Name a burst for a message: "burst 12", or "burst 'run7'" when its id is text.

        Parameters
        ----------
        position : int

        Returns
        -------
        str
        """
        return burst_name(self._ids[position])

    def feature_label(self, feature: int) -> str:
        """Name a feature for a message: "pressure (Pa)", "pressure", or "feature 3".

        Parameters
        ----------
        feature : int

        Returns
        -------
        str
        """
        name = f"feature {feature}" if self.feature_names is None else self.feature_names[feature]
        unit = "" if self.units is None else self.units[feature]
        return f"{name} ({unit})" if unit else name

    def __len__(self) -> int:
        return len(self._layout)

    def __repr__(self) -> str:
        counts = self.counts
        if len(counts) == 0:
            return f"Bursts(N=0, D={self.n_features})"
        size = f"M={counts.min()}..{counts.max()}" if self.is_ragged else f"M={counts[0]}"
        return f"Bursts(N={len(self)}, {size}, D={self.n_features})"

    def _repr_html_(self) -> str:
        return html_table(self)

    def __getstate__(self) -> dict[str, Any]:
        """Only the chosen bursts: a part that is sent to another process does not take the whole memory with it."""
        alone = self._layout.window() if self._layout.is_lazy else self._layout.plain()
        return {**self.__dict__, "_layout": alone}

    # -- choosing -----------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # as scikit-learn indexes arrays
            key = key[0]
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            return self._divided(self._layout.burst(int(key)).astype(np.float64))
        rows = np.atleast_1d(self._layout.rows[key])
        if isinstance(key, (bool, tuple)) or key is None or rows.ndim != 1:
            raise IndexError(f"bursts are chosen by a number, a slice, a mask or a list of numbers; got {brief(key)}.")
        noise = self._noise
        if noise is not None and noise[1]:
            noise = noise[0][key], True
        chosen = self._like(_layout=replace(self._layout, rows=rows), _ids=np.atleast_1d(self._ids[key]), _noise=noise)
        if self.effective_counts is not None:
            chosen.effective_counts = np.atleast_1d(self.effective_counts[key])
        return chosen

    def __add__(self, other: Any) -> Bursts:
        if not isinstance(other, Bursts):  # NumPy would add numbers
            raise TypeError(f"only Bursts can be added to Bursts; got {type(other).__name__}. Use Bursts(…) first.")
        return Bursts.concatenate([self, other])

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        for positions in self._parts(CHUNK):
            part = self[positions].loaded()
            yield from (part[i] for i in range(len(part)))

    def split(self, fraction: float, seed: int | np.random.RandomState | None = None) -> tuple[Bursts, Bursts]:
        """Split into training and held-out bursts, keeping their order.

        Parameters
        ----------
        fraction : float in [0, 1)
            Fraction of the bursts to hold out.
        seed : int, RandomState or None

        Returns
        -------
        train, held_out : Bursts
        """
        train, held_out = split_indices(len(self), fraction, seed)
        return self[train], self[held_out]

    def scaled(self, scale: ArrayLike) -> Bursts:
        """Divide each feature by a number whenever it is read; a mapped file stays on disk.

        Parameters
        ----------
        scale : array of shape (D,)
            Numbers > 0; infinity makes a feature zero. Scales multiply: ``bursts.scaled(a).scaled(b)`` divides by a·b.

        Returns
        -------
        Bursts

        Examples
        --------
        >>> import numpy as np
        >>> Bursts(np.full((2, 1, 2), 6.0)).scaled([1, 3])[0].tolist()
        [[6.0, 2.0]]
        """
        factor = as_numbers("scale", scale)
        if factor.shape != (self.n_features,):
            raise ValueError(f"scale has shape {factor.shape}; expected ({self.n_features},), one number per feature.")
        bad = np.flatnonzero(~(factor > 0))  # nan is not
        if len(bad):
            raise ValueError(f"the scale of {self.feature_label(int(bad[0]))} is {factor[bad[0]]}; expected > 0.")
        return self._like(_scale=factor.copy() if self._scale is None else self._scale * factor)

    def without_perturbations(self) -> Bursts:
        """Return the same bursts as if their perturbations were not known, as in the paper.

        Only for perturbations that are equally wide in all directions and everywhere.

        Returns
        -------
        Bursts
            Their σ stays.
        """
        return self._like(_layout=replace(self._layout, perturbations=None))

    def set_points_aside(self, bursts: ArrayLike, points: ArrayLike) -> Bursts:
        """Leave out some points whenever bursts are read; a mapped file stays on disk.

        Parameters
        ----------
        bursts, points : (n,) arrays of int
            Point ``points[i]`` of the burst at position ``bursts[i]``, counting also the points that were set aside
            before. With empty lists all points stay, and `LOCA` does not look for spikes.

        Returns
        -------
        Bursts

        Raises
        ------
        BurstError
            If there is no such point, or a burst would have none left.

        Examples
        --------
        >>> import numpy as np
        >>> bursts = Bursts(np.arange(6.0).reshape(2, 3, 1)).set_points_aside([1], [0])
        >>> bursts.counts.tolist(), bursts[1].ravel().tolist(), bursts.set_aside.tolist()
        ([3, 2], [4.0, 5.0], [0, 1])
        """
        rows, inside = as_indices("bursts", bursts), as_indices("points", points)
        if rows.shape != inside.shape:
            raise BurstError(
                f"bursts has {len(rows)} entries and points has {len(inside)}; expected one burst per point."
            )
        starts, ends = self._layout.bounds()
        known = (rows >= 0) & (rows < len(self)) & (inside >= 0)
        known[known] = inside[known] < (ends - starts)[rows[known]]
        if not known.all():
            bad = int(np.argmin(known))
            raise BurstError(f"there is no point {inside[bad]} in the burst at position {rows[bad]}.")
        before = np.empty(0, dtype=np.int64) if self._layout.aside is None else self._layout.aside
        out = self._like(_layout=replace(self._layout, aside=np.union1d(before, starts[rows] + inside)))
        empty = np.flatnonzero(out.counts < 1)
        if len(empty):
            raise BurstError(f"{self.name_of(int(empty[0]))} would have no points left.")
        return out

    def _like(self, **changes: Any) -> Bursts:
        out = Bursts.__new__(Bursts)
        out.__dict__.update(self.__dict__ | changes)
        return out

    # -- reading in bulk ----------------------------------------------------------------------------------------

    def blocks(self, max_numbers: int = CHUNK) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Iterate over the bursts in chunks of equal length.

        Parameters
        ----------
        max_numbers : int
            Most numbers in a chunk; a chunk has at least one burst.

        Yields
        ------
        positions : (b,) array of int
            Positions of the bursts in this object.
        block : (b, M, D) array of float64
        """
        if self._layout.is_lazy:  # one pass over the store, whatever the lengths
            for part in self._parts(max_numbers):
                yield from ((part[rows], block) for rows, block in self[part].loaded().blocks(max_numbers))
            return
        for positions in self._layout.groups(max_numbers):
            yield positions, self._divided(np.asarray(self._layout.stack(positions), dtype=np.float64))
            forget_pages(self._layout.points)

    def _parts(self, max_numbers: int, *, cut: bool = False) -> Iterator[NDArray[np.int64]]:
        """Yield positions of parts to read at once: all if they are in memory, unless they are to be cut as well."""
        n = len(self)
        size = n
        if n and (cut or self._layout.is_lazy):
            size = max(1, max_numbers // (int(self.counts.max()) * self.n_features))
        yield from (np.arange(start, min(start + size, n)) for start in range(0, n, max(size, 1)))

    def loaded(self) -> Bursts:
        """Return the same bursts in memory; those that are there already are returned as they are.

        Returns
        -------
        Bursts

        Examples
        --------
        >>> import dask.array as da
        >>> Bursts(da.zeros((4, 3, 2), chunks=(2, 3, 2))).loaded().to_array().shape
        (4, 3, 2)
        """
        return self._like(_layout=self._layout.loaded()) if self._layout.is_lazy else self

    def perturbations_of(self, positions: ArrayLike) -> NDArray[np.float64]:
        """Return the known perturbations of bursts of equal length, such as those of a chunk of `blocks`.

        Parameters
        ----------
        positions : (b,) array of int

        Returns
        -------
        (b, M, k) array

        Raises
        ------
        BurstError
            If the perturbations are not known.

        Examples
        --------
        >>> import numpy as np
        >>> z = np.array([[[0.0], [0.1], [-0.1]]])
        >>> Bursts(np.sin(z), perturbations=z).perturbations_of([0]).shape
        (1, 3, 1)
        """
        if self.perturbed_dim is None:
            raise BurstError("the perturbations of these bursts are not known; pass Bursts(…, perturbations=Z).")
        return np.asarray(self._layout.stack_perturbations(np.asarray(positions)))

    def to_array(self) -> NDArray[np.float64]:
        """Return all bursts as one array.

        Returns
        -------
        (N, M, D) array of float64

        Raises
        ------
        BurstError
            If the bursts differ in length, or there are none.
        """
        if not len(self):
            raise BurstError("there are no bursts.")
        if self.is_ragged:
            raise BurstError(
                "the bursts differ in length and do not fit one (N, M, D) array; take them one by one, "
                "or points and offsets from to_ragged()."
            )
        here = self._layout.loaded()
        return self._divided(np.asarray(here.stack(np.arange(len(here))), dtype=np.float64))

    def to_ragged(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the points of all bursts, in order.

        Returns
        -------
        points : (n, D) array of float64
        offsets : (N + 1,) array of int
            Burst i is ``points[offsets[i]:offsets[i + 1]]``.

        Raises
        ------
        BurstError
            If there are no bursts.
        """
        if not len(self):
            raise BurstError("there are no bursts.")
        return self._divided(self._layout.join().astype(np.float64)), offsets_of(self.counts)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("bursts are gathered into a new array; copy=False is not possible.")
        return np.array(self.to_array(), dtype=dtype, copy=copy)

    def _divided(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values if self._scale is None else values / self._scale
