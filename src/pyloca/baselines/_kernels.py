"""Distances, Gaussian kernels and their leading eigenvectors: dense for few points, sparse for many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.neighbors import NearestNeighbors

from pyloca.errors import BurstError, ConvergenceError

__all__ = [
    "Euclidean",
    "Metric",
    "auto_bandwidth",
    "gaussian_kernel",
    "leading_eigenvectors",
    "max_min",
    "positive_signs",
    "slabs",
]

Array = NDArray[np.float64]
Kernel = Any  # Array | sp.csr_matrix; SciPy has no types

DENSE = 4000  # up to this many points the kernel is a full matrix
CUT = 1e-4  # a sparse kernel leaves out smaller values; so does the question whether two points touch
MAX_ENTRIES = 100_000_000  # of a sparse kernel: 1.2 GB, and as much again while it is made
SLAB = 1 << 20  # entries of a block of distances
TREE_FEATURES = 15  # with more features a tree is slower than comparing all pairs
PROBE = 2000  # points from which bandwidth="auto" is chosen
ROUNDING = 1e-13  # squared distances below this part of the largest are those of equal points


class Metric(Protocol):
    """Squared distances among N training points, and from new points to them."""

    def __len__(self) -> int: ...

    def squared(self, rows: NDArray[np.int64]) -> Array:
        """(b, N)."""

    def squared_from(self, points: Array) -> Array:
        """(b, D) → (b, N)."""


class Euclidean:
    """‖y_i − y_j‖²."""

    def __init__(self, points: Array) -> None:
        self.centre = points.mean(axis=0)
        self.points = points - self.centre  # digits are not spent on a common offset
        self._square = np.square(self.points).sum(axis=1)

    def __len__(self) -> int:
        return len(self.points)

    def squared(self, rows: NDArray[np.int64]) -> Array:
        """Squared distances of the points `rows` to all."""
        return self._from_centred(self.points[rows])

    def squared_from(self, points: Array) -> Array:
        """Squared distances of new points to all."""
        return self._from_centred(points - self.centre)

    def _from_centred(self, points: Array) -> Array:
        out = points @ self.points.T
        out *= -2
        out += np.square(points).sum(axis=1)[:, None]
        out += self._square
        return np.maximum(out, 0, out=out)


def slabs(n_rows: int, n_columns: int) -> Iterator[NDArray[np.int64]]:
    """Blocks of row numbers, so small that a block of distances stays in memory."""
    size = max(1, SLAB // n_columns)
    for start in range(0, n_rows, size):
        yield np.arange(start, min(start + size, n_rows))


def max_min(metric: Metric) -> float:
    """max_j min_i ‖y_i − y_j‖² over i with y_i ≠ y_j: the paper's bandwidth, every point has a neighbour within."""
    if isinstance(metric, Euclidean) and metric.points.shape[1] <= TREE_FEATURES:
        distinct = np.unique(metric.points, axis=0)
        if len(distinct) > 1:
            return float(np.square(_neighbors(distinct).kneighbors(n_neighbors=1)[0]).max())
        return _no_distance()
    nearest, largest = [], 0.0
    for rows in slabs(len(metric), len(metric)):
        squared = metric.squared(rows)
        largest = max(largest, float(squared.max()))
        squared[squared <= ROUNDING * largest] = np.inf
        nearest.append(squared.min(axis=1))
    gaps = np.concatenate(nearest)
    gaps = gaps[np.isfinite(gaps)]
    return float(gaps.max()) if len(gaps) else _no_distance()


def auto_bandwidth(metric: Metric, random: np.random.RandomState) -> float:
    """The ε at which Σ_ij exp(−‖y_i − y_j‖²/2ε) grows fastest, d log Σ / d log ε greatest (Coifman et al. 2008).

    There the kernel is wide enough to see neighbours and too narrow to see the end of the data. Chosen from at most
    2000 points.
    """
    rows = np.arange(len(metric))
    if len(rows) > PROBE:
        rows = np.sort(random.permutation(len(rows))[:PROBE])
    squared = metric.squared(rows)[:, rows]
    positive = squared[squared > ROUNDING * squared.max()]
    if not len(positive):
        return _no_distance()
    exponents = np.arange(np.floor(np.log2(positive.min())) - 1, np.ceil(np.log2(positive.max())) + 1, 0.5)
    total = np.array([np.exp(squared / (-2 * 2.0**e)).sum() for e in exponents])
    slope = np.gradient(np.log(total), exponents)
    return float(2.0 ** exponents[np.argmax(slope)])


def gaussian_kernel(metric: Metric, epsilon: float, dense: bool) -> Kernel:
    """K_ij = exp(−‖y_i − y_j‖²/2ε), (N, N); a sparse one leaves out what is below 1e-4."""
    n = len(metric)
    if dense:
        kernel = metric.squared(np.arange(n))
        np.fill_diagonal(kernel, 0)
        kernel += kernel.T  # the two triangles are rounded differently
        kernel *= -0.25 / epsilon
        return np.exp(kernel, out=kernel)
    reach = -2 * epsilon * np.log(CUT)
    blocks, entries = [], 0
    for rows, block in _within(metric, reach):
        entries += block.nnz
        expected = entries * n / (rows[-1] + 1)
        if expected > MAX_ENTRIES:
            raise BurstError(
                f"with the bandwidth {epsilon:.3g} a point is joined to about {expected / n:.0f} of the {n} others, "
                "more than fits into memory. Lower bandwidth_factor, or fit fewer points and transform the rest."
            )
        block.data = np.exp(block.data / (-2 * epsilon))
        blocks.append(block)
    kernel = sp.vstack(blocks, format="csr")
    del blocks
    return kernel.maximum(kernel.T).tocsr()


def _within(metric: Metric, reach: float) -> Iterator[tuple[NDArray[np.int64], sp.csr_matrix]]:
    """Rows of the matrix of squared distances, without those beyond `reach`."""
    n = len(metric)
    if isinstance(metric, Euclidean) and metric.points.shape[1] <= TREE_FEATURES:
        tree = _neighbors(metric.points)
        step = max(1, n // 20)
        for start in range(0, n, step):
            rows = np.arange(start, min(start + step, n))
            block = tree.radius_neighbors_graph(metric.points[rows], radius=np.sqrt(reach), mode="distance")
            block = sp.csr_matrix((np.square(block.data), block.indices.astype(np.int32), block.indptr), block.shape)
            yield rows, block
        return
    for rows in slabs(n, n):
        squared = metric.squared(rows)
        squared[np.arange(len(rows)), rows] = 0
        i, j = np.nonzero(squared <= reach)
        yield rows, sp.csr_matrix((squared[i, j], (i, j.astype(np.int32))), shape=squared.shape)


def leading_eigenvectors(matrix: Kernel, n_vectors: int, seed: int) -> tuple[Array, Array]:
    """The largest eigenvalues (m,), falling, and eigenvectors (N, m) of a symmetric matrix."""
    n = matrix.shape[0]
    if n <= 5 * n_vectors or n < 100:
        dense = matrix.toarray() if sp.issparse(matrix) else matrix
        values, vectors = scipy.linalg.eigh(dense, subset_by_index=[max(0, n - n_vectors), n - 1])
    else:
        start = np.random.RandomState(seed).standard_normal(n)  # the same at every call: two runs agree
        try:
            values, vectors = eigsh(matrix, n_vectors, which="LA", v0=start, ncv=min(n - 1, max(2 * n_vectors + 1, 40)))
        except ArpackNoConvergence as error:
            if sp.issparse(matrix):
                raise ConvergenceError(
                    f"the eigenvectors of the kernel did not converge ({len(error.eigenvalues)} of {n_vectors} did). "
                    "The kernel is too narrow to tell them apart: raise bandwidth_factor."
                ) from error
            values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[n - n_vectors, n - 1])
    order = np.argsort(-values)
    return values[order], vectors[:, order]


def positive_signs(vectors: Array) -> Array:
    """+1 or −1 for each column: which sign makes it skewed to the positive side.

    A symmetric column has no skew beyond rounding; its first entry of some size decides.
    """
    size = np.abs(vectors)
    skew = np.power(vectors, 3).sum(axis=0)
    first = np.argmax(size > 0.1 * size.max(axis=0), axis=0)
    tie = np.abs(skew) < 1e-6 * np.power(size, 3).sum(axis=0)
    return np.where(np.where(tie, vectors[first, np.arange(vectors.shape[1])], skew) < 0, -1.0, 1.0)


def _neighbors(points: Array) -> NearestNeighbors:
    return NearestNeighbors(algorithm="kd_tree", n_jobs=-1).fit(points)


def _no_distance() -> float:
    raise BurstError("all points are identical; there is nothing to embed.")
