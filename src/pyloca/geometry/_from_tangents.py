"""Statistics of bursts whose covariances or Jacobians were obtained elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pyloca.errors import BurstError
from pyloca.geometry._refusals import as_counts, as_finite, check_k, refuse_few
from pyloca.geometry._spectra import intrinsic_dim_from_spectra

__all__ = ["fields_from_covariances", "fields_from_jacobians"]


def fields_from_covariances(
    means: ArrayLike, covariances: ArrayLike, intrinsic_dim: int | None, counts: ArrayLike | None
) -> dict[str, Any]:
    """Take the leading eigenvectors; see `BurstStatistics.from_covariances`."""
    means, covariances = as_finite(means, "means", 2), as_finite(covariances, "covariances", 3)
    n, dim = means.shape
    refuse_few(n)
    if covariances.shape != (n, dim, dim):
        raise BurstError(f"covariances has shape {covariances.shape}; expected {(n, dim, dim)}, to match means.")
    asymmetry = np.abs(covariances - covariances.transpose(0, 2, 1)).max(axis=(1, 2))
    worst = int(np.argmax(asymmetry - 1e-8 * np.abs(covariances).max(axis=(1, 2))))
    if asymmetry[worst] > 1e-8 * np.abs(covariances[worst]).max():
        raise BurstError(f"covariance {worst} is not symmetric (by {asymmetry[worst]:.3g}).")
    values, vectors = np.linalg.eigh(covariances)
    values, vectors = values[:, ::-1], vectors[:, :, ::-1]
    negative = np.flatnonzero(values[:, -1] < -1e-8 * values[:, 0])
    if len(negative):
        raise BurstError(f"covariance {negative[0]} has the negative eigenvalue {values[negative[0], -1]:.3g}.")
    values = np.maximum(values, 0)
    k = check_k(intrinsic_dim_from_spectra(values, dim) if intrinsic_dim is None else intrinsic_dim, dim)
    tangents = np.sqrt(values[:, :k, None]) * vectors[:, :, :k].transpose(0, 2, 1)  # (N, k, D)
    return {
        "means": means,
        "tangents": tangents,
        "counts": as_counts(counts, n),
        "residuals": values[:, k:].sum(axis=1),
    }


def fields_from_jacobians(anchors: ArrayLike, jacobians: ArrayLike, counts: ArrayLike | None) -> dict[str, Any]:
    """Take the columns, made orthogonal; see `BurstStatistics.from_jacobians`."""
    anchors, jacobians = as_finite(anchors, "anchors", 2), as_finite(jacobians, "jacobians", 3)
    refuse_few(len(anchors))
    if jacobians.shape[:2] != anchors.shape:
        raise BurstError(f"jacobians has shape {jacobians.shape}; expected (N, D, k) with N, D = {anchors.shape}.")
    check_k(jacobians.shape[2], anchors.shape[1])
    _, singular, rows = np.linalg.svd(jacobians.transpose(0, 2, 1), full_matrices=False)  # (N, k), (N, k, D)
    return {
        "means": anchors,
        "tangents": singular[:, :, None] * rows,
        "counts": as_counts(counts, len(anchors)),
        "residuals": np.zeros(len(anchors)),
    }
