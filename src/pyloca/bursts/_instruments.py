"""Bursts from measurements that can be repeated at will: a function, an array of sensors, a surface."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from pyloca._arguments import as_numbers, as_random, check_count, check_real
from pyloca.bursts._arrays import Array, Measurement, as_points, measure
from pyloca.bursts._container import Bursts
from pyloca.errors import BurstError

__all__ = ["from_function", "on_manifold", "sensor_array"]


def from_function(
    f: Measurement,
    latents: ArrayLike,
    burst_std: float,
    n_points: int,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Bursts:
    """Perturb each latent by Gaussian noise and measure: f(x_i + σ Z), equation (1) of the paper.

    Parameters
    ----------
    f : callable
        The instrument, (n, d) → (n, D). It is called once.
    latents : array of shape (N, d)
        The states x_i.
    burst_std : float
        σ, small against the bends of `f`.
    n_points : int
        Measurements per burst, at least d + 1.
    random_state : int, RandomState or None
        Draws the perturbations; an integer draws the same ones each time.

    Returns
    -------
    Bursts
        N bursts that know their σ and their perturbations.

    Raises
    ------
    BurstError
        If `latents` or what `f` returns are not finite numbers of the right shape.
    ValueError
        If another argument is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from_function(lambda x: np.c_[x, x[:, 0] ** 2], np.zeros((20, 2)), 0.01, 30)
    Bursts(N=20, M=30, D=3)
    """
    X = as_points(latents, "latents")
    check_real("burst_std", burst_std)
    check_count("n_points", n_points, X.shape[1] + 1)
    random = as_random(random_state)
    steps = float(burst_std) * random.standard_normal((len(X), n_points, X.shape[1]))
    return Bursts(
        measure(f, X[:, None] + steps),
        burst_std=float(burst_std),
        perturbations=steps,
        provenance=f"from_function: {n_points} Gaussian perturbations of σ = {burst_std:g} pushed through f",
    )


def sensor_array(
    f: Measurement,
    positions: ArrayLike,
    radius: float = 1.0,
    n_receivers: int = 6,
    *,
    stencil: ArrayLike | None = None,
    whiten: bool = False,
) -> Bursts:
    """Carry an array of receivers to each position and measure with all of them: f(x_i + s_j).

    Parameters
    ----------
    f : callable
        What a receiver measures at a place, (n, d) → (n, D). It is called once.
    positions : array of shape (N, d)
        The places x_i.
    radius : float
        Of the ring; a `stencil` is multiplied by it.
    n_receivers : int
        Receivers on the ring, at least 3.
    stencil : array of shape (M, d), optional
        Offsets s_j of your own receivers, in place of a ring. It may be longer one way than another.
    whiten : bool
        Whether to make such a stencil isotropic. This moves the receivers, so it is only for those you can move. LOCA
        does not need it, since the bursts know their perturbations; methods that do not use these do.

    Returns
    -------
    Bursts
        N bursts of M measurements that know their perturbations. Their σ is that of the centred stencil; a ring has
        σ² = r²/2 · M/(M − 1).

    Raises
    ------
    BurstError
        If the stencil does not span all directions; if `positions` or the values of `f` are not finite numbers of the
        right shape.
    ValueError
        If `radius` or `n_receivers` is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> sensor_array(lambda x: np.c_[x, x[:, 0] * x[:, 1]], np.zeros((20, 2)), radius=0.01, n_receivers=5)
    Bursts(N=20, M=5, D=3)
    """
    X = as_points(positions, "positions")
    check_real("radius", radius)
    radius = float(radius)
    if stencil is None:
        if X.shape[1] != 2:
            raise BurstError(f"positions have {X.shape[1]} coordinates; a ring lies in a plane. Pass a stencil (M, d).")
        check_count("n_receivers", n_receivers, 3)
        angle = 2 * np.pi * np.arange(n_receivers) / n_receivers
        offsets = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        name = f"ring of {n_receivers} receivers"
    else:
        offsets = as_points(stencil, "stencil")
        name = f"stencil of {len(offsets)} receivers"
    if offsets.shape[1] != X.shape[1]:
        raise BurstError(f"the stencil has {offsets.shape[1]} coordinates and the positions have {X.shape[1]}.")
    if len(offsets) < X.shape[1] + 1:
        raise BurstError(f"{len(offsets)} receivers cannot span {X.shape[1]} directions; use {X.shape[1] + 1} or more.")
    centred = radius * (offsets - offsets.mean(axis=0))
    variances, axes = np.linalg.eigh(centred.T @ centred / (len(centred) - 1))
    if variances[0] <= 1e-12 * variances[-1]:
        raise BurstError("the receivers lie on a line or in a plane of their space; they must span all directions.")
    if variances[-1] > (1 + 1e-6) * variances[0] and whiten:
        level = np.exp(np.log(variances).mean())
        centred = centred @ axes * np.sqrt(level / variances) @ axes.T
        name += ", whitened"
        variances = np.full_like(variances, level)
    sigma = float(np.sqrt(variances.mean()))
    return Bursts(
        measure(f, X[:, None] + centred),
        burst_std=sigma,
        perturbations=np.tile(centred, (len(X), 1, 1)),
        provenance=f"sensor_array: {name}, radius {radius:g}, σ = {sigma:g}",
    )


def on_manifold(
    f: Measurement,
    latents: ArrayLike,
    burst_std: float,
    n_points: int,
    *,
    surface: Callable[[Array], Array] | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Bursts:
    """Perturb each latent within a curved manifold and measure: steps in its tangent plane, laid onto it.

    Parameters
    ----------
    f : callable
        The instrument, (n, d) → (n, D). It is called once.
    latents : array of shape (N, d)
        States on the manifold.
    burst_std : float
        σ, small against the bends of the manifold and of `f`.
    n_points : int
        Measurements per burst, at least one more than the manifold has tangents.
    surface : callable, optional
        Maps points (n, d) near your manifold to the nearest on it; its differences tell the tangent plane. None: a
        sphere about the origin through each latent.
    random_state : int, RandomState or None
        Draws the perturbations; an integer draws the same ones each time.

    Returns
    -------
    Bursts
        N bursts that know their σ and their perturbations: the steps, along tangents that differ from burst to burst.

    Raises
    ------
    BurstError
        If `surface` does not map to one smooth surface; if `latents` or what `f` returns are not finite numbers of the
        right shape.
    ValueError
        If another argument is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> on_manifold(lambda x: x[:, :2] / (4 - x[:, 2:]), np.eye(3), burst_std=0.01, n_points=30)
    Bursts(N=3, M=30, D=2)
    """
    X = as_points(latents, "latents")
    check_real("burst_std", burst_std)
    burst_std = float(burst_std)
    project = _sphere(X) if surface is None else surface
    basis = _tangents(project, X, burst_std)
    check_count("n_points", n_points, basis.shape[1] + 1)
    steps = burst_std * as_random(random_state).standard_normal((len(X), n_points, basis.shape[1]))
    cloud = X[:, None] + np.einsum("nmk,nkd->nmd", steps, basis)
    n, m, d = cloud.shape
    radius = np.linalg.norm(X, axis=1)
    if surface is None:  # along great circles, so that a burst is as wide on the sphere as in the plane
        step = np.linalg.norm(steps, axis=2) / radius[:, None]
        direction = (
            np.einsum("nmk,nkd->nmd", steps, basis) / np.maximum(np.linalg.norm(steps, axis=2), 1e-300)[..., None]
        )
        cloud = np.cos(step)[..., None] * X[:, None] + (np.sin(step) * radius[:, None])[..., None] * direction
    else:
        cloud = as_numbers("what surface returns", project(cloud.reshape(n * m, d)), BurstError).reshape(n, m, d)
    kind = "sphere" if surface is None else "surface"
    return Bursts(
        measure(f, cloud),
        burst_std=float(burst_std),
        perturbations=steps,
        provenance=f"on_manifold: tangent Gaussian bursts of σ = {burst_std:g} on a {kind}",
    )


def _sphere(X: Array) -> Callable[[Array], Array]:
    radius = np.linalg.norm(X, axis=1)
    if radius.min() <= 1e-12 * radius.max():
        raise BurstError(f"latent {int(np.argmin(radius))} is at the origin, so there is no sphere through it.")
    return lambda points: points * (radius / np.linalg.norm(points, axis=1))[:, None]


def _tangents(project: Callable[[Array], Array], X: Array, size: float) -> Array:
    """Orthonormal tangents (N, k, d): the directions that a projection onto the surface leaves as they are."""
    d = X.shape[1]
    step = 1e-3 * size
    moved = np.stack(
        [np.asarray(project(X + step * axis)) - np.asarray(project(X - step * axis)) for axis in np.eye(d)]
    )
    matrix = moved.transpose(1, 0, 2) / (2 * step)  # (N, d, d), a projection when the surface is smooth
    _, values, rows = np.linalg.svd(matrix)
    ranks = (values > 0.5).sum(axis=1)
    if np.any(ranks != ranks[0]) or not 1 <= ranks[0] < d:
        i = int(np.argmax(ranks != ranks[0])) if np.any(ranks != ranks[0]) else 0
        raise BurstError(
            f"the surface has {ranks[i]} tangents at latent {i} and {ranks[0]} at latent 0, in {d} dimensions. "
            "`surface` must map a point to the nearest on one smooth surface."
        )
    return rows[:, : ranks[0]]
