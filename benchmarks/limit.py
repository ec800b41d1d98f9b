"""What no model can beat on mushroom: maximum likelihood in the true coordinates, with polynomial freedom.

The encoder is the true inverse plus a polynomial displacement; to first order its whitening is linear least squares in
the coefficients. Bursts at x₁ < 0.03, where f₁ is singular, are left out of the fit.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import legendre

from benchmarks.tables import print_table, write_results
from pyloca import datasets
from pyloca.geometry import BurstStatistics
from pyloca.metrics import stress

DEGREES = (1, 2, 4, 6, 8, 12)


def run(seeds: list[int]) -> bool:
    table = {seed: {2 * _count(degree): _limit(seed, degree) for degree in DEGREES} for seed in seeds}
    freedoms = list(table[seeds[0]])
    print_table(
        "mushroom: stress of the maximum-likelihood fit, by degrees of freedom",
        ("seed", *map(str, freedoms)),
        [
            *[[seed, *(f"{value:.1e}" for value in row.values())] for seed, row in table.items()],
            ["median", *(f"{np.median([row[f] for row in table.values()]):.1e}" for f in freedoms)],
        ],
    )
    write_results(
        "limit", {"freedoms": freedoms, "rows": {str(seed): list(row.values()) for seed, row in table.items()}}
    )
    return True


def _count(degree: int) -> int:
    return (degree + 1) * (degree + 2) // 2 - 1


def _limit(seed: int, degree: int) -> float:
    data = datasets.mushroom(random_state=seed)
    statistics = BurstStatistics.from_bursts(data.bursts, 2)
    # Tangents pushed through the true inverse at the burst mean: x₀ = (y₀ − y₁)/2, x₁ = ((y₀ + y₁)/2)^⅓.
    first, second = statistics.tangents[:, :, 0], statistics.tangents[:, :, 1]
    x1 = np.cbrt(statistics.means.mean(axis=1))[:, None]
    pushed = np.stack([(first - second) / 2, (first + second) / 2 / (3 * x1**2)], axis=2) / data.burst_std
    gram = np.einsum("nka,nkb->nab", pushed, pushed)
    used = data.X[:, 1] > 0.03

    powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i) if i + j > 0]
    value = np.stack([_legendre(data.X, i, j) for i, j in powers], axis=1)
    d0 = np.stack([_legendre(data.X, i, j, derivative=0) for i, j in powers], axis=1)
    d1 = np.stack([_legendre(data.X, i, j, derivative=1) for i, j in powers], axis=1)
    zero, root = np.zeros_like(d0), np.sqrt(2)
    design = np.concatenate([np.c_[root * d0, zero][used], np.c_[zero, root * d1][used], np.c_[d1, d0][used]])
    wanted = -np.concatenate([(gram[used, 0, 0] - 1) / root, (gram[used, 1, 1] - 1) / root, gram[used, 0, 1]])
    found = np.linalg.lstsq(design, wanted, rcond=1e-10)[0]
    n = len(powers)
    return stress(data.X, data.X + np.stack([value @ found[:n], value @ found[n:]], axis=1))


def _legendre(X: np.ndarray, i: int, j: int, derivative: int | None = None) -> np.ndarray:
    factors = []
    for axis, order in enumerate((i, j)):
        series = np.eye(order + 1)[order]
        if derivative == axis:
            series = 2 * legendre.legder(series)  # the square [0, 1] is mapped to [−1, 1]
        factors.append(legendre.legval(2 * X[:, axis] - 1, series))
    return factors[0] * factors[1]
