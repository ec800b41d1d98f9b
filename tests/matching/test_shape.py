"""Registration by shape: what is found, what is ambiguous, what is refused."""

import numpy as np
import pytest

from helpers import random_rotation
from pyloca.matching._register import Registration
from pyloca.matching._same import SameSupport, overlap, same_density
from pyloca.matching._support import Support, even, thinned
from pyloca.metrics import RigidMap


def uniform(inside, size, n, seed):
    X = np.random.RandomState(seed).uniform(size=(20 * n, len(size))) * size
    return X[inside(X)][:n]


SHAPES = {
    "L": (lambda x: (x[:, 0] < 0.8) | (x[:, 1] < 1.0), (2, 3)),
    "square": (lambda x: np.ones(len(x), dtype=bool), (2, 2)),
    "disc": (lambda x: np.square(x - 1).sum(axis=1) < 1, (2, 2)),
    "bar": (lambda x: np.ones(len(x), dtype=bool), (0.8, 5)),
}


def sample(shape, n, seed):
    return uniform(*SHAPES[shape], n, seed)


def away(points, seed):
    """The same set in other coordinates, and the map there."""
    rigid = RigidMap(random_rotation(points.shape[1], seed), np.random.RandomState(seed).standard_normal(2))
    return rigid.apply(points), rigid


# -- parts ------------------------------------------------------------------------------------------------------


def test_inside_is_one_on_the_points_and_zero_far_away():
    support = Support(sample("L", 300, 0))
    assert support.inside(support.points).min() == 1
    assert support.inside(np.array([[1.8, 2.8], [9.0, 9.0]])).tolist() == [0, 0]
    naive = np.linalg.norm(support.points[:, None] - support.points, axis=2) + 1e9 * np.eye(300)
    assert support.radius == pytest.approx(np.quantile(naive.min(axis=1), 0.98))


def test_even_points_tell_area_not_sampling():
    X = sample("square", 600, 0)
    dense = np.concatenate([X, np.random.RandomState(1).uniform(0, 1, size=(600, 2))])  # a quarter is denser
    part = (even(Support(dense)) < 1).all(axis=1).mean()
    assert 0.2 < part < 0.45 < (dense < 1).all(axis=1).mean()


def test_thinned_sets_are_coarse_enough():
    X = sample("square", 600, 0)
    assert len(thinned(X, 0.0, 10_000)) == 600
    chosen = thinned(X, 0.1, 10_000)
    distance = np.linalg.norm(chosen[:, None] - chosen, axis=2) + 1e9 * np.eye(len(chosen))
    assert np.median(distance.min(axis=1)) >= 0.1


def test_the_same_support_is_seldom_called_different():
    p = [
        SameSupport(sample("L", 120, i), sample("L", 120, 100 + i), unevenness=3.0, draws=99).p_value for i in range(10)
    ]
    assert min(p) >= 0.02 and np.mean(p) > 0.3


def test_uneven_sampling_is_not_another_support():
    X = sample("square", 600, 0)
    denser = X[np.random.RandomState(1).uniform(size=600) < np.where(X[:, 0] > 1, 0.9, 0.3)]
    assert SameSupport(denser, sample("square", 300, 2), unevenness=3.0).p_value > 0.05
    assert same_density(denser, sample("square", 300, 2)) < 0.01


def test_other_supports_are_different():
    assert SameSupport(sample("square", 200, 0), sample("L", 200, 1), unevenness=3.0).p_value < 0.01


def test_equal_densities_are_equal():
    assert same_density(sample("L", 200, 0), sample("L", 200, 1)) > 0.01


def test_overlap_of_disjoint_sets_is_zero():
    X = sample("L", 200, 0)
    assert overlap(Support(X), Support(X + 10)) == 0
    assert overlap(Support(X), Support(X)) == 1


# -- the whole --------------------------------------------------------------------------------------------------


def possible(found):
    return [one for one in found if one.possible]


def test_an_asymmetric_shape_has_one_answer():
    A, B = sample("L", 250, 0), sample("L", 250, 1)
    moved, rigid = away(B, 3)
    found = Registration(A, moved).search()
    assert len(possible(found)) == 1 and found[0].possible
    assert np.sqrt(np.square(found[0].rigid.apply(A) - rigid.apply(A)).sum(axis=1).mean()) < 0.15


def test_a_square_has_eight():
    found = Registration(sample("square", 250, 0), away(sample("square", 250, 1), 4)[0]).search()
    assert len(possible(found)) == 8


@pytest.mark.slow
def test_a_disc_has_infinitely_many():
    registration = Registration(sample("disc", 250, 0), away(sample("disc", 250, 1), 4)[0])
    found = possible(registration.search())
    assert len(found) > 8 and registration.continuous([one.rigid for one in found])


def test_a_bar_has_four_and_no_continuum():
    registration = Registration(sample("bar", 250, 0), away(sample("bar", 250, 1), 4)[0])
    found = possible(registration.search())
    assert len(found) == 4 and not registration.continuous([one.rigid for one in found])


def test_a_line_in_one_dimension():
    A, B = np.random.RandomState(0).uniform(size=(2, 100, 1))
    found = Registration(A, 5 - B).search()
    assert len(possible(found)) == 2


def test_different_shapes_have_none():
    found = Registration(sample("square", 250, 0), sample("bar", 250, 1)).search()
    assert not possible(found) and found[0].p_value < 0.01


def test_a_scale_is_found():
    A, B = sample("L", 250, 0), sample("L", 250, 1)
    found = Registration(A, away(B, 3)[0] * 7, scale=True).search()
    assert len(possible(found)) == 1
    assert found[0].rigid.scale == pytest.approx(7, rel=0.1)


@pytest.mark.slow
def test_three_dimensions():
    def inside(x):
        return (x[:, 0] < 0.7) | ((x[:, 1] < 0.8) & (x[:, 2] < 1.0))

    A, B = uniform(inside, (2, 2.5, 3), 400, 0), uniform(inside, (2, 2.5, 3), 400, 1)
    rotation = random_rotation(3, 2)
    found = Registration(A, B @ rotation + 1).search()
    assert len(possible(found)) == 1
    assert np.sqrt(np.square(found[0].rigid.apply(A) - A @ rotation - 1).sum(axis=1).mean()) < 0.4


def test_a_pair_decides_between_symmetric_answers():
    A, B = sample("bar", 250, 0), sample("bar", 250, 1)
    moved, rigid = away(B, 3)
    corner = np.array([[0.1, 0.1]])
    registration = Registration(A, moved, pairs=(corner, rigid.apply(corner), 1e-3))
    found = [one for one in possible(registration.search()) if registration.misfit(one.rigid) < 14]
    assert len(found) == 1
    assert np.sqrt(np.square(found[0].rigid.apply(A) - rigid.apply(A)).sum(axis=1).mean()) < 0.2
