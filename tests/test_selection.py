"""σ, k and d from the bursts themselves."""

import pickle

import numpy as np
import pytest
from benchmarks.unseen import smooth_map, swiss_roll_with_hole
from sklearn.base import clone

from helpers import planar_bursts
from pyloca import LOCA, Bursts, datasets
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics
from pyloca.selection import (
    estimate_burst_std,
    estimate_intrinsic_dim,
    select_n_components,
    suggest_n_components,
)


def test_burst_std_is_the_size_of_a_burst_in_the_measurements():
    _, bursts = planar_bursts(200, 100)
    largest = np.median([np.linalg.eigvalsh(np.cov(burst.T))[-1] for burst in bursts])
    for given in (bursts, Bursts(bursts), list(bursts), BurstStatistics.from_bursts(bursts, 2)):
        assert estimate_burst_std(given).burst_std == pytest.approx(np.sqrt(largest), rel=1e-3)  # bends are taken out


@pytest.mark.parametrize("k", [1, 2, 3])
def test_intrinsic_dimension_of_a_plane(k):
    _, bursts = planar_bursts(40, 30, k=k, dim=5)
    assert estimate_intrinsic_dim(bursts, random_state=0).intrinsic_dim == k
    assert int(estimate_intrinsic_dim(Bursts(bursts), random_state=0)) == k
    assert (
        int(estimate_intrinsic_dim(BurstStatistics.from_bursts(bursts, 1), random_state=0)) == 1
    )  # k is already fixed


def test_intrinsic_dimension_of_the_papers_data():
    for data in (
        datasets.mushroom(50, 30, random_state=0),
        datasets.sphere(30, random_state=0),
        datasets.wifi(50, random_state=0),
    ):
        assert int(estimate_intrinsic_dim(data.bursts, random_state=0)) == data.intrinsic_dim


# -- σ --------------------------------------------------------------------------------------------------------------


def test_burst_std_knows_how_sure_it_is():
    _, bursts = planar_bursts(4000, 50)
    estimates = [estimate_burst_std(part) for part in np.split(bursts, 20)]
    spread = np.std([float(estimate) for estimate in estimates])
    assert 0.5 * spread < np.median([estimate.standard_error for estimate in estimates]) < 2 * spread
    assert not estimates[0].known_scale


def test_burst_std_from_known_distances():
    data = datasets.mushroom(400, 100, random_state=0)
    pairs = np.random.RandomState(0).randint(400, size=(30, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    distances = np.linalg.norm(data.X[pairs[:, 0]] - data.X[pairs[:, 1]], axis=1)
    sigma = estimate_burst_std(data.bursts, pairs=pairs, distances=distances)
    assert sigma.burst_std == pytest.approx(0.01, rel=0.03)
    assert sigma.known_scale
    assert LOCA(burst_std=sigma).burst_std == sigma  # a float like any other


@pytest.mark.parametrize(
    ("pairs", "distances", "message"),
    [
        ([[0, 1]], None, "pass pairs and distances"),
        (None, [1.0], "pass pairs and distances"),
        ([[0, 1, 2]], [1.0], r"shape \(n, 2\)"),
        ([[0, 1]], [1.0, 2.0], r"shape \(n,\)"),
        ([[0, 40]], [1.0], "from 0 to 39"),
        ([[0, 1]], [0.0], "> 0"),
        ([[0, 1]], [np.nan], "finite"),
        ([[3, 3]], [1.0], "coincide"),
    ],
)
def test_bad_distances_are_refused(pairs, distances, message):
    with pytest.raises(ValueError, match=message):
        estimate_burst_std(planar_bursts(40, 30)[1], pairs=pairs, distances=distances)


# -- k --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_k_of_a_curved_surface_in_many_dimensions(k, noise):
    random = np.random.RandomState(k)
    X, measure = random.uniform(size=(100, k)), smooth_map(k, 60, random)
    points = measure((X[:, None] + 0.02 * random.standard_normal((100, 40, k))).reshape(-1, k)).reshape(100, 40, 60)
    estimate = estimate_intrinsic_dim(points + 0.02 * noise * random.standard_normal(points.shape), random_state=0)
    assert int(estimate) == k
    assert estimate.confidence > 0.95
    assert estimate.growth[:k].max() < 1.2
    assert estimate.growth[k] > 1 + 1 / k or noise


@pytest.mark.parametrize("factor", [30.0, 1000.0])
def test_k_does_not_depend_on_the_unit_of_a_sensor(factor):
    random = np.random.RandomState(3)
    X = random.uniform(-1, 1, size=(200, 2))[:, None] + 0.02 * random.standard_normal((200, 40, 2))
    a, b = X[..., 0], X[..., 1]
    points = np.stack([factor * (a + 0.3 * b**2), b + 0.3 * np.sin(2 * a), np.sin(1.5 * a + b)], axis=-1)
    assert int(estimate_intrinsic_dim(points, random_state=0)) == 2


def test_confidence_falls_when_the_drop_is_not_clear():
    """In the fifth direction, where neighbours are not asked."""
    random = np.random.RandomState(0)
    stretch = np.ones((200, 5))
    stretch[:, 4] = np.exp(random.normal(np.log(60**-0.5), 0.5, 200))
    bursts = 0.01 * random.standard_normal((200, 200, 5)) * stretch[:, None] + random.uniform(size=(200, 1, 5))
    assert estimate_intrinsic_dim(bursts, random_state=0).confidence < 0.99


# -- d --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "d"),
    [
        (lambda: datasets.mushroom(400, 50, random_state=0), 2),
        (lambda: datasets.sphere(100, random_state=0), 3),
        (lambda: swiss_roll_with_hole(0), 2),
        (lambda: datasets.wifi(400, random_state=0), 2),
    ],
)
def test_the_hint_tells_flat_from_curved(make, d):
    data = make()
    assert suggest_n_components(data.bursts, burst_std=data.burst_std).n_components == d


@pytest.mark.slow
def test_three_components_for_a_sphere():
    data = datasets.sphere(100, random_state=0)
    found = select_n_components(
        data.bursts, burst_std=data.burst_std, candidates=(2, 3, 4), hidden_layers=(20, 20), random_state=0
    )
    assert found.n_components == 3
    assert found.candidates == (2, 3, 4)
    assert found.hint == 3
    assert found.losses[0] > 2 * found.losses[1]
    assert "d = 3 (k = 2" in str(found)
    assert found.models[3].n_components_ == 3


def test_candidates_are_compared_on_the_same_held_out_bursts():
    """Without a seed too: each fit on its own would hold out other bursts, which the rest had trained on."""
    _, bursts = planar_bursts(60, 20)
    for random_state in (None, np.random.RandomState(1)):
        found = select_n_components(
            bursts, candidates=(2, 3), random_state=random_state, hidden_layers=(5,), max_iter=20, burst_std=0.01
        )
        first, second = (model.validation_indices_ for model in found.models.values())
        np.testing.assert_array_equal(first, second)


def test_candidates_below_k_are_refused():
    with pytest.raises(BurstError, match="at least k = 2"):
        select_n_components(datasets.mushroom(100, 20, random_state=0).bursts, candidates=(1, 2), random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "d"),
    [(lambda: datasets.mushroom(200, 30, random_state=0), 2), (lambda: datasets.sphere(100, random_state=0), 3)],
)
def test_auto(make, d):
    data = make()
    model = LOCA("auto", burst_std=data.burst_std, hidden_layers=(15,), random_state=0).fit(data.bursts)
    assert model.n_components_ == d
    assert model.transform(data.Y).shape == (len(data.Y), d)


def test_estimates_are_parameters_with_their_confidence_and_can_be_pickled():
    _, bursts = planar_bursts(60, 20)
    sigma, k = estimate_burst_std(bursts), estimate_intrinsic_dim(bursts, random_state=0)
    copied = clone(LOCA(2, burst_std=float(sigma), intrinsic_dim=int(k)))
    assert (copied.burst_std, copied.intrinsic_dim) == (sigma.burst_std, k.intrinsic_dim)
    assert "±" in str(sigma) and "of bootstrap samples agree" in str(k)
    for value, name in ((sigma, "samples"), (k, "spectrum")):
        again = pickle.loads(pickle.dumps(value))
        assert again == value and type(again) is type(value)
        np.testing.assert_array_equal(getattr(again, name), getattr(value, name))


def test_sigma_alone_takes_no_dimension():
    with pytest.raises(ValueError, match="n_components is used only with known distances"):
        estimate_burst_std(planar_bursts(60, 20)[1], n_components=2)


@pytest.mark.slow
def test_a_fit_with_a_finding_is_passed_over():
    """A circle on a line is white everywhere and folded: only the checks of the fit see that."""
    random = np.random.RandomState(0)
    t = random.uniform(0, 2 * np.pi, (150, 1)) + 0.03 * random.standard_normal((150, 30))
    bursts = np.stack([np.cos(t), np.sin(t)], axis=2)
    found = select_n_components(bursts, burst_std=0.03, candidates=[1, 2], hidden_layers=(20,), random_state=0)
    assert found.models[1].diagnostics_.findings and not found.models[2].diagnostics_.findings
    assert found.n_components == 2
