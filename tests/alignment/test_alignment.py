"""One picture from many: exact for a linear measurement, near the truth for a curved one, refused when torn."""

import numpy as np
import pytest

from helpers import (
    assert_same_up_to_rigid_motion,
    linear_map,
    planar_statistics,
    random_rotation,
)
from pyloca import datasets
from pyloca.alignment import align
from pyloca.alignment._edges import Edges, gather, see_edges
from pyloca.alignment._geodesic import landmark_mds
from pyloca.alignment._rigid import integrate, local_frames, poisson_solver, refine, strain
from pyloca.alignment._synchronization import polar, synchronize
from pyloca.errors import BurstError
from pyloca.geometry import BurstGraph, BurstStatistics, mahalanobis_graph
from pyloca.metrics import calibrate, stress


def swiss_roll(n, seed=0):
    """A rolled sheet with its exact, isometric Jacobians: latents (n, 2), statistics with σ = 1."""
    random = np.random.RandomState(seed)
    turn, height = random.uniform(4, 12, size=n), random.uniform(0, 20, size=n)

    def arc(t):  # length of the spiral r = t
        return 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))

    points = np.stack([turn * np.cos(turn), height, turn * np.sin(turn)], axis=1)
    speed = np.sqrt(1 + turn**2)
    along = np.stack(
        [(np.cos(turn) - turn * np.sin(turn)) / speed, 0 * turn, (np.sin(turn) + turn * np.cos(turn)) / speed], axis=1
    )
    up = np.tile([0.0, 1.0, 0.0], (n, 1))
    return np.stack([arc(turn), height], axis=1), BurstStatistics.from_jacobians(points, np.stack([along, up], axis=2))


def some_edges(n=12, k=2, seed=0):
    """A random connected graph with random steps."""
    random = np.random.RandomState(seed)
    pairs = {(i, i + 1) for i in range(n - 1)} | {tuple(sorted(random.choice(n, 2, replace=False))) for _ in range(20)}
    heads, tails = np.array(sorted(pairs)).T
    steps = random.standard_normal((2, len(heads), k))
    return Edges(n, heads, tails, steps[0], steps[1], random.uniform(0.5, 2, size=len(heads)))


def edges_of(statistics, n_neighbors=10, burst_std=1.0):
    return see_edges(statistics, mahalanobis_graph(statistics, n_neighbors), burst_std)


# -- exact on planes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "n", "dim"), [(1, 100, 1), (1, 150, 4), (2, 100, 2), (2, 300, 5), (3, 200, 3), (3, 300, 6)]
)
def test_a_linear_measurement_is_undone(k, n, dim):
    X, statistics = planar_statistics(n, k, dim, seed=1)
    found = align(statistics, burst_std=1.0, random_state=0)
    assert_same_up_to_rigid_motion(found.positions, X, 1e-5)  # the iteration stops when it gains no more than 1e-4
    assert stress(X, found.positions) < 1e-11
    assert found.strain < 1e-5
    np.testing.assert_array_equal(found.rows, np.arange(n))


def test_an_eigensolver_that_stops_short_is_no_matter_of_the_user():
    """LOBPCG ends just above its tolerance for some of these; the frames are only a start, nobody needs its warning."""
    for seed in range(4):
        X, statistics = planar_statistics(200, k=3, dim=3, seed=seed)
        assert_same_up_to_rigid_motion(align(statistics, burst_std=1.0, random_state=0).positions, X, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "seeds"), [(150, 40), (1000, 10)])
def test_random_gaps_do_not_tear_a_curve(n, seeds):
    """Uniform bursts on an interval cluster by chance; a graph of too few neighbours would fall apart there."""
    for seed in range(seeds):
        X, statistics = planar_statistics(n, k=1, dim=2, seed=seed)
        assert_same_up_to_rigid_motion(align(statistics, burst_std=1.0, random_state=0).positions, X, 1e-5)


def test_a_gap_in_the_sampling_is_bridged():
    """The nearest 6 neighbours stop at the gap; it is no wider than what chance leaves here and there."""
    X = np.r_[np.linspace(0, 0.47, 60), np.linspace(0.53, 1, 60)][:, None]
    A = linear_map(1, 3, 0)
    statistics = BurstStatistics.from_jacobians(X @ A, np.tile(A.T, (120, 1, 1)))
    graph = mahalanobis_graph(statistics, 6)
    assert not np.any((graph.heads < 60) & (graph.tails >= 60))
    assert_same_up_to_rigid_motion(align(statistics, burst_std=1.0, random_state=0).positions, X, 1e-8)
    with pytest.raises(BurstError, match="2 pieces"):
        align(
            statistics, burst_std=1.0, n_neighbors=6, random_state=0
        )  # a number that the user gave is not second-guessed


@pytest.mark.parametrize("n", [10, 11])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_fewest_bursts(k, n):
    X, statistics = planar_statistics(n, k, k + 1, seed=2)
    assert_same_up_to_rigid_motion(align(statistics, burst_std=1.0, random_state=0).positions, X, 1e-9)


def test_frames_are_tangents_in_the_embedding():
    X, statistics = planar_statistics(150, k=2, dim=4, seed=3)
    found = align(statistics, burst_std=1.0, random_state=0)
    latent = statistics.tangents @ np.linalg.pinv(linear_map(2, 4, 3))  # (N, k, k): A_i / σ in the latent space
    np.testing.assert_allclose(found.frames @ calibrate(X, found.positions).rotation, latent, atol=1e-8)


def test_more_components_than_a_plane_needs_stay_flat():
    X, statistics = planar_statistics(200, k=2, dim=4)
    found = align(statistics, 3, burst_std=1.0, random_state=0)
    assert found.positions.shape == (200, 3)
    assert found.frames.shape == (200, 2, 3)
    assert stress(X, found.positions) < 1e-3
    assert found.positions[:, 2].std() < 0.1 * found.positions[:, 1].std()


def test_burst_std_is_the_unit_of_length():
    X, statistics = planar_statistics(80)
    assert_same_up_to_rigid_motion(align(statistics, burst_std=0.5, random_state=0).positions, 0.5 * X, 1e-9)
    sigma = np.sqrt(np.median(statistics.spectra[:, 0]))
    assert_same_up_to_rigid_motion(align(statistics, random_state=0).positions, sigma * X, 1e-9)


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_units_of_the_measurement_do_not_matter(factor):
    X = np.random.RandomState(0).uniform(size=(80, 2))
    A = factor * linear_map(2, 3, 0)
    statistics = BurstStatistics.from_jacobians(X @ A, np.tile(A.T, (80, 1, 1)))
    assert_same_up_to_rigid_motion(align(statistics, burst_std=1.0, random_state=0).positions, X, 1e-8)


# -- near the truth on curved measurements ----------------------------------------------------------------------


def test_a_swiss_roll_is_unrolled():
    X, statistics = swiss_roll(1000)
    found = align(statistics, burst_std=1.0, random_state=0)
    assert stress(X, found.positions) < 1e-3 * X.var(axis=0).sum()


def test_bursts_of_the_mushroom():
    data = datasets.mushroom(600, 100, random_state=0)
    found = align(BurstStatistics.from_bursts(data.bursts, 2), burst_std=data.burst_std, random_state=0)
    assert stress(data.X, found.positions) < 1e-3


def test_the_sphere_needs_three_components():
    data = datasets.sphere(100, random_state=0)
    statistics = BurstStatistics.from_bursts(data.bursts, 2)
    curved, flat = (align(statistics, d, burst_std=data.burst_std, random_state=0) for d in (3, 2))
    assert stress(data.X, curved.positions) < 5e-3
    assert curved.strain < 0.7 * flat.strain
    assert curved.frames.shape == (len(data.X), 2, 3)
    gram = curved.frames @ curved.frames.transpose(0, 2, 1)
    np.testing.assert_allclose(gram, np.tile(np.eye(2), (len(data.X), 1, 1)), atol=1e-10)


def test_a_closed_curve_in_the_plane():
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    circle, tangent = np.c_[np.cos(angle), np.sin(angle)], np.c_[-np.sin(angle), np.cos(angle)]
    found = align(BurstStatistics.from_jacobians(circle, tangent[:, :, None]), 2, burst_std=1.0, random_state=0)
    assert_same_up_to_rigid_motion(found.positions, circle, 0.03)


def test_random_gaps_do_not_open_a_closed_curve():
    """A gap that the nearest neighbours do not cross leaves a ring connected, and yet cut: geodesics go round."""
    for seed in range(8):
        angle = np.sort(np.random.RandomState(seed).uniform(0, 2 * np.pi, size=200))
        circle, tangent = np.c_[np.cos(angle), np.sin(angle)], np.c_[-np.sin(angle), np.cos(angle)]
        found = align(BurstStatistics.from_jacobians(circle, tangent[:, :, None]), 2, burst_std=1.0, random_state=0)
        ends = np.linalg.norm(found.positions - np.roll(found.positions, 1, axis=0), axis=1)
        assert ends.max() < 1, f"torn with seed {seed}"


# -- what must not matter ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3])
def test_the_order_of_bursts_does_not_matter(d):
    _, statistics = swiss_roll(300)
    order = np.random.RandomState(1).permutation(300)
    plain, shuffled = (
        align(statistics, d, burst_std=1.0, random_state=0),
        align(statistics[order], d, burst_std=1.0, random_state=0),
    )
    size = np.sqrt(plain.positions.var(axis=0).sum())
    assert_same_up_to_rigid_motion(shuffled.positions, plain.positions[order], 1e-2 * size)
    assert shuffled.strain == pytest.approx(plain.strain, rel=1e-2)


def test_the_signs_of_tangents_do_not_matter():
    _, statistics = swiss_roll(300)
    signs = np.random.RandomState(0).choice([-1.0, 1.0], size=(300, 2, 1))
    flipped = BurstStatistics(statistics.means, signs * statistics.tangents, statistics.counts, statistics.residuals)
    plain, other = align(statistics, burst_std=1.0, random_state=0), align(flipped, burst_std=1.0, random_state=0)
    assert_same_up_to_rigid_motion(other.positions, plain.positions, 1e-6)


def test_a_rigid_motion_of_the_measurements_does_not_matter():
    _, statistics = swiss_roll(300)
    rotation = random_rotation(3, 5)
    moved = BurstStatistics(
        statistics.means @ rotation + 7, statistics.tangents @ rotation, statistics.counts, statistics.residuals
    )
    plain, other = align(statistics, burst_std=1.0, random_state=0), align(moved, burst_std=1.0, random_state=0)
    assert_same_up_to_rigid_motion(other.positions, plain.positions, 1e-6)


def test_the_same_seed_gives_the_same_picture():
    _, statistics = swiss_roll(300)
    first, second = (align(statistics, max_bursts=200, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.rows, second.rows)
    np.testing.assert_array_equal(first.positions, second.positions)
    other = align(statistics, max_bursts=200, random_state=4)
    assert first.rows.tolist() != other.rows.tolist()


def test_a_large_set_is_aligned_on_a_subset():
    X, statistics = planar_statistics(300)
    found = align(statistics, burst_std=1.0, max_bursts=120, random_state=0)
    assert len(found.rows) == len(found.positions) == len(found.frames) == 120
    assert np.all(np.diff(found.rows) > 0)
    assert_same_up_to_rigid_motion(found.positions, X[found.rows], 1e-9)


# -- what is refused --------------------------------------------------------------------------------------------


def in_pieces(n_pieces, each=40, *, k=2, apart=100.0, seed=0):
    random = np.random.RandomState(seed)
    X = random.uniform(size=(n_pieces * each, k)) + np.repeat(np.arange(n_pieces) * apart, each)[:, None]
    return BurstStatistics.from_jacobians(X, np.tile(np.eye(k), (len(X), 1, 1)))


def test_two_pieces_are_counted_and_named():
    statistics = in_pieces(2)
    with pytest.raises(BurstError, match="fall into 2 pieces that do not touch") as caught:
        align(statistics, random_state=0)
    assert "40 bursts such as 0; 40 bursts such as 40)" in str(caught.value)
    align(statistics[np.arange(40)], random_state=0)  # each piece alone is well


@pytest.mark.parametrize("apart", [10.0, 1e4])
@pytest.mark.parametrize("each", [20, 30, 100])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_separate_pieces_are_refused_however_small(k, each, apart):
    """The graph that looks for bridges has more neighbours than a small piece has bursts; they must not count."""
    for seed in range(5):
        with pytest.raises(BurstError, match=f"2 pieces that do not touch \\({each} bursts"):
            align(in_pieces(2, each, k=k, apart=apart, seed=seed), random_state=0)


def test_of_many_pieces_some_are_named():
    with pytest.raises(BurstError, match=r"fall into 6 pieces .*such as 120 …\)"):
        align(in_pieces(6), random_state=0)


def test_pieces_of_a_subset_are_named_by_their_burst():
    with pytest.raises(BurstError, match="2 pieces") as caught:
        align(in_pieces(2, 100), max_bursts=60, random_state=0)
    named = [int(part.split()[0].strip(";).")) for part in str(caught.value).split("such as ")[1:]]
    assert min(named) < 100 <= max(named)


@pytest.mark.parametrize("d", [1, 2])
def test_too_few_components_are_refused(d):
    _, statistics = planar_statistics(30, k=3, dim=4)
    with pytest.raises(BurstError, match=f"n_components = {d} cannot hold bursts of intrinsic dimension k = 3"):
        align(statistics, d, random_state=0)


# -- the parts against naive twins ------------------------------------------------------------------------------


def test_laplacian_against_the_sum_over_edges():
    edges = some_edges()
    expected = np.zeros((12, 12))
    for i, j, w in zip(edges.heads, edges.tails, edges.weights, strict=True):
        e = np.zeros(12)
        e[i], e[j] = 1, -1
        expected += w * np.outer(e, e)
    np.testing.assert_allclose(edges.laplacian().toarray(), expected, atol=1e-14)


def test_divergence_is_the_gradient_of_the_least_squares_problem():
    """L E = div(s) are the normal equations of min Σ w ‖E_tail − E_head − s‖²."""
    edges = some_edges()
    steps = np.random.RandomState(1).standard_normal((len(edges.heads), 3))
    incidence = np.zeros((len(edges.heads), 12))
    incidence[np.arange(len(edges.heads)), edges.tails] = 1
    incidence[np.arange(len(edges.heads)), edges.heads] = -1
    np.testing.assert_allclose(edges.divergence(steps), incidence.T @ (edges.weights[:, None] * steps), atol=1e-13)
    root = np.sqrt(edges.weights)[:, None]
    expected = np.linalg.lstsq(root * incidence, root * steps, rcond=None)[0]
    solved = poisson_solver(edges)(edges.divergence(steps))
    np.testing.assert_allclose(solved, expected - expected.mean(axis=0), atol=1e-12)


def test_gather_against_a_loop():
    random = np.random.RandomState(0)
    index, values = random.randint(5, size=30), random.standard_normal((30, 2, 3))
    expected = np.zeros((6, 2, 3))
    np.add.at(expected, index, values)
    np.testing.assert_allclose(gather(index, values, 6), expected, atol=1e-14)


def test_polar_is_the_nearest_orthonormal_matrix():
    matrices = np.random.RandomState(0).standard_normal((5, 2, 4))
    nearest = polar(matrices)
    np.testing.assert_allclose(nearest @ nearest.transpose(0, 2, 1), np.tile(np.eye(2), (5, 1, 1)), atol=1e-12)
    best = np.linalg.norm(matrices - nearest, axis=(1, 2))
    for seed in range(50):
        other = random_rotation(4, seed)[:2]
        assert np.all(np.linalg.norm(matrices - other, axis=(1, 2)) >= best)


def test_edges_seen_from_both_ends_are_latent_steps():
    X, statistics = planar_statistics(40, k=2, dim=3)
    edges = edges_of(statistics, 6, burst_std=0.5)
    length = 0.5 * np.linalg.norm(X[edges.tails] - X[edges.heads], axis=1)
    np.testing.assert_allclose(np.linalg.norm(edges.from_head, axis=1), length, rtol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(edges.from_tail, axis=1), length, rtol=1e-9)
    assert edges.weights.mean() == pytest.approx(1)
    order = np.argsort(length)
    assert np.all(np.diff(edges.weights[order]) <= 1e-9)  # short edges know more


def test_synchronized_frames_agree_along_edges():
    """Each burst of a plane sees it in a frame of its own; the frames found make one field of them."""
    X = np.random.RandomState(0).uniform(size=(60, 2))
    statistics = BurstStatistics.from_jacobians(X, np.stack([random_rotation(2, i) for i in range(60)]))
    assert np.ptp(statistics.tangents, axis=0).max() > 1
    edges = edges_of(statistics)
    frames = synchronize(statistics, edges, np.random.RandomState(0))
    np.testing.assert_allclose(frames @ frames.transpose(0, 2, 1), np.tile(np.eye(2), (60, 1, 1)), atol=1e-10)
    directions = statistics.frames()[0].transpose(0, 2, 1) @ frames  # R^D → embedding, the same for all
    np.testing.assert_allclose(directions, np.tile(directions[0], (60, 1, 1)), atol=1e-6)


def test_local_frames_are_best_for_their_positions():
    edges = some_edges(k=2)
    positions = np.random.RandomState(2).standard_normal((12, 3))
    frames = local_frames(edges, positions)
    best = strain_of_parts(edges, frames, positions)
    for seed in range(20):
        other = np.tile(random_rotation(3, seed)[:2], (12, 1, 1))
        assert np.all(strain_of_parts(edges, other, positions) >= best - 1e-12)


def strain_of_parts(edges, frames, positions):
    """What each burst pays for its edges, shape (N,)."""
    out = np.zeros(edges.n_nodes)
    difference = positions[edges.tails] - positions[edges.heads]
    for e, (i, j) in enumerate(zip(edges.heads, edges.tails, strict=True)):
        out[i] += edges.weights[e] * np.square(difference[e] - edges.from_head[e] @ frames[i]).sum()
        out[j] += edges.weights[e] * np.square(difference[e] - edges.from_tail[e] @ frames[j]).sum()
    return out


def test_strain_against_a_loop():
    edges = some_edges()
    positions, frames = np.random.RandomState(2).standard_normal((12, 2)), np.tile(np.eye(2), (12, 1, 1))
    total = (edges.weights * (np.square(edges.from_head) + np.square(edges.from_tail)).sum(axis=1)).sum()
    expected = np.sqrt(strain_of_parts(edges, frames, positions).sum() / total)
    assert strain(edges, frames, positions)[0] == pytest.approx(expected)


def test_refinement_lowers_the_strain_at_every_step():
    _, statistics = swiss_roll(300)
    edges = edges_of(statistics)
    solve = poisson_solver(edges)
    start = np.random.RandomState(0).standard_normal((300, 3))
    refined = [refine(edges, start, solve, steps, tol=0.0) for steps in range(6)]
    assert np.all(np.diff([strain(edges, frames, positions)[0] for positions, frames in refined]) < 0)


def test_positions_integrate_true_frames():
    X, statistics = planar_statistics(60, k=2, dim=3)
    edges = edges_of(statistics)
    frames = statistics.tangents @ np.linalg.pinv(linear_map(2, 3, 0))
    positions = integrate(edges, frames, poisson_solver(edges))
    np.testing.assert_allclose(positions, X - X.mean(axis=0), atol=1e-10)


def test_landmark_scaling_recovers_points_from_a_complete_graph():
    X = np.random.RandomState(0).standard_normal((30, 3))
    heads, tails = np.triu_indices(30, 1)
    graph = BurstGraph(30, heads, tails, np.linalg.norm(X[heads] - X[tails], axis=1))
    found = landmark_mds(graph, 3, 2.0, np.random.RandomState(0))
    assert_same_up_to_rigid_motion(found, 2.0 * X, 1e-9)
    flat = landmark_mds(graph, 5, 2.0, np.random.RandomState(0))
    np.testing.assert_allclose(flat[:, 3:], 0, atol=1e-5)
