"""The paper on one screen: whitening and reconstruction, as formulas.

Notation: C (n, d, d) covariances of encoded bursts; T (k, n, d) tangents pushed through the encoder and divided by σ,
T_i = A_i J_ρ(μ_i)ᵀ / σ; G_i = T_i T_iᵀ (k × k). Losses are returned per burst.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = [
    "burst_covariance",
    "compressed_points",
    "frobenius",
    "frobenius_pushed",
    "gauss_newton_rows",
    "likelihood",
    "likelihood_noisy_with_gradient",
    "likelihood_pushed",
    "likelihood_pushed_with_gradient",
    "reconstruction",
    "sampling_floor",
    "with_noise",
]


def burst_covariance(encoded: Tensor) -> Tensor:
    """Sample covariance Ĉ(ρ(Y_i)) of encoded bursts, with divisor M − 1.

    Parameters
    ----------
    encoded : (n, M, d) tensor

    Returns
    -------
    (n, d, d) tensor

    Examples
    --------
    >>> burst_covariance(torch.tensor([[[0.0], [2.0]]]))
    tensor([[[2.]]])
    """
    centred = encoded - encoded.mean(dim=1, keepdim=True)
    return centred.transpose(1, 2) @ centred / (encoded.shape[1] - 1)


def frobenius(covariance: Tensor, burst_std: float) -> Tensor:
    """Whitening loss ‖C/σ² − I_d‖²_F (equation 8 of the paper).

    Parameters
    ----------
    covariance : (n, d, d) tensor
    burst_std : float
        σ.

    Returns
    -------
    (n,) tensor

    Examples
    --------
    >>> frobenius(4 * torch.eye(2)[None], burst_std=2.0)
    tensor([0.])
    """
    eye = torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
    return (covariance / burst_std**2 - eye).square().sum(dim=(1, 2))


def frobenius_pushed(pushed: Tensor) -> Tensor:
    """Whitening loss of pushed tangents, ‖T_iᵀ T_i − I_d‖²_F = ‖G_i − I_k‖²_F + (d − k).

    Parameters
    ----------
    pushed : (k, n, d) tensor
        T.

    Returns
    -------
    (n,) tensor

    Examples
    --------
    >>> frobenius_pushed(torch.eye(3)[:2, None])
    tensor([1.])
    """
    k, _, d = pushed.shape
    gram = torch.einsum("anc,bnc->nab", pushed, pushed)
    eye = torch.eye(k, dtype=pushed.dtype, device=pushed.device)
    return (gram - eye).square().sum(dim=(1, 2)) + (d - k)


def likelihood(covariance: Tensor, burst_std: float, k: int) -> Tensor:
    """Likelihood loss of raw bursts: Σ (λ − log λ − 1) over the k largest eigenvalues λ of C/σ².

    Parameters
    ----------
    covariance : (n, d, d) tensor
    burst_std : float
        σ.
    k : int
        Intrinsic dimension.

    Returns
    -------
    (n,) tensor

    Examples
    --------
    >>> likelihood(4 * torch.eye(2)[None], burst_std=2.0, k=2)
    tensor([0.])
    """
    values = torch.linalg.eigvalsh(covariance / burst_std**2)[:, -k:]
    return (values - values.log() - 1).sum(dim=1)


def likelihood_pushed(pushed: Tensor) -> Tensor:
    """Likelihood loss of pushed tangents, tr G_i − log det G_i − k.

    This is −2 times the Wishart log-likelihood of the burst covariance per degree of freedom, minus its value at
    G = I. It has no scale bias, and −log det is a barrier: no dimension can collapse.

    Parameters
    ----------
    pushed : (k, n, d) tensor
        T.

    Returns
    -------
    (n,) tensor

    Examples
    --------
    >>> likelihood_pushed(torch.eye(3)[:2, None])
    tensor([0.])
    """
    k = len(pushed)
    gram = torch.einsum("anc,bnc->nab", pushed, pushed)
    return pushed.square().sum(dim=(0, 2)) - torch.logdet(gram) - k


def likelihood_pushed_with_gradient(pushed: Tensor) -> tuple[Tensor, Tensor]:
    """Likelihood loss of pushed tangents and its gradient 2 (T − G⁻¹ T), by Gram–Schmidt T = L Q: G⁻¹ T = L⁻ᵀ Q.

    All bursts are treated at once in k² vector operations: factorising tiny matrices one by one would cost more than
    the network.

    Parameters
    ----------
    pushed : (k, n, d) tensor
        T.

    Returns
    -------
    value : (n,) tensor
        As `likelihood_pushed`.
    gradient : (k, n, d) tensor
        Of the sum of `value`.

    Examples
    --------
    >>> value, gradient = likelihood_pushed_with_gradient(2 * torch.eye(3)[:2, None])
    >>> gradient[:, 0]
    tensor([[3., 0., 0.],
            [0., 3., 0.]])
    """
    k, n, d = pushed.shape
    columns = pushed.transpose(1, 2)  # (k, d, n): a kernel's output has the points side by side in memory
    lower: dict[tuple[int, int], Tensor] = {}
    basis: list[Tensor] = []
    log_det = pushed.new_zeros(n)
    for a in range(k):
        rest = columns[a]
        for b in range(a):
            lower[a, b] = (rest * basis[b]).sum(dim=0)
            rest = torch.addcmul(rest, lower[a, b], basis[b], value=-1)
        lower[a, a] = (rest * rest).sum(dim=0).sqrt_()  # much quicker than vector_norm
        basis.append(rest / lower[a, a])
        log_det += lower[a, a].log()
    gradient = pushed.new_empty(k, d, n)  # first G⁻¹ T, by back substitution
    for a in range(k - 1, -1, -1):
        row = basis[a]
        for b in range(a + 1, k):
            row = torch.addcmul(row, lower[b, a], gradient[b], value=-1)
        torch.div(row, lower[a, a], out=gradient[a])
    value = columns.square().sum(dim=(0, 1)) - 2 * log_det - k
    return value, torch.sub(columns, gradient, out=gradient).mul_(2).transpose(1, 2)


def likelihood_noisy_with_gradient(pushed: Tensor, total: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Likelihood loss of bursts that contain noise, tr K⁻¹E − log det K⁻¹E − k with K = G⁻¹ + R, and its gradient.

    In the basis of its tangents a burst has the covariance E, of which R is noise. An encoder with pushed tangents T
    says that the rest is G⁻¹, with G = T Tᵀ: this is the Wishart likelihood of E. Nothing is subtracted, so a burst
    that is mostly noise just weighs little. For R = 0 and E = I it is `likelihood_pushed`.

    Parameters
    ----------
    pushed : (k, n, d) tensor
        T.
    total, noise : (n, k, k) tensor
        E and R.

    Returns
    -------
    value : (n,) tensor
    gradient : (k, n, d) tensor
        Of the sum of `value`: 2 G⁻¹ K⁻¹ (E − K) K⁻¹ G⁻¹ T.

    Examples
    --------
    >>> T = torch.eye(2)[:, None]
    >>> value, gradient = likelihood_noisy_with_gradient(T, 3 * torch.eye(2)[None], 2 * torch.eye(2)[None])
    >>> value.item(), gradient.abs().max().item()
    (0.0, 0.0)
    """
    k = len(pushed)
    gram = torch.einsum("anc,bnc->nab", pushed, pushed)
    inverse, _ = _inverse_and_log_det(gram)
    told = inverse + noise  # K
    precision, log_det = _inverse_and_log_det(told)
    value = (precision * total).sum(dim=(1, 2)) + log_det - _inverse_and_log_det(total)[1] - k
    half = inverse @ precision
    slope = half @ (total - told) @ half.transpose(1, 2)  # with respect to G
    return value, 2 * torch.einsum("nab,bnc->anc", slope, pushed)


def _inverse_and_log_det(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Invert positive definite matrices (n, k, k) by Gauss and Jordan, all at once."""
    k = matrices.shape[1]
    out, log_det = matrices.clone(), torch.zeros_like(matrices[:, 0, 0])
    for a in range(k):
        pivot = out[:, a, a].clone()
        log_det += pivot.log()
        row, column = out[:, a] / pivot[:, None], out[:, :, a].clone()
        out -= column[:, :, None] * row[:, None]
        out[:, a], out[:, :, a] = row, -column / pivot[:, None]
        out[:, a, a] = 1 / pivot
    return out, log_det


def with_noise(pushed: Tensor, total: Tensor, noise: Tensor) -> Tensor:
    """Return tangents that are white when the burst, noise included, is as the encoder says.

    Parameters
    ----------
    pushed : (k, n, d) tensor
        T.
    total, noise : (n, k, k) tensor
        E and R of `likelihood_noisy_with_gradient`.

    Returns
    -------
    (k, n, d) tensor
        T′ with T′ T′ᵀ = Lᵀ K⁻¹ L, E = L Lᵀ; its `likelihood_pushed` is the likelihood of the noisy burst.

    Examples
    --------
    >>> white = with_noise(torch.eye(2)[:, None], 3 * torch.eye(2)[None], 2 * torch.eye(2)[None])[:, 0]
    >>> torch.allclose(white, torch.eye(2), atol=1e-6)  # rounding differs between processors
    True
    """
    k, n, d = pushed.shape
    gram = torch.einsum("anc,bnc->nab", pushed, pushed)
    mixed = torch.eye(k, dtype=pushed.dtype, device=pushed.device) + noise @ gram
    lower = torch.linalg.cholesky(total)
    white = lower.transpose(1, 2) @ gram @ torch.linalg.solve(mixed, lower)
    values, vectors = torch.linalg.eigh((white + white.transpose(1, 2)) / 2)
    out = pushed.new_zeros(k, n, d)
    root = vectors * values.clamp(min=0).sqrt()[:, None] @ vectors.transpose(1, 2)
    out[:, :, :k] = root.transpose(0, 1)
    return out


def gauss_newton_rows(pushed: Tensor) -> Tensor:
    """Cotangents of residuals whose squares sum to ½ ‖dG_i‖², the metric of the likelihood at G = I.

    Parameters
    ----------
    pushed : (k, n, d) tensor
        T.

    Returns
    -------
    (k (k + 1) / 2, k, n, d) tensor

    Examples
    --------
    >>> gauss_newton_rows(torch.ones(2, 5, 3)).shape
    torch.Size([3, 2, 5, 3])
    """
    k, n, d = pushed.shape
    rows = []
    for a in range(k):
        for b in range(a, k):
            row = pushed.new_zeros(k, n, d)
            if a == b:
                row[a] = 2**0.5 * pushed[a]
            else:
                row[a], row[b] = pushed[b], pushed[a]
            rows.append(row)
    return torch.stack(rows)


def reconstruction(points: Tensor, decoded: Tensor) -> Tensor:
    """Reconstruction loss ‖y − γ(ρ(y))‖² of each point (equation 9 of the paper).

    Parameters
    ----------
    points, decoded : (…, D) tensor
        y and γ(ρ(y)).

    Returns
    -------
    (…) tensor

    Examples
    --------
    >>> reconstruction(torch.zeros(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """
    return (points - decoded).square().sum(dim=-1)


def compressed_points(means: Tensor, tangents: Tensor) -> Tensor:
    """Compress each burst to the 2k points μ_i ± √k a_il, which have its mean and its (population) covariance.

    Parameters
    ----------
    means : (n, D) tensor
        μ_i.
    tangents : (n, k, D) tensor
        A_i, with rows a_il.

    Returns
    -------
    (n, 2k, D) tensor

    Examples
    --------
    >>> compressed_points(torch.zeros(1, 2), torch.tensor([[[3.0, 0.0]]]))
    tensor([[[ 3.,  0.],
             [-3.,  0.]]])
    """
    step = tangents.shape[1] ** 0.5 * tangents  # (n, k, D)
    return torch.cat([means[:, None] + step, means[:, None] - step], dim=1)


def sampling_floor(counts: Tensor, k: int, tails: float = 1.0) -> Tensor:
    """Return the likelihood loss of a perfect encoder that is due to sampling alone, k (k + 1) / (2 (M_i − 1)).

    This holds for Gaussian points; in general it is ½ (E|x|⁴ − k) / (M_i − 1) for points x of zero mean and unit
    covariance, `tails` times as much.

    Parameters
    ----------
    counts : (n,) tensor
        M_i.
    k : int
        Intrinsic dimension.
    tails : float, default=1
        As in `BurstStatistics`.

    Returns
    -------
    (n,) tensor

    Examples
    --------
    >>> sampling_floor(torch.tensor([4.0, 7.0]), k=2)
    tensor([1.0000, 0.5000])
    """
    return tails * k * (k + 1) / (2 * (counts - 1))
