"""Surfaces that can bend without stretching: bursts see lengths on a surface, and these leave its shape in space open.

An isometry preserves the curvature of Gauss and Riemann. Where there is none, a sheet can be rolled up, as paper can;
where there is, as on a dome or a saddle, smooth surfaces of that metric have hardly any freedom left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pyloca.alignment import align
from pyloca.errors import BurstError
from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstStatistics, sample_rows
from pyloca.thresholds import CURED, EMPTY, FEW, RIGID, SAMPLE, SLIGHT_BEND

__all__ = ["bending", "curvature_share", "empty_components"]

Array = NDArray[np.float64]

NEAR = 5  # neighbours per dimension of the surface, from which its bends are measured


def bending(
    statistics: BurstStatistics, burst_std: float, positions: Array, frames: Array
) -> tuple[Finding | None, str]:
    """Check whether bursts determine the shape of a surface in more dimensions than it has itself.

    Parameters
    ----------
    statistics : BurstStatistics
    burst_std : float
        σ.
    positions : (N, d) array
        The embedding, d > k.
    frames : (N, k, d) array
        The tangents in it.

    Returns
    -------
    finding : Finding or None
        "bendable", if k dimensions would hold the surface.
    words : str
        What to say of a closed surface, which needs more than k; "" otherwise.
    """
    k, d = frames.shape[1:]
    if len(statistics) < FEW or (k > 1 and not RIGID.passed(curvature_share(positions, frames))):
        return None, ""
    what = "a curve" if k == 1 else "this surface"
    free = (
        f"bursts tell lengths along {what}, and it can bend without stretching: its shape in {d} dimensions is one of"
    )
    some = statistics[sample_rows(len(statistics), SAMPLE)]
    try:
        flat, bent = (align(some, dim, burst_std=burst_std, random_state=0).strain for dim in (k, d))
    except BurstError:  # the sample is too sparse to be connected
        return None, f"{free} many"
    if flat > 0 and CURED.passed(bent / flat):
        return None, f"{free} many. It is closed, so that {k} dimension{'s' * (k > 1)} cannot hold it"
    return (
        Finding(
            "bendable",
            f"{free} many that fit the bursts equally well, and neither σ nor known distances along it decide. Use "
            f"n_components={k}: coordinates along {what} are determined.",
        ),
        "",
    )


def empty_components(positions: Array, k: int) -> str:
    """Say how many components hold nothing, as where a dome is fitted in four dimensions.

    Parameters
    ----------
    positions : (N, d) array
    k : int
        Intrinsic dimension.

    Returns
    -------
    str
        "" if all are used.

    Examples
    --------
    >>> empty_components(np.random.RandomState(0).uniform(size=(50, 4)) * [1, 1, 1, 1e-4], 2)
    'it lies in 3 dimensions: one of the 4 components is empty, and n_components=3 is enough'
    """
    widths = np.linalg.svd(positions - positions.mean(axis=0), compute_uv=False)
    d, used = positions.shape[1], max(int((widths > EMPTY * widths[0]).sum()), k)
    if used == d:
        return ""
    few = "one of" if d - used == 1 else f"{d - used} of"
    return (
        f"it lies in {used} dimension{'s' * (used > 1)}: {few} the {d} components {'is' if d - used == 1 else 'are'} "
        f"empty, and n_components={used} is enough"
    )


def curvature_share(positions: Array, frames: Array) -> float:
    """Compute how much of a surface's bending is curvature that cannot be undone without stretching.

    The second fundamental form B at a point is how tangent planes turn from there to the neighbours, by least squares.
    Gauss's equation gives the curvature tensor, R_abcd = B_ac · B_bd − B_ad · B_bc.

    Parameters
    ----------
    positions : (N, d) array
    frames : (N, k, d) array
        Rows that span the tangent plane at each position.

    Returns
    -------
    float
        ⟨|R|⟩ ρ² / (0.3 + ⟨|B|²⟩ ρ²), with |R| the curvature of Gauss for k = 2 and ρ the radius of a ball as wide as
        the positions: 0 for curves and for what can be unrolled, at most ½ for k = 2 (a large part of a sphere).

    Examples
    --------
    >>> import numpy as np
    >>> u = np.random.RandomState(0).uniform(-1, 1, size=(400, 2))
    >>> rolled = np.stack([np.sin(u[:, 0]), np.cos(u[:, 0]), u[:, 1]], axis=1)
    >>> along, across = np.stack([rolled[:, 1], -rolled[:, 0], 0 * u[:, 0]], axis=1), np.tile([0.0, 0.0, 1.0], (400, 1))
    >>> round(curvature_share(rolled, np.stack([along, across], axis=1)), 3)
    0.0
    >>> ball = np.random.RandomState(0).standard_normal((400, 3))
    >>> ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    >>> round(curvature_share(ball, np.linalg.svd(ball[:, None])[2][:, 1:]), 1)
    0.5
    """
    rows = sample_rows(len(positions), SAMPLE)
    positions, basis = positions[rows], np.linalg.svd(frames[rows], full_matrices=False)[2]  # (n, k, d)
    n, k, d = basis.shape
    count = min(NEAR * k, n - 1)
    near = cKDTree(positions).query(positions, count + 1)[1][:, 1:]  # (n, m)
    steps = np.einsum("nkd,nmd->nmk", basis, positions[near] - positions[:, None])
    left, _, right = np.linalg.svd(np.einsum("nkd,nmld->nmkl", basis, basis[near]))
    turns = left @ right  # (n, m, k, k): take the neighbour's frame to the own, as near as possible
    turned = turns @ basis[near]
    turned -= np.einsum("nmkd,nld,nle->nmke", turned, basis, basis)  # off the plane: B(step)
    ends = [(a, b) for a in range(k) for b in range(a, k)]
    design = np.zeros((n, count, k, len(ends)))
    for column, (a, b) in enumerate(ends):  # B is symmetric
        design[:, :, a, column] = steps[:, :, b]
        design[:, :, b, column] = steps[:, :, a]
    solved = np.linalg.pinv(design.reshape(n, -1, len(ends))) @ turned.reshape(n, -1, d)
    form = np.empty((n, k, k, d))
    for column, (a, b) in enumerate(ends):
        form[:, a, b] = form[:, b, a] = solved[:, column]
    product = np.einsum("nacx,nbdx->nabcd", form, form)
    riemann = product - product.transpose(0, 1, 2, 4, 3)
    # Small wiggles of the embedding have curvature of either sign, which the mean over neighbours takes away.
    around = np.einsum("nmae,nmbf,nmcg,nmdh,nmefgh->nabcd", turns, turns, turns, turns, riemann[near], optimize=True)
    riemann = (riemann + around) / (count + 1)
    size = np.sqrt(np.square(riemann).sum(axis=(1, 2, 3, 4))) / 2
    radius = (k + 2) / k * float(positions.var(axis=0).sum())
    bent = float(np.square(form).sum(axis=(1, 2, 3)).mean())
    return float(size.mean() * radius / (SLIGHT_BEND + bent * radius))
