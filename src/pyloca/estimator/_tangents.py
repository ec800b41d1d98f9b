"""One tangent more: where bursts leave open whether k is too small, both are fitted, and held-out bursts decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pyloca.bursts import Bursts
from pyloca.findings import Finding, hidden_tangent_words
from pyloca.geometry import BurstSpectra
from pyloca.thresholds import CLEAR_GAP, PROBE

__all__ = ["ends_later", "one_tangent_more"]


def ends_later(bursts: Bursts, k: int) -> bool:
    """Whether the spectrum of the bursts drops clearly after k + 1 directions, and not after k.

    One-sided or heavy-tailed points make a tangent look like a bend of the others. If the fit is bad then, k may be.

    Parameters
    ----------
    bursts : Bursts
    k : int
        As estimated.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.RandomState(0).standard_normal((50, 20, 4)) * [1.0, 0.5, 0.001, 0.001]
    >>> ends_later(Bursts(points), 1), ends_later(Bursts(points), 2)
    (True, False)
    """
    values = np.median(BurstSpectra.of(bursts, PROBE).values, axis=0)
    if len(values) < k + 2:
        return False
    kept, next_one, rest = values[k - 1 : k + 2]
    return bool(kept < CLEAR_GAP * next_one and next_one > CLEAR_GAP * rest)


def one_tangent_more(fitted: dict[str, Any], refit: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """Fit with k + 1 tangents and return what is sound; say what was decided, and why.

    Parameters
    ----------
    fitted : dict
        Attributes of a fit whose k was estimated and in which a tangent may be hidden.
    refit : callable
        Makes the same with another k.

    Returns
    -------
    dict
        The fit with k + 1 if held-out bursts are white in it and no check has found a fault, else that with k.
    """
    before, k = fitted["diagnostics_"], fitted["intrinsic_dim_"]
    hidden = not before.findings or any(finding.name == "large_bursts" for finding in before.findings)
    other = refit(k + 1)
    after = other["diagnostics_"]
    if not after.findings:
        seen = "neighbouring bursts lie apart in one direction more" if hidden else "spectra end one direction later"
        note = (
            f"inside bursts only {k} can be told from bends, but {seen}. Both were fitted: with "
            f"k = {k + 1} held-out bursts are white (loss {after.whitening_loss:.3g}, sampling "
            f"alone leaves {after.sampling_floor:.3g}) and nothing is wrong, with k = {k} coordinates miss that "
            f"direction. k = {k + 1} is used; intrinsic_dim={k} overrules this"
        )
        return other | {"diagnostics_": replace(after, tangents=note)}
    if not hidden:
        return fitted
    wrong = ", ".join(finding.name for finding in after.findings)
    told = Finding("large_bursts", hidden_tangent_words(k, tried=wrong))
    others = tuple(finding for finding in before.findings if finding.name != told.name)
    return fitted | {"diagnostics_": replace(before, findings=(told, *others))}
