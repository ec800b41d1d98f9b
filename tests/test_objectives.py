"""Formulas against naive NumPy twins, their gradients against finite differences, and the facts the design rests on."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import wishart
from torch.autograd import gradcheck

from helpers import random_rotation
from pyloca.objectives import (
    burst_covariance,
    compressed_points,
    frobenius,
    frobenius_pushed,
    gauss_newton_rows,
    likelihood,
    likelihood_noisy_with_gradient,
    likelihood_pushed,
    likelihood_pushed_with_gradient,
    reconstruction,
    sampling_floor,
    with_noise,
)

KD = [(1, 1), (1, 3), (2, 2), (2, 3), (3, 5), (4, 4)]


def pushed_tangents(k, d, n=6, seed=0):
    return torch.randn(k, n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def encoded_bursts(n=6, m=9, d=3, seed=0):
    return torch.randn(n, m, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def gaussian_covariances(n, m, k, seed=0):
    """Sample covariances of n bursts of m standard Gaussian points."""
    return burst_covariance(encoded_bursts(n, m, k, seed))


def grams(pushed):
    """G_i = T_i T_iᵀ as a list of NumPy matrices."""
    T = pushed.numpy()
    return [T[:, i] @ T[:, i].T for i in range(T.shape[1])]


# -- whitening, against NumPy -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "d"), [(9, 3), (2, 2), (40, 1)])
def test_burst_covariance_divides_by_m_less_one(m, d):
    encoded = encoded_bursts(m=m, d=d)
    expected = [np.cov(burst.T).reshape(d, d) for burst in encoded.numpy()]
    np.testing.assert_allclose(burst_covariance(encoded).numpy(), expected, atol=1e-13)


def test_frobenius_is_its_formula():
    covariance = burst_covariance(encoded_bursts())
    expected = [np.linalg.norm(c / 0.3**2 - np.eye(3), "fro") ** 2 for c in covariance.numpy()]
    np.testing.assert_allclose(frobenius(covariance, 0.3).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(("k", "d"), KD)
def test_frobenius_of_pushed_tangents(k, d):
    """‖TᵀT − I_d‖² with the d × d matrix written out, which is ‖G − I_k‖² + d − k."""
    pushed = pushed_tangents(k, d)
    expected = [np.linalg.norm(t.T @ t - np.eye(d), "fro") ** 2 for t in pushed.transpose(0, 1).numpy()]
    np.testing.assert_allclose(frobenius_pushed(pushed).numpy(), expected, rtol=1e-12)
    covariance = torch.einsum("knc,kne->nce", pushed, pushed)
    np.testing.assert_allclose(frobenius(covariance, 1.0).numpy(), expected, rtol=1e-12)
    assert torch.all(frobenius_pushed(pushed) >= d - k)


@pytest.mark.parametrize(("k", "d"), KD)
def test_likelihood_of_pushed_tangents(k, d):
    pushed = pushed_tangents(k, d)
    expected = [np.trace(G) - np.linalg.slogdet(G)[1] - k for G in grams(pushed)]
    np.testing.assert_allclose(likelihood_pushed(pushed).numpy(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(likelihood_pushed_with_gradient(pushed)[0].numpy(), expected, rtol=1e-10, atol=1e-12)


def test_likelihood_of_raw_bursts():
    covariance = burst_covariance(encoded_bursts(d=3))
    for k in (1, 2, 3):
        expected = []
        for c in covariance.numpy():
            values = np.sort(np.linalg.eigvalsh(c / 0.7**2))[::-1][:k]
            expected.append((values - np.log(values) - 1).sum())
        np.testing.assert_allclose(likelihood(covariance, 0.7, k).numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize(("k", "d"), [(2, 2), (2, 3)])
def test_raw_and_pushed_likelihood_agree(k, d):
    """The eigenvalues of TᵀT are those of G = TTᵀ, and zeros."""
    pushed = pushed_tangents(k, d)
    covariance = 0.5**2 * torch.einsum("knc,kne->nce", pushed, pushed)
    torch.testing.assert_close(likelihood(covariance, 0.5, k), likelihood_pushed(pushed))


# -- gradients --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "d"), KD)
def test_gradients_of_pushed_objectives(k, d):
    pushed = pushed_tangents(k, d).requires_grad_()
    assert gradcheck(frobenius_pushed, pushed)
    assert gradcheck(likelihood_pushed, pushed)


def test_gradients_of_raw_objectives():
    encoded = encoded_bursts(n=3).requires_grad_()
    assert gradcheck(lambda e: frobenius(burst_covariance(e), 0.8), encoded)
    assert gradcheck(lambda e: likelihood(burst_covariance(e), 0.8, 2), encoded)
    points = encoded_bursts(n=3, seed=1)
    assert gradcheck(lambda e: reconstruction(points, e), encoded)


@pytest.mark.parametrize(("k", "d"), KD)
def test_the_hand_written_gradient(k, d):
    pushed = pushed_tangents(k, d)
    value, gradient = likelihood_pushed_with_gradient(pushed)
    step = 1e-6
    for index in np.ndindex(*pushed.shape):
        e = torch.zeros_like(pushed)
        e[index] = step
        change = (likelihood_pushed(pushed + e) - likelihood_pushed(pushed - e)) / (2 * step)
        assert float(gradient[index]) == pytest.approx(float(change[index[1]]), rel=1e-5, abs=1e-6)
    for i, G in enumerate(grams(pushed)):
        T = pushed[:, i].numpy()
        np.testing.assert_allclose(gradient[:, i].numpy(), 2 * (T - np.linalg.solve(G, T)), rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(value, likelihood_pushed(pushed))


@pytest.mark.parametrize("k", [2, 3])
def test_the_hand_written_gradient_of_nearly_parallel_tangents(k):
    pushed = pushed_tangents(1, 4).repeat(k, 1, 1) + 1e-3 * pushed_tangents(k, 4, seed=1)
    twin = pushed.clone().requires_grad_()
    (expected,) = torch.autograd.grad(likelihood_pushed(twin).sum(), twin)
    torch.testing.assert_close(likelihood_pushed_with_gradient(pushed)[1], expected, rtol=1e-6, atol=1e-6)


def test_the_hand_written_gradient_leaves_its_argument():
    pushed = pushed_tangents(2, 3)
    before = pushed.clone()
    likelihood_pushed_with_gradient(pushed)
    assert torch.equal(pushed, before)


# -- what the design rests on -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "d"), KD)
def test_the_likelihood_is_least_at_orthonormal_tangents(k, d):
    frame = torch.tensor(random_rotation(d, 0)[:k]).unsqueeze(1)  # (k, 1, d)
    value, gradient = likelihood_pushed_with_gradient(frame)
    assert float(value) == pytest.approx(0, abs=1e-12)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-12, rtol=0)
    for seed in range(20):
        assert float(likelihood_pushed(frame + 0.1 * pushed_tangents(k, d, 1, seed))) > 0


def test_a_collapse_is_barred_by_the_likelihood_and_not_by_frobenius():
    losses = {size: torch.tensor([[[1.0, 0.0]], [[0.0, size]]], dtype=torch.float64) for size in (1e-2, 1e-4, 1e-8)}
    barrier = [float(likelihood_pushed(pushed)) for pushed in losses.values()]
    plateau = [float(frobenius_pushed(pushed)) for pushed in losses.values()]
    np.testing.assert_allclose(np.diff(barrier), [2 * np.log(100), 2 * np.log(1e4)], rtol=1e-3)
    np.testing.assert_allclose(plateau, 1, atol=1e-3)


def least_scale(objective):
    """The covariance scale c at which the mean of `objective(c)` is least."""
    return minimize_scalar(lambda c: float(objective(c).mean()), bounds=(0.5, 1.5), method="bounded").x


@pytest.mark.parametrize(("k", "m"), [(1, 10), (2, 10), (2, 40), (3, 20)])
def test_frobenius_has_a_scale_bias_and_the_likelihood_has_none(k, m):
    """On M Gaussian points the Frobenius loss is least at covariance scale 1/(1 + (k + 1)/(M − 1))."""
    covariances = gaussian_covariances(20_000, m, k)
    mean_scale = float(torch.einsum("ncc->n", covariances).mean() / k)
    assert mean_scale == pytest.approx(1, abs=0.01)
    assert least_scale(lambda c: frobenius(c * covariances, 1.0)) == pytest.approx(
        1 / (1 + (k + 1) / (m - 1)), abs=0.01
    )
    pushed = torch.linalg.cholesky(covariances).permute(2, 0, 1)  # TᵀT = C
    assert least_scale(lambda c: likelihood_pushed(c**0.5 * pushed)) == pytest.approx(1, abs=0.01)


def test_the_scale_bias_at_the_papers_setting():
    """k = 2, M = 200: distances shrink by 0.75 %."""
    assert 1 - np.sqrt(1 / (1 + 3 / 199)) == pytest.approx(0.0075, abs=5e-5)
    covariances = gaussian_covariances(4000, 200, 2)
    scale = least_scale(lambda c: frobenius(c * covariances, 1.0))
    assert 1 - np.sqrt(scale) == pytest.approx(0.0075, abs=0.0015)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_sampling_floors(k):
    """What sampling leaves of a perfect encoder's loss: k(k+1)/(2(M−1)) of the likelihood, twice that of Frobenius."""
    m = 100
    covariances = gaussian_covariances(20_000, m, k)
    floor = float(sampling_floor(torch.tensor(float(m)), k))
    assert floor == pytest.approx(k * (k + 1) / (2 * (m - 1)))
    assert float(likelihood(covariances, 1.0, k).mean()) == pytest.approx(floor, rel=0.06)
    assert float(frobenius(covariances, 1.0).mean()) == pytest.approx(2 * floor, rel=0.06)


def test_sampling_floor_of_each_burst():
    counts = torch.tensor([3.0, 11.0, float("inf")], dtype=torch.float64)
    np.testing.assert_allclose(sampling_floor(counts, 2).numpy(), [1.5, 0.3, 0.0])


@given(seed=st.integers(0, 10_000))
def test_a_rotation_of_the_embedding_changes_nothing(seed):
    rotation = torch.tensor(random_rotation(3, seed))
    pushed, encoded = pushed_tangents(2, 3, seed=seed), encoded_bursts(seed=seed)
    for objective in (frobenius_pushed, likelihood_pushed, lambda p: likelihood_pushed_with_gradient(p)[0]):
        torch.testing.assert_close(objective(pushed @ rotation), objective(pushed))
    for objective in (lambda c: frobenius(c, 0.5), lambda c: likelihood(c, 0.5, 3)):
        moved = burst_covariance(encoded @ rotation + 7)
        torch.testing.assert_close(objective(moved), objective(burst_covariance(encoded)), rtol=1e-8, atol=1e-8)


@given(seed=st.integers(0, 10_000))
def test_which_tangents_span_a_burst_does_not_matter(seed):
    """G turns with the tangents: A_i is known up to an orthogonal matrix only."""
    pushed = pushed_tangents(3, 4, seed=seed)
    turned = torch.einsum("ab,bnc->anc", torch.tensor(random_rotation(3, seed)), pushed)
    torch.testing.assert_close(likelihood_pushed(turned), likelihood_pushed(pushed), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(frobenius_pushed(turned), frobenius_pushed(pushed), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("k", "d"), KD)
def test_gauss_newton_rows_measure_the_change_of_the_gram_matrix(k, d):
    pushed, change = pushed_tangents(k, d), pushed_tangents(k, d, seed=1)
    rows = gauss_newton_rows(pushed)
    assert rows.shape == (k * (k + 1) // 2, k, 6, d)
    residuals = torch.einsum("rknc,knc->rn", rows, change)
    dG = torch.einsum("anc,bnc->nab", pushed, change) + torch.einsum("anc,bnc->nab", change, pushed)
    torch.testing.assert_close(residuals.square().sum(dim=0), 0.5 * dG.square().sum(dim=(1, 2)))


def test_gauss_newton_rows_are_the_likelihoods_curvature_at_the_minimum():
    """L(T + εS) = ½ ‖ε dG‖² + O(ε³) at G = I: the residuals' squares are the loss itself, to second order."""
    frame = torch.tensor(random_rotation(3, 0)[:2]).unsqueeze(1)
    change = pushed_tangents(2, 3, 1)
    residuals = torch.einsum("rknc,knc->rn", gauss_newton_rows(frame), change)
    step = 1e-4
    loss = likelihood_pushed(frame + step * change) / step**2
    torch.testing.assert_close(loss, residuals.square().sum(dim=0), rtol=1e-2, atol=0)


# -- noise ------------------------------------------------------------------------------------------------------


def noisy_covariances(k, n=6, seed=2, signal=0.3):
    """E and R (n, k, k): covariances of bursts, and of the noise in them."""
    random = np.random.RandomState(seed)
    roots = random.standard_normal((2, n, k, k))
    noise, rest = np.einsum("snab,sncb->snac", roots, roots) / k
    return torch.tensor(signal * np.eye(k) + rest + noise), torch.tensor(noise)


@pytest.mark.parametrize(("k", "d"), KD)
def test_the_noisy_likelihood_is_that_of_a_wishart_distribution(k, d):
    """−2 log p(E | K) / ν, less its value at K = E, where p is the density of a sample covariance of ν + 1 points."""
    pushed, (total, noise), freedom = pushed_tangents(k, d), noisy_covariances(k), 40

    def minus_log(E, K):
        return -2 / freedom * wishart.logpdf(freedom * E, freedom, K)

    told = [np.linalg.inv(G) + R for G, R in zip(grams(pushed), noise.numpy(), strict=True)]
    expected = [minus_log(E, K) - minus_log(E, E) for E, K in zip(total.numpy(), told, strict=True)]
    value, _ = likelihood_noisy_with_gradient(pushed, total, noise)
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-8, atol=1e-10)
    direct = [np.trace(M) - np.linalg.slogdet(M)[1] - k for M in np.linalg.solve(told, total.numpy())]
    np.testing.assert_allclose(value.numpy(), direct, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("k", "d"), KD)
def test_the_gradient_of_the_noisy_likelihood(k, d):
    pushed, (total, noise) = pushed_tangents(k, d), noisy_covariances(k)
    _, gradient = likelihood_noisy_with_gradient(pushed, total, noise)
    step = 1e-6
    for index in np.ndindex(*pushed.shape):
        e = torch.zeros_like(pushed)
        e[index] = step
        after, before = (likelihood_noisy_with_gradient(p, total, noise)[0] for p in (pushed + e, pushed - e))
        change = float(after[index[1]] - before[index[1]]) / (2 * step)
        assert float(gradient[index]) == pytest.approx(change, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("k", "d"), KD)
def test_without_noise_the_noisy_likelihood_is_the_likelihood(k, d):
    pushed = pushed_tangents(k, d)
    total = torch.eye(k, dtype=torch.float64).repeat(6, 1, 1)
    value, gradient = likelihood_noisy_with_gradient(pushed, total, torch.zeros_like(total))
    expected, slope = likelihood_pushed_with_gradient(pushed)
    torch.testing.assert_close(value, expected, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(gradient, slope, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("k", "d"), KD)
def test_tangents_with_noise_have_the_noisy_likelihood(k, d):
    pushed, (total, noise) = pushed_tangents(k, d), noisy_covariances(k)
    white = with_noise(pushed, total, noise)
    assert white.shape == pushed.shape
    value, _ = likelihood_noisy_with_gradient(pushed, total, noise)
    torch.testing.assert_close(likelihood_pushed(white), value, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_noisy_likelihood_is_least_where_the_rest_is_the_signal(k):
    """It is 0 at G⁻¹ = E − R, with no gradient, and more elsewhere."""
    total, noise = noisy_covariances(k)
    pushed = torch.linalg.cholesky(torch.linalg.inv(total - noise)).permute(1, 0, 2)
    value, gradient = likelihood_noisy_with_gradient(pushed, total, noise)
    torch.testing.assert_close(value, torch.zeros_like(value), rtol=0, atol=1e-10)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-9)
    for seed in range(5):
        moved = pushed + 0.1 * pushed_tangents(k, k, seed=seed)
        assert torch.all(likelihood_noisy_with_gradient(moved, total, noise)[0] > 0)


@given(seed=st.integers(0, 10_000))
def test_the_basis_of_the_tangents_does_not_matter_with_noise(seed):
    """E and R are matrices in the basis of the tangents, and turn with it."""
    pushed, (total, noise) = pushed_tangents(3, 4, seed=seed), noisy_covariances(3, seed=seed)
    turn = torch.tensor(random_rotation(3, seed))
    turned = [turn @ matrix @ turn.T for matrix in (total, noise)]
    value, gradient = likelihood_noisy_with_gradient(pushed, total, noise)
    other, slope = likelihood_noisy_with_gradient(torch.einsum("ab,bnc->anc", turn, pushed), *turned)
    torch.testing.assert_close(other, value, rtol=1e-6, atol=1e-8)
    size = float(gradient.abs().max())
    torch.testing.assert_close(slope, torch.einsum("ab,bnc->anc", turn, gradient), rtol=1e-5, atol=1e-7 * size)


def test_a_burst_that_is_mostly_noise_weighs_little():
    """The gradient fades as the square of the noise; in float32 as well, where E is near R."""
    pushed = pushed_tangents(2, 3, n=1)
    eye = torch.eye(2, dtype=torch.float64)[None]
    slopes = [likelihood_noisy_with_gradient(pushed, 2 * eye + s * eye, s * eye)[1].norm() for s in (0.0, 1e2, 1e4)]
    assert slopes[1] < 1e-2 * slopes[0]
    assert float(slopes[2] / slopes[1]) == pytest.approx(1e-4, rel=0.2)
    value, gradient = likelihood_noisy_with_gradient(pushed.float(), (1e4 + 2) * eye.float(), 1e4 * eye.float())
    assert torch.isfinite(value).all() and torch.isfinite(gradient).all()


# -- reconstruction ---------------------------------------------------------------------------------------------


def test_reconstruction_is_the_squared_distance_of_each_point():
    points, decoded = encoded_bursts(), encoded_bursts(seed=1)
    expected = np.square(points.numpy() - decoded.numpy()).sum(axis=-1)
    assert reconstruction(points, decoded).shape == (6, 9)
    np.testing.assert_allclose(reconstruction(points, decoded).numpy(), expected)
    np.testing.assert_allclose(reconstruction(points[0], decoded[0]).numpy(), expected[0])


@pytest.mark.parametrize(("k", "dim"), [(1, 1), (1, 4), (2, 3), (3, 3), (4, 9)])
def test_compressed_points_have_the_mean_and_covariance_of_the_burst(k, dim):
    """2k points with mean μ and (1/2k) Σ (y − μ)(y − μ)ᵀ = AᵀA: any quadratic has the same average on them."""
    means, tangents = encoded_bursts(5, 1, dim)[:, 0], encoded_bursts(5, k, dim, seed=1)
    points = compressed_points(means, tangents)
    assert points.shape == (5, 2 * k, dim)
    torch.testing.assert_close(points.mean(dim=1), means)
    centred = points - means[:, None]
    covariance = centred.transpose(1, 2) @ centred / (2 * k)
    torch.testing.assert_close(covariance, tangents.transpose(1, 2) @ tangents)
