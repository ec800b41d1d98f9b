"""The paper on one screen: whitening and reconstruction, as formulas.

Notation: C (n, d, d) covariances of encoded bursts; T (k, n, d) tangents pushed through the encoder and divided by σ,
T_i = A_i J_ρ(μ_i)ᵀ / σ; G_i = T_i T_iᵀ (k × k). Every function returns one number a burst unless it says otherwise.
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
    "likelihood_pushed",
    "likelihood_pushed_with_gradient",
    "reconstruction",
    "sampling_floor",
]


def burst_covariance(encoded: Tensor) -> Tensor:
    """Ĉ(ρ(Y_i)), dividing by M − 1: (n, M, d) → (n, d, d)."""
    centred = encoded - encoded.mean(dim=1, keepdim=True)
    return centred.transpose(1, 2) @ centred / (encoded.shape[1] - 1)


def frobenius(covariance: Tensor, burst_std: float) -> Tensor:
    """‖C/σ² − I_d‖²_F, the whitening loss (equation 8 of the paper)."""
    eye = torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
    return (covariance / burst_std**2 - eye).square().sum(dim=(1, 2))


def frobenius_pushed(pushed: Tensor) -> Tensor:
    """‖T_iᵀ T_i − I_d‖²_F = ‖G_i − I_k‖²_F + (d − k): the same on pushed tangents (k, n, d)."""
    k, _, d = pushed.shape
    gram = torch.einsum("anc,bnc->nab", pushed, pushed)
    eye = torch.eye(k, dtype=pushed.dtype, device=pushed.device)
    return (gram - eye).square().sum(dim=(1, 2)) + (d - k)


def likelihood(covariance: Tensor, burst_std: float, k: int) -> Tensor:
    """Σ over the k largest eigenvalues λ of C/σ² of λ − log λ − 1: the likelihood on raw bursts."""
    values = torch.linalg.eigvalsh(covariance / burst_std**2)[:, -k:]
    return (values - values.log() - 1).sum(dim=1)


def likelihood_pushed(pushed: Tensor) -> Tensor:
    """tr G_i − log det G_i − k, for pushed tangents (k, n, d).

    Minus twice the Wishart log-likelihood of the burst covariance, a degree of freedom, less its value at G = I. It has
    no scale bias, and −log det is a barrier: no dimension can collapse.
    """
    k = len(pushed)
    gram = torch.einsum("anc,bnc->nab", pushed, pushed)
    return pushed.square().sum(dim=(0, 2)) - torch.logdet(gram) - k


def likelihood_pushed_with_gradient(pushed: Tensor) -> tuple[Tensor, Tensor]:
    """`likelihood_pushed` and its gradient 2 (T − G⁻¹ T), (k, n, d), by Gram–Schmidt T = L Q: G⁻¹ T = L⁻ᵀ Q.

    All bursts at once in k² vector operations: factorising tiny matrices one by one would cost more than the network.
    """
    k = len(pushed)
    lower: dict[tuple[int, int], Tensor] = {}
    basis: list[Tensor] = []
    log_det = torch.zeros_like(pushed[0, :, 0])
    for a in range(k):
        rest = pushed[a]
        for b in range(a):
            lower[a, b] = (rest * basis[b]).sum(dim=1, keepdim=True)
            rest = rest - lower[a, b] * basis[b]
        lower[a, a] = torch.linalg.vector_norm(rest, dim=1, keepdim=True)
        basis.append(rest / lower[a, a])
        log_det += 2 * lower[a, a][:, 0].log()
    gradient = torch.empty_like(pushed)  # first G⁻¹ T, by back substitution
    for a in range(k - 1, -1, -1):
        row = basis[a]
        for b in range(a + 1, k):
            row = row - lower[b, a] * gradient[b]
        torch.div(row, lower[a, a], out=gradient[a])
    value = pushed.square().sum(dim=(0, 2)) - log_det - k
    return value, torch.sub(pushed, gradient, out=gradient).mul_(2)


def gauss_newton_rows(pushed: Tensor) -> Tensor:
    """Cotangents (k(k+1)/2, k, n, d) of residuals whose squares sum to ½ ‖dG_i‖²: the likelihood's metric at G = I."""
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
    """‖y − γ(ρ(y))‖², one number a point (equation 9): (…, D) → (…)."""
    return (points - decoded).square().sum(dim=-1)


def compressed_points(means: Tensor, tangents: Tensor) -> Tensor:
    """The 2k points μ_i ± √k a_il, which have the burst's mean and covariance exactly: (n, 2k, D)."""
    step = tangents.shape[1] ** 0.5 * tangents  # (n, k, D)
    return torch.cat([means[:, None] + step, means[:, None] - step], dim=1)


def sampling_floor(counts: Tensor, k: int) -> Tensor:
    """Expected likelihood loss of a perfect encoder, k(k+1) / (2 (M_i − 1)): what sampling alone leaves."""
    return k * (k + 1) / (2 * (counts - 1))
