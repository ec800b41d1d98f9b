"""Whether the verdict on a fit is right, by the stress that its user does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fitting import fit_facts
from pyloca.metrics import stress

__all__ = ["GOOD", "WHAT", "judged"]

GOOD = 0.01  # of the variance
WHAT = "stress / variance"


def judged(
    X: NDArray[np.float64],
    bursts: Any,
    seed: int,
    true: tuple[str, ...],
    before: tuple[str, ...] = (),
    *,
    always: bool = False,
    scale: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """Fit, and compare stress and findings.

    `true`: causes that the data have; "refused" among them: a refusal is right. `before`: what was found before the
    fit. `always`: a finding is also right on a good fit, since the fault is in the data. `scale`: σ is not known, so
    that a common factor is no fault.
    """
    found, model = fit_facts(X, bursts, seed, **settings)
    if model is not None:
        found["precision"] = model.diagnostics_.precision
        if scale:
            found["stress"] = stress(X, model.embedding_, scale=True) / float(X.var(axis=0).sum())
    found["findings"] = [*before, *found["findings"]]
    names, good = found["findings"], found["stress"] <= GOOD
    if not names:
        verdict = "right" if good else "silent"
    elif not set(names) <= set(true):
        verdict = "false" if good else "misnamed"
    else:
        verdict = "right" if always or not good else "false"
    return {"value": found["stress"], "ok": verdict == "right", "verdict": verdict} | found
