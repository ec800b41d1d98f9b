"""A match as one page: the maps of both instruments side by side, linked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca.matching import Match
from pyloca.report._maps import MOST_SENSORS, drawn_places, listed_sensors, maps_page, rounded

__all__ = ["match_page"]

Array = NDArray[np.float64]

MOST_CANDIDATES = 12


def match_page(match: Match, title: str = "") -> str:
    """Render a match as one self-contained HTML file.

    Drag a point on the map of one instrument to see the same state on that of the other, with its 95 % region and the
    predicted readings. Of an ambiguous match every candidate can be tried; of a refused one, maps are not linked.

    Parameters
    ----------
    match : Match
    title : str, default=""
        Heading; "" names the instruments.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import LOCA
    >>> from pyloca.bursts import from_function
    >>> from pyloca.matching import match
    >>> X = np.random.RandomState(0).uniform(size=(120, 2)) * [2, 1]
    >>> def bend(x): return np.c_[x, x[:, 0] * x[:, 1]]
    >>> def turn(x): return np.c_[x[:, 1], 3 - x[:, 0]]
    >>> a, b = (
    ...     LOCA(hidden_layers=(5,), random_state=0).fit(from_function(f, X, 0.01, 20, random_state=0))
    ...     for f in (bend, turn)
    ... )
    >>> "<canvas" in match_page(match(a, b, (bend(X[:5]), turn(X[:5]))))
    True
    """
    shown = match.candidates[:MOST_CANDIDATES]
    return maps_page(
        "linked",
        title=title or f"{match.names[0]} and {match.names[1]}",
        names=match.names,
        facts=match.facts(),
        warnings=match.warnings if match.chosen is not None else [match.refusal()],
        data=_data(match),
        candidates=[_described(i, one) for i, one in enumerate(shown)],
        chosen=match.chosen or 0,
    )


def _described(i: int, one: Any) -> str:
    return f"candidate {i}: overlap {one.overlap:.0%}" + ("" if one.possible else ", not possible")


def _data(match: Match) -> dict[str, Any]:
    """Gather what the script draws; coordinates to six digits."""
    sides = []
    for side, model in enumerate((match.a, match.b)):
        places = drawn_places(model)
        sides.append({"places": rounded(places), "predicted": _predicted(match, side, places)})
    maps = [
        {"rotation": one.rigid.rotation.tolist(), "shift": one.rigid.shift.tolist(), "scale": one.rigid.scale}
        for one in match.candidates[:MOST_CANDIDATES]
    ]
    return {"sides": sides, "maps": maps, "chosen": match.chosen, "linked": match.chosen is not None or match.ambiguous}


def _predicted(match: Match, side: int, places: Array) -> dict[str, Any] | None:
    """Predict readings of the other instrument at the bursts of this one, with errors and trust."""
    if match.chosen is None:
        return None
    source, target = match.names[side], match.names[1 - side]
    model, other = match.models[source], match.models[target]
    found = match.predict(model.decode(places), source, target)
    listed = slice(0, MOST_SENSORS)
    return {
        "coordinates": rounded(found.coordinates),
        "radius": rounded(2.45 * found.coordinate_errors),  # of 95 % in a plane
        "values": rounded(found.values[:, listed]),
        "errors": rounded(found.standard_errors[:, listed]),
        "trust": rounded(found.trust),
        **listed_sensors(other),
    }
