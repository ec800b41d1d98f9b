"""Which surfaces can bend without stretching, by their tangent planes; no fit is needed."""

import numpy as np
import pytest

from helpers import random_rotation
from pyloca.findings import Diagnostics
from pyloca.findings._bending import bending, curvature_share
from pyloca.geometry import BurstStatistics

SURFACES = {
    "arc": lambda u: np.stack([np.cos(3 * u[:, 0]), np.sin(3 * u[:, 0])], axis=1),
    "circle": lambda u: np.stack([np.cos(2 * np.pi * u[:, 0]), np.sin(2 * np.pi * u[:, 0])], axis=1),
    "sheet": lambda u: np.c_[u, 0 * u[:, :1]],
    "wave": lambda u: np.c_[u, 0.2 * np.sin(6 * u[:, :1])],
    "roll": lambda u: np.stack([np.cos(4 * u[:, 0]), np.sin(4 * u[:, 0]), 4 * u[:, 1]], axis=1),
    "tube": lambda u: np.stack([np.cos(2 * np.pi * u[:, 0]), np.sin(2 * np.pi * u[:, 0]), 6 * u[:, 1]], axis=1),
    "dome": lambda u: np.c_[u, 1.8 * np.square(u - 0.5).sum(axis=1)],
    "saddle": lambda u: np.c_[u, 1.5 * (u[:, 0] - 0.5) ** 2 - 1.5 * (u[:, 1] - 0.5) ** 2],
    "ring": lambda u: np.stack(
        [
            (2 + np.cos(2 * np.pi * u[:, 1])) * np.cos(2 * np.pi * u[:, 0]),
            (2 + np.cos(2 * np.pi * u[:, 1])) * np.sin(2 * np.pi * u[:, 0]),
            np.sin(2 * np.pi * u[:, 1]),
        ],
        axis=1,
    ),
    "rolled volume": lambda u: np.c_[np.cos(3 * u[:, 0]), np.sin(3 * u[:, 0]), 3 * u[:, 1:]],
}
DIMS = {"arc": 1, "circle": 1, "rolled volume": 3}


def surface(name, n=500, seed=0):
    """Places (n, d) and an orthonormal frame (n, k, d) at each."""
    u, step, at = np.random.RandomState(seed).uniform(size=(n, DIMS.get(name, 2))), 1e-5, SURFACES[name]
    tangents = np.stack([(at(u + step * e) - at(u - step * e)) / (2 * step) for e in np.eye(u.shape[1])], axis=1)
    return at(u), np.linalg.svd(tangents, full_matrices=False)[2]


@pytest.mark.parametrize("name", SURFACES)
def test_curvature_that_bending_cannot_undo(name):
    share = curvature_share(*surface(name))
    assert share > 0.16 if name in ("dome", "saddle", "ring") else share < 0.02


@pytest.mark.parametrize("name", ["wave", "saddle", "rolled volume"])
def test_the_share_does_not_depend_on_frame_scale_or_further_dimensions(name):
    positions, frames = surface(name)
    share, (k, d) = curvature_share(positions, frames), frames.shape[1:]
    turn, inner = random_rotation(d + 2, 0)[:d], random_rotation(k, 1)
    assert curvature_share(5 * positions @ turn + 3, inner @ frames @ turn) == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize("name", SURFACES)
def test_what_is_said(name):
    positions, frames = surface(name)
    statistics = BurstStatistics.from_jacobians(positions, frames.transpose(0, 2, 1))
    finding, words = bending(statistics, 1.0, positions, frames)
    assert (finding is not None) == (name in ("arc", "sheet", "wave", "roll", "rolled volume"))
    assert (words != "") == (name in ("circle", "tube"))
    if finding is not None:
        assert finding.name == "bendable" and f"n_components={frames.shape[1]}" in finding.message
    if words:
        assert "It is closed" in words
        page = str(Diagnostics(0.1, 0.1, 0.1, (1.0, 1.0), shape=words))
        assert "shape " in page and "no fault found" in page


def test_few_bursts_are_not_judged():
    positions, frames = surface("sheet", 29)
    statistics = BurstStatistics.from_jacobians(positions, frames.transpose(0, 2, 1))
    assert bending(statistics, 1.0, positions, frames) == (None, "")
