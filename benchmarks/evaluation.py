"""One evaluation of the likelihood with gradient, against its matrix products alone, timed in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import torch

from benchmarks.tables import print_table, write_results
from pyloca.networks import MLP, make_kernel
from pyloca.solvers._descent import Evaluation
from pyloca.solvers._fast import _likelihood

N, K, D, HIDDEN = 1800, 2, 2, (50, 50)
THREADS = 1  # as the solver has for matrices of this size
BAR = 2.0


def run(seeds: list[int]) -> bool:
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        ratio, whole, products, rate = _measure()
    finally:
        torch.set_num_threads(before)
    print_table(
        f"one evaluation with gradient, N = {N}, hidden {HIDDEN}, float64, one thread",
        ("what", "value", "bar"),
        [
            ("evaluation, ms", 1e3 * whole, ""),
            ("its matrix products, ms", 1e3 * products, ""),
            ("ratio", ratio, f"<= {BAR:g}"),
            ("rate of the products, GFLOP/s", rate, ""),
        ],
    )
    facts = {"evaluation_ms": 1e3 * whole, "products_ms": 1e3 * products, "ratio": ratio, "bar": BAR, "gflops": rate}
    write_results("evaluation", facts | {"holds": ratio <= BAR})
    return ratio <= BAR


def _measure() -> tuple[float, float, float, float]:
    generator = torch.Generator().manual_seed(0)
    random = partial(torch.randn, dtype=torch.float64, generator=generator)
    kernel = make_kernel(MLP(D, HIDDEN, 2, skip=True).double())
    loss = partial(_likelihood, torch.ones(N, dtype=torch.float64), ())
    evaluation = Evaluation(kernel, random(1 + K, N, D), loss, 1e-6)
    theta = kernel.theta.clone()
    sizes = [D, *HIDDEN, 2]
    rows = (1 + K) * N
    values, weights = [random(size, rows) for size in sizes], [random(b, a) for a, b in pairwise(sizes)]
    out, grads = [torch.empty_like(v) for v in values], [torch.empty_like(w) for w in weights]

    def products() -> None:
        for i, weight in enumerate(weights):
            torch.mm(weight, values[i], out=out[i + 1])
        for i in reversed(range(len(weights))):
            torch.mm(values[i + 1], values[i].T, out=grads[i])
            if i:
                torch.mm(weights[i].T, values[i + 1], out=out[i])

    flops = sum(2 * rows * a * b * (3 if i else 2) for i, (a, b) in enumerate(pairwise(sizes)))
    # Both in turn, so that a busy machine slows both; the median ratio of many turns.
    pairs = [(_time(lambda: evaluation(theta)), _time(products)) for _ in range(60)][10:]
    whole, alone = (statistics.median(column) for column in zip(*pairs, strict=True))
    return statistics.median(a / b for a, b in pairs), whole, alone, flops / alone / 1e9


def _time(function: Callable[[], object], repeats: int = 10) -> float:
    start = time.process_time()
    for _ in range(repeats):
        function()
    return (time.process_time() - start) / repeats
