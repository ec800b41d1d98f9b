"""What should make a user doubt a fusion, though each instrument by itself looks right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pyloca.errors import MatchError
from pyloca.matching._elastic import some_places
from pyloca.matching._joint import Edge, Joint
from pyloca.matching._precision import Instrument
from pyloca.thresholds import CONTRADICTED, FOLLOWED, TORN_AWAY

__all__ = ["contradicted", "refuse_torn", "too_close"]

ALL = 0.9  # of the bursts of a fit: with fewer, what they leave open is not the fault of the fit


def refuse_torn(looked: Mapping[str, Instrument], joint: Joint) -> None:
    """Refuse a refinement that leaves nothing of a fit: displacements correct it, they do not replace it."""
    for i, (name, one) in enumerate(looked.items()):
        places = some_places(one.model)
        moved = float(np.square(one.elastic.rows(places) @ joint.coefficients[i]).sum(axis=1).mean())
        size = float(places.var(axis=0).sum())
        if not moved <= TORN_AWAY**2 * size:
            what = "Its bursts or its" if one.seen.readings is not None else "Its"
            raise MatchError(
                f"the refinement moves the places of {name!r} by {np.sqrt(moved):.3g}, where they spread over "
                f"{np.sqrt(size):.3g}. {what} anchors are not of this fit. Check the order and the units of their "
                "columns."
            )


def contradicted(looked: Mapping[str, Instrument], edges: Sequence[Edge], joint: Joint, factor: float) -> list[str]:
    """Say that given bursts and anchors do not agree; `factor` is what anchors cost, over what is expected."""
    given = [repr(name) for name, one in looked.items() if one.seen.readings is not None]
    if not given or factor <= CONTRADICTED:
        return []
    apart = np.concatenate([joint.common(e.A, e.i) - joint.common(e.B, e.j) for e in edges])
    return [
        f"the anchors contradict the bursts of {', '.join(given)}: after the refinement they are still "
        f"{np.sqrt(np.square(apart).mean()):.3g} apart per coordinate. An anchor is wrong, or bursts are not those of "
        "the fit. Compare with the fusion without bursts"
    ]


def too_close(looked: Mapping[str, Instrument], joint: Joint) -> list[str]:
    """Name instruments whose fits owe their shape to chance, by their bursts."""
    words = []
    for c, (name, one) in zip(joint.coefficients, looked.items(), strict=True):
        model = one.model
        if one.seen.readings is None or model.n_components_ != model.intrinsic_dim_:
            continue
        better = one.seen.followed(c, model.diagnostics_.tails)
        if better <= FOLLOWED:
            continue
        n, fitted = len(one.seen.places), len(model.embedding_)
        if n < ALL * fitted:
            words.append(
                f"{n} bursts of {name!r} were given, where its fit had {fitted}, and its shape follows these too "
                f"closely, by {better:.1f} standard errors: it is partly chance. Give all of them"
            )
        else:
            words.append(
                f"the fit of {name!r} follows its {n} bursts too closely, by {better:.1f} standard "
                "errors: its shape is partly chance. Fit it to more bursts, or again with another random_state"
            )
    return words
