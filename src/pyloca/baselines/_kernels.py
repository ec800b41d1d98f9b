"""Distances, Gaussian kernels and their leading eigenvectors: dense for few points, sparse for many."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, lobpcg, splu
from sklearn.neighbors import NearestNeighbors

from pyloca.errors import BurstError, ConvergenceError

__all__ = [
    "Euclidean",
    "Metric",
    "auto_bandwidth",
    "gaussian_kernel",
    "is_dense",
    "laplacian_solver",
    "max_min",
    "positive_signs",
    "scale_rows",
    "slabs",
    "strongest",
    "walk_eigenvectors",
]

Array = NDArray[np.float64]
Kernel = Any  # Array | sp.csr_matrix; SciPy has no types

SMALL, DENSE = 1000, 4000  # the kernel is a full matrix up to the first; up to the second if it is not nearly empty
EMPTY = 0.15  # part of the pairs that touch
CUT = 1e-4  # a sparse kernel leaves out smaller values; so does the question whether two points touch
MAX_ENTRIES = 100_000_000  # of a sparse kernel: 1.2 GB, and as much again while it is made
SLAB = 1 << 20  # entries of a block of distances
TREE_FEATURES = 15  # with more features a tree is slower than comparing all pairs
PROBE = 2000  # points from which bandwidth="auto" is chosen
EDGES = 12  # per point, of a graph that is factorised
ROUNDING = 1e-13  # squared distances below this part of the largest are those of equal points


class Metric(Protocol):
    """Squared distances among N training points, and from new points to them."""

    def __len__(self) -> int: ...

    def squared(self, rows: NDArray[np.int64]) -> Array:
        """Return squared distances from the points `rows` to all, (b, N)."""

    def squared_from(self, points: Array) -> Array:
        """Return squared distances from new points to all, (b, D) → (b, N)."""


class Euclidean:
    """Squared Euclidean distance ‖y_i − y_j‖²."""

    def __init__(self, points: Array) -> None:
        self.centre = points.mean(axis=0)
        self.points = points - self.centre  # a common offset would cost digits
        self._square = np.square(self.points).sum(axis=1)

    def __len__(self) -> int:
        return len(self.points)

    def squared(self, rows: NDArray[np.int64]) -> Array:
        """Return squared distances from the points `rows` to all, (b, N)."""
        return self._from_centred(self.points[rows])

    def squared_from(self, points: Array) -> Array:
        """Return squared distances from new points to all, (b, D) → (b, N)."""
        return self._from_centred(points - self.centre)

    def _from_centred(self, points: Array) -> Array:
        out = points @ self.points.T
        out *= -2
        out += np.square(points).sum(axis=1)[:, None]
        out += self._square
        return np.maximum(out, 0, out=out)


def slabs(n_rows: int, n_columns: int) -> Iterator[NDArray[np.int64]]:
    """Yield blocks of row numbers, small enough for a block of distances to fit in memory."""
    size = max(1, SLAB // n_columns)
    for start in range(0, n_rows, size):
        yield np.arange(start, min(start + size, n_rows))


def max_min(metric: Metric) -> float:
    """Return max_j min_i ‖y_i − y_j‖² over i with y_i ≠ y_j, the paper's bandwidth: every point has a neighbour."""
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
    """Find the ε that maximises d log S / d log ε, S = Σ_ij exp(−‖y_i − y_j‖²/2ε) (Coifman et al. 2008).

    There the kernel is wide enough to reach neighbours and too narrow to reach the boundary of the data. At most 2000
    points are used.
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


def is_dense(metric: Metric, epsilon: float) -> bool:
    """Whether a dense kernel is better than a sparse one, judged by the neighbours of 64 points."""
    n = len(metric)
    if n <= SMALL or n > DENSE:
        return n <= SMALL
    squared = metric.squared(np.arange(0, n, n // 64))
    return float((squared <= -2 * epsilon * np.log(CUT)).mean()) > EMPTY


def gaussian_kernel(metric: Metric, epsilon: float, dense: bool) -> Kernel:
    """Compute K_ij = exp(−‖y_i − y_j‖²/2ε), (N, N); a sparse kernel drops values below 1e-4."""
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
                f"with bandwidth {epsilon:.3g} each point is joined to about {expected / n:.0f} of the {n} others, "
                "which does not fit in memory. Lower bandwidth_factor, or fit to fewer points and transform the rest."
            )
        block.data = np.exp(block.data / (-2 * epsilon))
        blocks.append(block)
    kernel = sp.vstack(blocks, format="csr")
    del blocks
    return kernel.maximum(kernel.T).tocsr()


def _within(metric: Metric, reach: float) -> Iterator[tuple[NDArray[np.int64], sp.csr_matrix]]:
    """Yield rows of the matrix of squared distances, without entries beyond `reach`."""
    n = len(metric)
    if isinstance(metric, Euclidean) and metric.points.shape[1] <= TREE_FEATURES:
        tree = _neighbors(metric.points)
        step = max(SLAB // 256, n // 20)
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


def walk_eigenvectors(kernel: Kernel, n_vectors: int, seed: int) -> tuple[Array, Array]:
    """Compute λ_1 ≥ … ≥ λ_m and ψ (N, m) of the walk P = D⁻¹K, without λ_0 = 1; overwrites `kernel`.

    The eigenvectors satisfy Σ_i π_i ψ_l(i)² = 1. They are found from S = D^½ P D^-½, which is symmetric. Its leading
    eigenvalues crowd at 1, where Lanczos needs hundreds of steps. LOBPCG needs a few dozen if preconditioned by what
    I − S resembles for long waves: the Laplacian of a graph with a dozen edges per point, which is cheap to factorise.
    """
    n = kernel.shape[0]
    degree = np.asarray(kernel.sum(axis=1)).ravel()
    root = np.sqrt(degree)
    small = n < 100 or n <= 10 * (n_vectors + 1)
    thin = None if small else strongest(kernel, EDGES)
    scale_rows(kernel, 1 / root)
    if small:
        dense = kernel.toarray() if sp.issparse(kernel) else kernel
        values, vectors = scipy.linalg.eigh(dense, subset_by_index=[n - n_vectors - 1, n - 2])
    else:
        values, vectors = _preconditioned(kernel, thin, root, n_vectors, np.random.RandomState(seed))
    order = np.argsort(-values)
    return values[order], vectors[:, order] * (np.linalg.norm(root) / root)[:, None]


def _preconditioned(
    S: Kernel, thin: sp.csr_matrix, root: Array, n_vectors: int, random: np.random.RandomState
) -> tuple[Array, Array]:
    n, unit = len(root), (root / np.linalg.norm(root))[:, None]
    solve = laplacian_solver(thin)

    def long_waves(v: Array) -> Array:
        return root[:, None] * solve(root[:, None] * v.reshape(n, -1))

    def lower(v: Array) -> Array:  # (I − S) v
        return v - S @ v

    def without_trivial(v: Array) -> Array:
        return v - unit @ (unit.T @ v)

    # In units of the thin graph, so that both agree on a smooth vector; in short waves I − S is near I.
    smooth = without_trivial(long_waves(without_trivial(long_waves(random.standard_normal((n, 1))))))
    energy = float((smooth * lower(smooth)).sum())
    factor = energy / float((without_trivial(long_waves(lower(smooth))) * lower(smooth)).sum())

    def metric(v: Array) -> Array:
        return v + factor * long_waves(v).reshape(v.shape)

    operator, inverse = (LinearOperator((n, n), f, matmat=f, dtype=np.float64) for f in (lower, metric))
    start = without_trivial(long_waves(random.standard_normal((n, n_vectors + 2))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # convergence is checked below
        values, vectors = lobpcg(operator, start, M=inverse, Y=unit, largest=False, tol=1e-9, maxiter=60)
    order = np.argsort(values)[:n_vectors]
    values, vectors = values[order], vectors[:, order]
    if np.linalg.norm(lower(vectors) - vectors * values, axis=0).max() <= 1e-7:
        return 1 - values, vectors
    # The kernel is so wide that a thin graph does not resemble it: its eigenvalues are then apart and Lanczos is fast.
    try:
        values, vectors = eigsh(S, n_vectors + 1, which="LA", v0=start[:, 0], ncv=min(n - 1, 2 * n_vectors + 40))
    except ArpackNoConvergence as error:
        raise ConvergenceError(
            f"the eigenvectors of the kernel did not converge ({len(error.eigenvalues)} of {n_vectors + 1} did). "
            "The kernel is too narrow to tell them apart: raise bandwidth_factor."
        ) from error
    return values[:-1], vectors[:, :-1]


def scale_rows(kernel: Kernel, factor: Array) -> None:
    """Replace K_ij by f_i K_ij f_j, in place."""
    if sp.issparse(kernel):
        kernel.data *= np.repeat(factor, np.diff(kernel.indptr))
        kernel.data *= factor[kernel.indices]
    else:
        kernel *= factor
        kernel *= factor[:, None]


def strongest(weights: Kernel, count: int) -> sp.csr_matrix:
    """Keep the `count` largest off-diagonal entries per row, made symmetric: a graph that is cheap to factorise."""
    if sp.issparse(weights):
        keep = []
        for start, stop in pairwise(weights.indptr):
            row = weights.data[start:stop]
            few = np.arange(len(row)) if len(row) <= count + 1 else np.argpartition(row, -count - 1)[-count - 1 :]
            keep.append(start + few)
        index = np.concatenate(keep)
        rows = np.repeat(np.arange(len(keep)), [len(part) for part in keep])
        columns, values = weights.indices[index], weights.data[index]
    else:
        columns = np.argpartition(weights, -count - 1, axis=1)[:, -count - 1 :]
        rows = np.repeat(np.arange(len(weights)), count + 1)
        values, columns = np.take_along_axis(weights, columns, axis=1).ravel(), columns.ravel()
    off = rows != columns
    out = sp.csr_matrix((values[off], (rows[off], columns[off])), shape=weights.shape)
    return out.maximum(out.T).tocsr()


def laplacian_solver(weights: sp.csr_matrix) -> Callable[[Array], Array]:
    """Factor D − W once, to solve (D − W) x = b; a millionth on the diagonal makes it nonsingular."""
    degree = np.asarray(weights.sum(axis=1)).ravel()
    matrix = sp.csc_matrix(sp.diags((1 + 1e-6) * degree) - weights)
    return splu(matrix, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve


def positive_signs(vectors: Array) -> Array:
    """Return the sign, +1 or −1, that skews each column to the positive side.

    A symmetric column has no skew beyond rounding; its first sizeable entry decides.
    """
    size = np.abs(vectors)
    skew = np.power(vectors, 3).sum(axis=0)
    first = np.argmax(size > 0.1 * size.max(axis=0), axis=0)
    tie = np.abs(skew) < 1e-6 * np.power(size, 3).sum(axis=0)
    return np.where(np.where(tie, vectors[first, np.arange(vectors.shape[1])], skew) < 0, -1.0, 1.0)


def _neighbors(points: Array) -> NearestNeighbors:
    threads = -1 if len(points) > 10_000 else None  # for few points they take longer to start than to search
    return NearestNeighbors(algorithm="kd_tree", n_jobs=threads).fit(points)


def _no_distance() -> float:
    raise BurstError("all points are identical; there is nothing to embed. Check that the right columns were read.")
