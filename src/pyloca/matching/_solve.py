"""Which rigid maps two models allow: by anchors, by anchors and shape, or by shape alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pyloca.errors import MatchError
from pyloca.estimator import training_embedding
from pyloca.matching._anchors import Anchors
from pyloca.matching._by_anchors import by_anchors
from pyloca.matching._by_shape import by_shape
from pyloca.matching._contradicted import contradiction
from pyloca.matching._mistakes import of_columns
from pyloca.matching._precision import Instrument
from pyloca.matching._register import Registration
from pyloca.matching._solution import Settings, Solution, expected_variance, relative_size
from pyloca.matching._support import Support

__all__ = ["solve"]

HALF = 0.5  # of the anchors: if no more lie where both were fitted, a mistake in the tables is looked for


def solve(a: Instrument, b: Instrument, anchors: Anchors | None, settings: Settings) -> Solution:
    """Find all candidates."""
    if anchors is None:
        return by_shape(a, b, None, settings)
    seen, doubts, unlike = anchors.seen, anchors.doubts, anchors.unlike
    anchors, words = _seen(a, b, anchors, settings)
    found = by_anchors(a, b, anchors, settings)
    found = by_shape(a, b, anchors, settings) if found is None else _against_shape(a, b, anchors, found, settings)
    if not any(one.possible for one in found.candidates):
        words = (*doubts, *words)
    used, residuals = np.zeros(len(seen), dtype=bool), np.full(len(seen), np.nan)
    used[seen], residuals[seen] = found.used, found.residuals
    return replace(found, used=used, residuals=residuals, words=(*words, *found.words, *unlike))


def _seen(a: Instrument, b: Instrument, anchors: Anchors, settings: Settings) -> tuple[Anchors, tuple[str, ...]]:
    """Leave out anchors where coordinates of one of the instruments are extrapolated."""
    seen = anchors.seen
    if seen.all():
        return anchors, ()
    mistake = ""
    if seen.mean() <= HALF:
        supports = [Support(training_embedding(one.model)) for one in (a, b)]
        for told, A, B in of_columns((a.model, b.model), settings.names, anchors):
            if all((support.inside(Z) > 0).all() for support, Z in zip(supports, (A, B), strict=True)):
                mistake = f"with {told}, all would lie inside: look at the tables"
                break
    if not seen.any():
        cause = mistake or "; ".join(anchors.doubts)
        cause = cause or "there is no overlap to match by. Give anchors from states that both have seen."
        raise MatchError(f"none of the {len(seen)} anchors lies where both instruments were fitted: {cause}")
    (told,) = anchors.outside()
    return anchors.part(seen), (f"{told}; {mistake}" if mistake else told,)


def _against_shape(a: Instrument, b: Instrument, anchors: Anchors, found: Solution, settings: Settings) -> Solution:
    """Compare the map of anchors with what the shapes say; where these are right, nothing is chosen."""
    variance = relative_size(a, b, settings.scale) ** 2 * a.variance + b.variance
    shape = Registration(
        training_embedding(a.model),
        training_embedding(b.model),
        error=float(np.sqrt(variance)),
        scale=settings.scale,
        unevenness=settings.unevenness,
        seed=settings.seed,
    )
    (own,) = found.candidates
    own = replace(own, overlap=shape.overlap(own.rigid))
    found = replace(found, candidates=(own,))
    if not own.possible:
        return found
    used = anchors.part(found.used)
    expected = expected_variance(a, b, used, settings)
    told = contradiction((a.model, b.model), settings.names, used, expected, own.rigid, shape)
    if told is None:
        return found
    own = replace(own, possible=not told.explained)
    return replace(found, candidates=(own,), words=(*found.words, told.words))
