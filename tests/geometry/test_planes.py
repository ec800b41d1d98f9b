"""Planes of noisy bursts from the means of their neighbours."""

import numpy as np

from pyloca.geometry import BurstStatistics
from pyloca.paper.experiments._measurements import smooth_map

STD, NOISE = 0.01, 0.008


def noisy_bursts(noise, n=400, m=30, seed=0):
    random = np.random.RandomState(seed)
    X = random.uniform(size=(n, 2))
    measure = smooth_map(2, 6, random)
    cloud = X[:, None] + STD * random.standard_normal((n, m, 2))
    clean = measure(cloud.reshape(-1, 2)).reshape(n, m, 6)
    jacobians = np.stack([measure(X + 1e-6 * e) - measure(X - 1e-6 * e) for e in np.eye(2)], axis=1)  # (n, 2, 6)
    return clean + noise * random.standard_normal(clean.shape), jacobians


def angles(tangents, jacobians):
    """Sine of the largest angle between two planes."""
    one, other = (np.linalg.svd(a, full_matrices=False)[2] for a in (tangents, jacobians))
    cosines = np.linalg.svd(np.einsum("nkd,nld->nkl", one, other), compute_uv=False)
    return np.sqrt(np.maximum(1 - cosines[:, -1] ** 2, 0))


def test_planes_of_noisy_bursts_are_those_of_the_surface():
    bursts, jacobians = noisy_bursts(NOISE)
    known = BurstStatistics.from_bursts(bursts, 2, measurement_noise=NOISE)
    own = BurstStatistics.from_bursts(bursts, 2)
    again = known.tilts == 0
    assert again.mean() > 0.5
    assert np.median(angles(known.tangents[again], jacobians[again])) < 0.5 * np.median(
        angles(own.tangents[again], jacobians[again])
    )


def test_with_little_noise_bursts_keep_their_own_planes():
    bursts, _ = noisy_bursts(0.0005)
    assert (BurstStatistics.from_bursts(bursts, 2, measurement_noise=0.0005).tilts > 0).all()
