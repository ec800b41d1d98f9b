"""Local pictures of bursts whose perturbations are known: the Jacobian by regression, and what its error is worth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.geometry._local import Local
from pyloca.geometry._refusals import refuse_bad_values

__all__ = ["Regression", "counts_from_losses", "look_by_regression", "regress"]

Array = NDArray[np.float64]

# A direction of the quadratic design shorter than this part of it is rounding: a ring has no z₀² + z₁² of its own.
SAME_DIRECTION = 1e-6
# Residuals of a burst are pooled with this many degrees of freedom of a typical one: a stencil leaves a burst but one.
PRIOR_FREEDOM = 4.0
# Most that a regression counts as. Beyond it an encoder, not the Jacobian, is what is wrong: the likelihood would be
# that of a few bursts, and every burst would be suspect.
MOST_POINTS = 10_001.0


def look_by_regression(bursts: Bursts) -> Local:
    """Compute the local pictures of bursts with known perturbations.

    Tangents are σ J, whatever the size of the perturbations: a burst of size σ in all directions.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    Local
    """
    n, dim, k = len(bursts), bursts.n_features, int(bursts.perturbed_dim or 0)
    sigma = float(bursts.burst_std or 1)
    seen = Local.empty(n, k, dim)
    losses, freedom = np.empty(n), np.empty(n)
    for rows, block in bursts.blocks():
        refuse_bad_values(bursts, rows, block)
        found = regress(block, bursts.perturbations_of(rows))
        _, singular, axes = np.linalg.svd(sigma * found.jacobians, full_matrices=False)
        seen.means[rows], seen.tangents[rows] = found.means, singular[:, :, None] * axes
        seen.residuals[rows], losses[rows], freedom[rows] = found.residuals, found.losses, found.freedom
        seen.tilts[rows] = found.tilts
    return seen._replace(counts=counts_from_losses(losses, freedom, k))


class Regression(NamedTuple):
    """Regressions of b bursts on their perturbations.

    Attributes
    ----------
    means : (b, D) array
        The readings at z = 0.
    jacobians : (b, k, D) array
        Their derivatives by z, at z = 0.
    losses : (b,) array
        Expected whitening loss from the error of the Jacobian, see `regress`; nan without residuals.
    residuals : (b,) array
        Trace of the covariance of the residuals.
    freedom : (b,) array
        Their degrees of freedom.
    quadratic : (b,) array of bool
        Whether a quadratic term was used.
    tilts : (b,) array
        Square of the angle by which the error of the Jacobian tilts a tangent; 0 without residuals.

    Examples
    --------
    See `regress`.
    """

    means: Array
    jacobians: Array
    losses: Array
    residuals: Array
    freedom: Array
    quadratic: NDArray[np.bool_]
    tilts: Array


def regress(block: Array, perturbations: Array) -> Regression:
    """Regress the readings of bursts of equal length on their perturbations: y = μ + J z + ½ z H z + error.

    The quadratic term takes away what curvature does to μ and J, and adds variance. A burst has it if the square of
    what it changes in μ + J z over the burst is more than twice what noise alone would change (an unbiased estimate of
    the bias it removes then exceeds the variance that it adds). Directions of H in which the perturbations cannot tell
    it from μ + J z are left out.

    An error E of the Jacobian, seen after a perfect encoder, makes G = (1 + E)(1 + E)ᵀ, with an expected loss of
    ½ E‖E + Eᵀ‖² = tr V tr C + tr V C. V is the covariance of the coefficients of z for errors of unit variance, C the
    covariance of the residuals, brought to the latent space by the pseudo-inverse of J.

    The error also makes G too large, by V tr C on average. And where J came out too large, C came out too small and the
    burst counts too much, which adds B + Bᵀ to the weighted mean of G, with B = 2 V (C tr V + C V) C / loss. J is
    multiplied by (1 + V tr C + B + Bᵀ)^(−1/2), so that G is right on average, as it is for the covariance of a sample.

    Parameters
    ----------
    block : (b, M, D) array
    perturbations : (b, M, k) array
        z, from the state of the burst, up to a rotation per burst.

    Returns
    -------
    Regression

    Examples
    --------
    >>> import numpy as np
    >>> z = 0.1 * np.random.RandomState(0).standard_normal((1, 20, 1))
    >>> found = regress(np.concatenate([2 * z + z**2, 3 - z], axis=2), z)
    >>> np.abs(found.means - [0, 3]).max() < 1e-9, np.abs(found.jacobians - [2, -1]).max() < 1e-9
    (np.True_, np.True_)
    """
    n, m, _ = block.shape
    k = perturbations.shape[2]
    size = np.sqrt(np.square(perturbations).sum(axis=2).mean(axis=1))[:, None, None]
    z = perturbations / size
    centre = block.mean(axis=1, keepdims=True)
    y = block - centre
    basis, triangle = np.linalg.qr(np.concatenate([np.ones((n, m, 1)), z], axis=2))  # (b, M, 1 + k), of μ + J z
    affine = basis.transpose(0, 2, 1) @ y  # (b, 1 + k, D)
    left = y - basis @ affine  # residuals of the linear model
    spare = np.full(n, m - 1.0 - k)

    squares = _squares(z)  # (b, M, q)
    inside = basis.transpose(0, 2, 1) @ squares  # (b, 1 + k, q)
    outer, length, inner = np.linalg.svd(squares - basis @ inside, full_matrices=False)
    whole = np.sqrt(np.square(squares).sum(axis=(1, 2)))
    kept = length > SAME_DIRECTION * whole[:, None]
    outer = outer * kept[:, None, :]
    leak = inside @ inner.transpose(0, 2, 1) * np.divide(1, length, out=np.zeros_like(length), where=kept)[:, None]
    along = outer.transpose(0, 2, 1) @ y  # (b, q, D)
    change = leak @ along  # of `affine`, by the quadratic term
    rest = left - outer @ along
    freedom = spare - kept.sum(axis=1)
    variance = _sum(np.square(rest)) / np.maximum(freedom, 1)
    quadratic = (freedom > 0) & (_sum(np.square(change)) > 2 * variance * _sum(np.square(leak)))

    used = quadratic[:, None, None]
    back = np.linalg.inv(triangle)
    coefficients = back @ (affine - used * change)  # (b, 1 + k, D)
    residuals, freedom = np.where(used, rest, left), np.where(quadratic, freedom, spare)
    spread = np.concatenate([back, used * (back @ leak)], axis=2)[:, 1:] / size  # (b, k, ·), a root of V
    jacobians = coefficients[:, 1:] / size
    means = centre[:, 0] + coefficients[:, 0]
    degrees = np.maximum(freedom, 1)  # without residuals there is nothing to divide
    latent = residuals @ np.linalg.pinv(jacobians)  # (b, M, k)
    v, c = _gram(spread), _gram(latent.transpose(0, 2, 1)) / degrees[:, None, None]
    losses = _trace(v) * _trace(c) + _trace(v @ c)
    tilts = _tilts(jacobians, v, residuals) / degrees
    jacobians = _inverse_root(np.eye(k) + _excess(v, c, losses)) @ jacobians
    losses[freedom == 0] = np.nan
    return Regression(means, jacobians, losses, _sum(np.square(residuals)) / degrees, freedom, quadratic, tilts)


def counts_from_losses(losses: Array, freedom: Array, k: int) -> Array:
    """Compute the points of a sampled burst with the same expected loss, k(k + 1) / (2 (M − 1)).

    Parameters
    ----------
    losses, freedom : (N,) array
        As `regress` gives them; losses are nan where there are no residuals.
    k : int
        Intrinsic dimension.

    Returns
    -------
    (N,) array
        At most 10,001; infinite if no burst has residuals, so that nothing is known about the error.
    """
    known = freedom > 0
    if not known.any():
        return np.full(len(losses), np.inf)
    typical = float(np.median(losses[known]))
    pooled = (np.where(known, freedom * losses, 0) + PRIOR_FREEDOM * typical) / (freedom + PRIOR_FREEDOM)
    least = k * (k + 1) / (2 * (MOST_POINTS - 1))
    return 1 + k * (k + 1) / (2 * np.maximum(pooled, least))


def _excess(v: Array, c: Array, losses: Array) -> Array:
    """Compute by how much errors make the weighted mean of G too large, (b, k, k); see `regress`."""
    loss = np.maximum(losses, np.finfo(float).tiny)[:, None, None]
    product = 2 * v @ (_trace(v)[:, None, None] * c + c @ v) @ c / loss
    return np.asarray(_trace(c)[:, None, None] * v + product + product.transpose(0, 2, 1))


def _tilts(jacobians: Array, v: Array, residuals: Array) -> Array:
    """Compute the largest squared angle between a tangent and where it is without errors, times the freedom, (b,)."""
    turn, singular, axes = np.linalg.svd(jacobians, full_matrices=False)  # of latent directions, (b, k), of the data
    off = _sum(np.square(residuals)) - _sum(np.square(residuals @ axes.transpose(0, 2, 1)))
    spread = np.einsum("bak,bac,bck->bk", turn, v, turn)
    return np.asarray((spread / np.maximum(np.square(singular), 1e-300)).max(axis=1) * np.maximum(off, 0))


def _inverse_root(matrices: Array) -> Array:
    values, axes = np.linalg.eigh(matrices)
    values = np.maximum(values, 1)  # the correction only shrinks J; rounding may say otherwise where all is noise
    return np.asarray((axes / np.sqrt(values)[:, None]) @ axes.transpose(0, 2, 1))


def _gram(matrices: Array) -> Array:
    return np.asarray(matrices @ matrices.transpose(0, 2, 1))


def _squares(z: Array) -> Array:
    """Return the products z_a z_b, a ≤ b, weighted so that a rotation of z is one of them, (b, M, k (k + 1) / 2)."""
    a, b = np.triu_indices(z.shape[2])
    return z[..., a] * z[..., b] * np.where(a == b, 1.0, np.sqrt(2))


def _sum(values: Array) -> Array:
    return np.asarray(values.sum(axis=(1, 2)))


def _trace(matrices: Array) -> Array:
    return np.asarray(np.trace(matrices, axis1=1, axis2=2))
