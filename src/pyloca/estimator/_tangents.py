"""One tangent more: where bursts leave open whether k is too small, both are fitted, and held-out bursts decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyloca.findings import Finding, hidden_tangent_words

__all__ = ["one_tangent_more"]


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
    other = refit(k + 1)
    after = other["diagnostics_"]
    if not after.findings:
        note = (
            f"inside bursts only {k} can be told from bends, but neighbouring bursts lie apart in one direction more. "
            f"Both were fitted: with k = {k + 1} held-out bursts are white (loss {after.whitening_loss:.3g}, sampling "
            f"alone leaves {after.sampling_floor:.3g}) and nothing is wrong, with k = {k} coordinates miss that "
            f"direction. k = {k + 1} is used; intrinsic_dim={k} overrules this"
        )
        return other | {"diagnostics_": replace(after, tangents=note)}
    wrong = ", ".join(finding.name for finding in after.findings)
    told = Finding("large_bursts", hidden_tangent_words(k, tried=wrong))
    others = tuple(finding for finding in before.findings if finding.name != told.name)
    return fitted | {"diagnostics_": replace(before, findings=(told, *others))}
