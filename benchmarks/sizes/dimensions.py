"""Many dimensions k with few points M per burst: the default network against smaller ones.

Bursts of few points say little about each of the k (k + 1)/2 entries of a covariance. A smoothness that is too strong
makes the hidden layers vanish; then a smaller network, or none, is better than the default. k and σ are given: whether
they can be found from so few points is another question.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.fitting import fit_facts
from benchmarks.rows import Row
from pyloca.paper.experiments._measurements import smooth_map

N, SIGMA = 600, 0.02
NETWORKS = ((50, 50), (15,), ())  # the default first
LONG = (0, 1, 2)


def measure(k: int, m: int, seed: int) -> dict[str, Any]:
    """Divide the default's stress by that of the best network."""
    random = np.random.RandomState(seed)
    curve = smooth_map(k, k + 3, random)
    X = random.uniform(size=(N, k))
    bursts = curve(X[:, None] + SIGMA * random.standard_normal((N, m, k)))
    settings = {"intrinsic_dim": k, "burst_std": SIGMA}
    runs = [fit_facts(X, bursts, seed, hidden_layers=hidden, **settings)[0] for hidden in NETWORKS]
    facts = {key: runs[0][key] for key in ("stress", "findings", "seconds")}
    return {
        "value": runs[0]["stress"] / min(run["stress"] for run in runs),
        **facts,
        "of (15,)": runs[1]["stress"],
        "of ()": runs[2]["stress"],
    }


ROWS: tuple[Row, ...] = tuple(
    Row(
        f"k = {k}, M = {m}",
        1.2,
        "stress / that of the best of (50, 50), (15,), ()",
        partial(measure, k, m),
        worst=1.5,
        seeds=LONG if k > 5 else None,
    )
    for k in (3, 4, 5, 6, 8)
    for m in sorted({k + 4, 2 * k, 30})
)
