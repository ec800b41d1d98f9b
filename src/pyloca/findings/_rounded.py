"""Readings in steps, as of a coarse converter: inside a burst they take a few values, which look like noise."""

from __future__ import annotations

import numpy as np

from pyloca.bursts import Bursts
from pyloca.geometry import sample_rows
from pyloca.thresholds import COARSE, RECHECKED

__all__ = ["rounded_words"]

NAMED = 3  # features at most in a message


def rounded_words(bursts: Bursts) -> str:
    """Name the features whose readings come in steps that are large beside the bursts; "" if there are none.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.RandomState(0).standard_normal((50, 20, 1))
    >>> rounded_words(Bursts(points)), rounded_words(Bursts(points.round()))
    ('', 'feature 0 in steps of 1, 98% of its spread inside a burst')
    """
    sample = bursts[sample_rows(len(bursts), RECHECKED)]
    blocks = [block for _, block in sample.blocks()]
    inside = np.sqrt(np.concatenate([block.var(axis=1, ddof=1) for block in blocks]).mean(axis=0))
    told: list[tuple[float, str]] = []
    for j, spread in enumerate(inside):
        values = np.unique(np.concatenate([block[..., j].ravel() for block in blocks]))
        gaps = np.diff(values)
        # of as many values without steps, the least gap is a tiny part of the mean one
        step = float(gaps.min()) if len(gaps) else 0.0
        part = step / spread if spread > 0 else 0.0
        if COARSE.passed(part):
            words = f"{bursts.feature_label(j)} in steps of {step:.3g}, {part:.0%} of its spread inside a burst"
            told.append((part, words))
    told.sort(reverse=True)
    more = f", and {len(told) - NAMED} more" if len(told) > NAMED else ""
    return "; ".join(words for _, words in told[:NAMED]) + more
