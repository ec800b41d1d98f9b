"""The paper's data: its counts and shapes, bursts that are what they claim to be, and seeds that repeat."""

import numpy as np
import pytest

from pyloca import datasets
from pyloca.datasets import _landscapes
from pyloca.datasets._wifi import FLOOR_PLAN

SMALL = {
    "mushroom": lambda seed: datasets.mushroom(40, 30, random_state=seed),
    "frame": lambda seed: datasets.frame(40, 30, n_test=500, random_state=seed),
    "sphere": lambda seed: datasets.sphere(20, random_state=seed),
    "wifi": lambda seed: datasets.wifi(40, random_state=seed),
}


def numerical_jacobians(measure, X, step=1e-6):
    """J_f (N, D, d) by central differences."""
    columns = []
    for axis in range(X.shape[1]):
        e = np.zeros(X.shape[1])
        e[axis] = step
        columns.append((measure(X + e) - measure(X - e)) / (2 * step))
    return np.stack(columns, axis=2)


def latent_covariances(data):
    """Burst covariances pulled back through the true local Jacobian, in units of σ²: about I, (N, d, d)."""
    inverse = np.linalg.pinv(numerical_jacobians(data.measure, data.X))  # (N, d, D)
    pulled = (data.bursts.to_array() - data.Y[:, None]) @ inverse.transpose(0, 2, 1)  # (N, M, d)
    pulled = pulled - pulled.mean(axis=1, keepdims=True)
    return pulled.transpose(0, 2, 1) @ pulled / (pulled.shape[1] - 1) / data.burst_std**2


# -- all of them ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_the_parts_fit_together(name):
    data = SMALL[name](0)
    assert data.name == name
    assert len(data.X) == len(data.Y) == len(data.bursts)
    assert data.X.shape[1] == data.n_components
    assert data.Y.shape[1] == data.bursts.n_features
    np.testing.assert_array_equal(data.measure(data.X), data.Y)
    for part in data.tests.values():
        np.testing.assert_array_equal(data.measure(part.X), part.Y)


@pytest.mark.parametrize("name", SMALL)
def test_a_seed_repeats_and_another_does_not(name):
    first, again, other = SMALL[name](3), SMALL[name](3), SMALL[name](4)
    np.testing.assert_array_equal(first.bursts.to_array(), again.bursts.to_array())
    for part, same in zip(first.tests.values(), again.tests.values(), strict=True):
        np.testing.assert_array_equal(part.X, same.X)
    assert np.all(first.bursts.to_array() != other.bursts.to_array())


@pytest.mark.parametrize("name", SMALL)
def test_numpys_own_generator_is_left_alone(name):
    before = np.random.get_state()[1].tolist()
    SMALL[name](1)
    assert np.random.get_state()[1].tolist() == before


# -- mushroom and frame -----------------------------------------------------------------------------------------


def test_mushroom_has_the_counts_of_the_paper():
    data = datasets.mushroom(random_state=0)
    assert data.bursts.to_array().shape == (2000, 200, 2)
    assert (data.burst_std, data.n_components, data.intrinsic_dim) == (0.01, 2, 2)
    assert 0 <= data.X.min() < 0.01
    assert 0.99 < data.X.max() <= 1


def test_the_mushroom_function():
    data = datasets.mushroom(12, 5, random_state=0)
    np.testing.assert_allclose(data.measure(np.array([[0.5, 0.5], [1.0, 2.0]])), [[0.625, -0.375], [9.0, 7.0]])


def test_bursts_of_the_mushroom_are_latent_gaussians():
    """f₁ is inverted exactly: x₀ = (y₀ − y₁)/2, x₁ = ∛((y₀ + y₁)/2)."""
    data = datasets.mushroom(200, 100, 0.02, random_state=0)
    Y = data.bursts.to_array()
    latent = np.stack([(Y[..., 0] - Y[..., 1]) / 2, np.cbrt((Y[..., 0] + Y[..., 1]) / 2)], axis=2)
    step = ((latent - data.X[:, None]) / 0.02).reshape(-1, 2)
    np.testing.assert_allclose(step.mean(axis=0), 0, atol=0.03)
    np.testing.assert_allclose(np.cov(step.T), np.eye(2), atol=0.04)
    assert np.mean(np.abs(step) < 1) == pytest.approx(0.6827, abs=0.01)


def test_frame_has_the_counts_of_the_paper():
    data = datasets.frame(2000, 20, random_state=0)
    assert data.bursts.to_array().shape == (2000, 20, 2)
    inside = np.all((data.X > 0.1) & (data.X < 0.9), axis=1)
    assert not inside.any()
    assert np.all((data.X >= 0) & (data.X <= 1))
    sizes = {name: len(part.X) for name, part in data.tests.items()}
    assert set(sizes) == {"frame", "interpolation", "extrapolation"}
    assert sum(sizes.values()) == 20_000


def test_the_three_test_sets_of_the_frame_lie_where_they_should():
    data = datasets.frame(100, 5, random_state=0)
    area = 1.05**2
    for name, share in {"frame": 0.36, "interpolation": 0.64, "extrapolation": area - 1}.items():
        points = data.tests[name].X
        inner = np.all((points > 0.1) & (points < 0.9), axis=1)
        unit = np.all((points > 0) & (points < 1), axis=1)
        assert inner.all() == (name == "interpolation")
        assert unit.all() == (name != "extrapolation")
        assert unit.any() == (name != "extrapolation")
        assert inner.any() == (name == "interpolation")
        assert points.min() >= -0.025
        assert points.max() <= 1.025
        assert len(points) / 20_000 == pytest.approx(share / area, abs=0.015)


def test_the_pairs_of_the_decoder_experiment_face_each_other():
    extras = datasets.frame(100, 5, random_state=0).extras
    starts, ends = extras["interpolation_starts"], extras["interpolation_ends"]
    assert starts.shape == ends.shape == (200, 2)  # 400 points on the inner boundary
    for points in (starts, ends):
        assert np.all(np.isclose(points, 0.1).any(axis=1) | np.isclose(points, 0.9).any(axis=1))
        assert points.min() >= 0.1
        assert points.max() <= 0.9
    steps = ends - starts
    horizontal, vertical = steps[:100], steps[100:]
    np.testing.assert_allclose(horizontal, np.tile([0.8, 0.0], (100, 1)), atol=1e-12)
    np.testing.assert_allclose(vertical, np.tile([0.0, 0.8], (100, 1)), atol=1e-12)


def test_the_smallest_frame_has_as_many_bursts_as_were_asked_for():
    for seed in range(30):
        assert len(datasets.frame(1, 3, n_test=10, random_state=seed).bursts) == 1


# -- sphere -----------------------------------------------------------------------------------------------------


def test_sphere_has_the_counts_of_the_paper():
    data = datasets.sphere(random_state=0)
    assert data.bursts.to_array().shape == (546, 400, 2)
    assert (data.burst_std, data.n_components, data.intrinsic_dim) == (0.01, 3, 2)
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1, rtol=1e-12)
    polar = np.arccos(data.X[:, 2])
    assert np.pi / 3 < polar.min() < polar.max() < 5 * np.pi / 6


def test_the_cap_is_the_rest_of_the_fibonacci_sphere():
    """Heights 1 − (2 i + 1)/800: below cos(5π/6) = −0.866 lie the last 54, above cos(π/3) = 0.5 the first 200."""
    data = datasets.sphere(5, random_state=0)
    cap = data.tests["cap"].X
    assert len(cap) == 800 - 200 - 546 == 54
    assert np.all(np.arccos(cap[:, 2]) > 5 * np.pi / 6)
    assert np.linalg.norm(cap[:, None] - data.X, axis=2).min() > 0.02


def test_points_of_the_sphere_are_evenly_spread():
    X = datasets.sphere(5, random_state=0).X
    distance = np.linalg.norm(X[:, None] - X, axis=2) + 9 * np.eye(len(X))
    nearest = distance.min(axis=1)
    assert nearest.min() > 0.7 * nearest.max()


def test_stereographic_projection():
    """The line from the north pole through x meets the plane of the equator at y."""
    data = datasets.sphere(5, random_state=0)
    north = np.array([0.0, 0.0, 1.0])
    reached = north + (data.X - north) / (1 - data.X[:, 2:])
    np.testing.assert_allclose(reached, np.c_[data.Y, np.zeros(len(data.Y))], atol=1e-12)


def test_bursts_of_the_sphere_are_isotropic_on_it():
    data = datasets.sphere(400, random_state=0)
    Y = data.bursts.to_array()
    square = np.square(Y).sum(axis=2, keepdims=True)
    points = np.concatenate([2 * Y, square - 1], axis=2) / (square + 1)  # back on the sphere, (N, M, 3)
    np.testing.assert_allclose(points.mean(axis=1), data.X, atol=5e-3)
    step = (points - data.X[:, None]) / data.burst_std
    covariance = step.transpose(0, 2, 1) @ step / 400
    tangent = np.eye(3) - data.X[:, :, None] * data.X[:, None]
    np.testing.assert_allclose((covariance - tangent).mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(covariance, tangent, atol=0.35)


# -- wifi -------------------------------------------------------------------------------------------------------


def test_wifi_has_the_counts_of_the_paper():
    data = datasets.wifi(random_state=0)
    assert data.bursts.to_array().shape == (4000, 6, 17)
    assert (data.n_components, data.intrinsic_dim) == (2, 2)
    assert data.burst_std**2 == pytest.approx(0.25 / 2 * 6 / 5)
    assert data.extras["transmitters"].shape == (17, 2)
    assert np.all(data.X >= 0)
    assert np.all(data.X <= [600, 1000])


def test_signals_fall_with_the_distance():
    data = datasets.wifi(20, random_state=0)
    transmitters = data.extras["transmitters"]
    np.testing.assert_allclose(np.diag(data.measure(transmitters)), 1)
    away = transmitters[:1] + np.array([600.0, 0.0])
    assert data.measure(away)[0, 0] == pytest.approx(np.exp(-1))


def test_a_ring_has_exactly_the_covariance_it_claims():
    """Six receivers every π/3 have covariance r²/2 · M/(M − 1) I; what is left is the curvature of the signals."""
    covariances = latent_covariances(datasets.wifi(300, random_state=0))
    np.testing.assert_allclose(covariances, np.tile(np.eye(2), (300, 1, 1)), atol=5e-3)


@pytest.mark.parametrize(("receivers", "radius"), [(3, 0.5), (5, 0.25), (12, 1.0)])
def test_other_rings(receivers, radius):
    data = datasets.wifi(50, receivers, radius, random_state=0)
    assert data.bursts.counts.tolist() == [receivers] * 50
    np.testing.assert_allclose(latent_covariances(data), np.tile(np.eye(2), (50, 1, 1)), atol=0.02)


def test_rooms_do_not_overlap():
    for i, a in enumerate(FLOOR_PLAN):
        assert np.all(a[:2] < a[2:])
        for b in FLOOR_PLAN[:i]:
            width = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
            assert width.min() <= 0, f"rooms {a} and {b} overlap"


def test_the_floor_is_connected_and_fills_600_by_1000():
    """Rooms are joined where they share a piece of wall wide enough for a door."""
    n = len(FLOOR_PLAN)
    doors = np.zeros((n, n), dtype=bool)
    for i, a in enumerate(FLOOR_PLAN):
        for j, b in enumerate(FLOOR_PLAN):
            shared = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
            doors[i, j] = shared.min() == 0 and shared.max() >= 20
    reached = {0}
    while more := {int(j) for i in reached for j in np.flatnonzero(doors[i])} - reached:
        reached |= more
    assert reached == set(range(n))
    np.testing.assert_array_equal(FLOOR_PLAN[:, :2].min(axis=0), [0, 0])
    np.testing.assert_array_equal(FLOOR_PLAN[:, 2:].max(axis=0), [600, 1000])


def test_the_floor_is_far_from_convex():
    X = datasets.wifi(400, random_state=0).X
    middle = (X[:, None] + X) / 2
    inside = np.zeros(middle.shape[:2], dtype=bool)
    for left, bottom, right, top in FLOOR_PLAN:
        inside |= np.all((middle >= [left, bottom]) & (middle <= [right, top]), axis=2)
    assert np.mean(~inside) > 0.3


def test_receivers_are_uniform_on_the_floor():
    X = datasets.wifi(20_000, 3, random_state=0).X
    low, high = FLOOR_PLAN[:, :2], FLOOR_PLAN[:, 2:]
    inside = np.all((X[:, None] >= low) & (X[:, None] <= high), axis=2)
    assert inside.any(axis=1).all()
    area = np.prod(high - low, axis=1)
    np.testing.assert_allclose(inside.mean(axis=0), area / area.sum(), atol=0.015)


# -- beyond the paper -------------------------------------------------------------------------------------------


def test_the_photograph_shows_every_spot_where_it_should_be():
    photo = datasets.bent_sheet(600, random_state=1)
    assert photo.image.shape == (600, 600)
    assert photo.X.shape == photo.Y.shape == (2500, 2)
    column, row = np.rint(photo.Y).astype(int).T
    assert photo.image[row, column].max() < 0.45  # ink at every node
    assert np.median(photo.image) > 0.6  # on paper
    np.testing.assert_array_equal(photo.X[photo.corners], [[0, 0], [0, 1], [1, 0], [1, 1]])
    again = datasets.bent_sheet(600, random_state=1)
    np.testing.assert_array_equal(photo.image, again.image)


@pytest.mark.parametrize("seed", range(3))
def test_the_picture_of_the_sheet_is_far_from_a_grid(seed):
    photo = datasets.bent_sheet(600, random_state=seed)
    grid = photo.Y.reshape(50, 50, 2)
    steps = np.concatenate([np.linalg.norm(np.diff(grid, axis=axis), axis=2).ravel() for axis in (0, 1)])
    assert steps.max() > 1.2 * steps.min()
    assert photo.burst_std == pytest.approx(0.15 / 49)


@pytest.mark.parametrize("name", ["muller_brown", "double_well"])
def test_restarts_have_the_covariance_of_the_diffusion(name):
    data = getattr(datasets, name)(50, 400, random_state=0)
    assert data.bursts.burst_std == data.burst_std
    jacobians = numerical_jacobians(data.measure, data.X)
    for i in (0, 20, 40):
        expected = data.burst_std**2 * jacobians[i] @ jacobians[i].T
        found = np.cov(data.bursts[i].T)
        assert np.linalg.norm(found - expected) < 0.25 * np.linalg.norm(expected)


def test_forces_are_minus_the_gradient():
    x = np.random.RandomState(0).uniform(-1, 1, size=(20, 2))
    step = 1e-6
    potential = _landscapes.muller_brown_potential
    slope = np.stack([(potential(x + step * e) - potential(x - step * e)) / (2 * step) for e in np.eye(2)], axis=1)
    np.testing.assert_allclose(_landscapes.muller_brown_force(x), -slope, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("name", ["mushroom", "frame", "sphere", "wifi", "double_well", "muller_brown"])
def test_without_a_seed_data_are_drawn_anew(name):
    make = getattr(datasets, name)
    assert not np.array_equal(make(20).bursts.to_array(), make(20).bursts.to_array())
