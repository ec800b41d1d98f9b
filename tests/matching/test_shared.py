"""`shared`: canonical directions against scikit-learn, and what is common between instruments."""

import numpy as np
import pytest
from sklearn.cross_decomposition import CCA

from instruments import SIGMA, plan, sheet
from pyloca import LOCA
from pyloca.errors import MatchError
from pyloca.matching import shared
from pyloca.matching._shared import _permuted, canonical


def test_canonical_correlations_are_those_of_scikit_learn():
    random = np.random.RandomState(0)
    A = random.standard_normal((60, 3))
    B = np.column_stack([A[:, 0] + 0.5 * random.standard_normal(60), random.standard_normal((60, 1))])
    values, left, right = canonical(A, B)
    u, v = CCA(2, scale=False, max_iter=5000, tol=1e-12).fit(A, B).transform(A, B)
    naive = [abs(np.corrcoef(u[:, i], v[:, i])[0, 1]) for i in range(2)]
    np.testing.assert_allclose(values, naive, atol=1e-6)
    own = [np.corrcoef(A @ left[i], B @ right[i])[0, 1] for i in range(2)]
    np.testing.assert_allclose(values, own, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(left, axis=1), 1)


def test_chance_is_called_chance():
    random = np.random.RandomState(1)
    small = [_permuted(random.standard_normal((20, 2)), random.standard_normal((20, 2)), 99, i)[0] for i in range(40)]
    assert np.mean(np.array(small) <= 0.05) <= 0.15


def test_one_common_coordinate_of_two(a):
    """The other instrument sees the second coordinate of the plan, and something of its own."""
    random = np.random.RandomState(0)
    own = random.uniform(0, 2, size=150)
    states = np.column_stack([plan(150, 3)[:, 1], own])
    clouds = states[:, None] + SIGMA * random.standard_normal((150, 40, 2))
    other = np.stack([clouds[..., 0] + 0.1 * clouds[..., 1] ** 2, 2 * clouds[..., 1]], axis=2)
    b = LOCA(burst_std=SIGMA, hidden_layers=(10,), random_state=0).fit(other)
    X, w = plan(30, 5), random.uniform(0, 2, size=30)
    readings = sheet(X), np.column_stack([X[:, 1] + 0.1 * w**2, 2 * w])
    found = shared(a, b, readings)
    assert found.n_shared == 1 and found.correlations[0] > 0.98
    assert found.slopes[0] == pytest.approx(1, abs=0.1)
    one, two = found.coordinates(readings[0], "a"), found.coordinates(readings[1], "b")
    assert np.abs(one - two).max() < 0.2 and abs(np.corrcoef(one[:, 0], X[:, 1])[0, 1]) > 0.98
    assert "1 of 2 directions" in str(found) and "common" in found._repr_html_()
    assert len(found.plot().axes[0].patches) == 2
    nothing = shared(a, b, (sheet(X), readings[1][::-1]))
    assert nothing.n_shared == 0
    with pytest.raises(MatchError, match="no coordinate in common"):
        nothing.coordinates(sheet(X), "a")
    with pytest.raises(ValueError, match="no instrument"):
        found.coordinates(sheet(X), "c")


def test_bad_input_is_named(a, b):
    X = plan(5, 5)
    from instruments import gauge

    with pytest.raises(ValueError, match="5 anchors are too few"):
        shared(a, b, (sheet(X), gauge(X)))
    with pytest.raises(ValueError, match="same model"):
        shared(a, a, (sheet(X), sheet(X)))
    with pytest.raises(ValueError, match="n_permutations"):
        shared(a, b, (sheet(X), gauge(X)), n_permutations=5)
    with pytest.raises(ValueError, match="span all"):
        canonical(np.column_stack([np.arange(9.0)] * 2), np.random.RandomState(0).standard_normal((9, 2)))
