"""Start for d = k: one rotation per burst from the connection Laplacian."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import lobpcg, splu

from pyloca._filters import without_warnings
from pyloca.alignment._edges import Edges
from pyloca.geometry import BurstStatistics

__all__ = ["polar", "synchronize"]

INVERSE_ITERATIONS = 10


def polar(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest matrices with orthonormal rows to `matrices` (…, k, d), k ≤ d."""
    left, _, right = np.linalg.svd(matrices, full_matrices=False)
    return left @ right


def synchronize(statistics: BurstStatistics, edges: Edges, random: np.random.RandomState) -> NDArray[np.float64]:
    """Find frames F_i ∈ O(k), (N, k, k), with F_i ≈ O_ij F_j on every edge, O_ij the transport from j to i.

    O_ij is the polar factor of A_i A_j⁺. The frames are the top k eigenvectors of the normalised connection matrix
    (Singer and Wu, vector diffusion maps), rounded to orthogonal blocks.
    """
    basis, scale = statistics.frames()
    n, k = len(statistics), statistics.intrinsic_dim
    overlap = np.einsum("ekd,eld->ekl", basis[edges.heads], basis[edges.tails])  # (E, k, k)
    ratio = scale[edges.heads][:, :, None] / scale[edges.tails][:, None, :]
    # A_i A_j⁺ and the transpose of A_j A_i⁺ agree for a rotation; their sum treats both ends alike.
    transport = polar(overlap * ratio + overlap / ratio)
    block = sp.bsr_matrix(_blocks(edges, transport, n), shape=(n * k, n * k), blocksize=(k, k)).tocsr()
    matrix = block + block.T
    degree = np.repeat(np.bincount(np.r_[edges.heads, edges.tails], np.r_[edges.weights, edges.weights], n), k)
    inverse_root = sp.diags(1 / np.sqrt(degree))
    vectors = _top_eigenvectors(inverse_root @ matrix @ inverse_root, k, random)
    return polar((vectors / np.sqrt(degree)[:, None]).reshape(n, k, k))


def _top_eigenvectors(matrix: sp.csr_matrix, k: int, random: np.random.RandomState) -> NDArray[np.float64]:
    """Compute the k top eigenvectors of the normalised connection matrix, whose eigenvalues are at most 1.

    They belong to an eigenvalue of multiplicity k when the latent space is flat, which a Lanczos method misses; both
    ways here iterate on a block. Factoring is fast on graphs of curves and surfaces, where the eigenvalue gap is small;
    in higher dimensions fill-in grows but so does the gap, and LOBPCG needs no factors.
    """
    block = random.standard_normal((matrix.shape[0], k + 2))
    if k > 2:
        with without_warnings(UserWarning):  # short of its tolerance is fine: the frames are rounded and refined
            return lobpcg(matrix, block, largest=True, tol=1e-4, maxiter=300)[1][:, :k]
    factor = splu(sp.csc_matrix((1 + 1e-9) * sp.eye(len(block)) - matrix), permc_spec="MMD_AT_PLUS_A")
    for _ in range(INVERSE_ITERATIONS):
        block = np.linalg.qr(factor.solve(block))[0]
    vectors = np.linalg.eigh(block.T @ (matrix @ block))[1][:, ::-1]
    return block @ vectors[:, :k]


def _blocks(
    edges: Edges, transport: NDArray[np.float64], n: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return Σ w O_ij at block (i, j) in block-sparse-row form, from edges in any order."""
    order = np.argsort(edges.heads, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(edges.heads, minlength=n))])
    return (edges.weights[:, None, None] * transport)[order], edges.tails[order], starts
