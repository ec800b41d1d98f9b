"""A match as one page: the maps of both instruments side by side, linked."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from pyloca.estimator import feature_label, training_embedding
from pyloca.matching import Match
from pyloca.report._page import _asset, _environment, _hash, versions

__all__ = ["MOST_BURSTS", "MOST_SENSORS", "as_script", "gathered", "linked_assets", "match_page", "rounded"]

Array = NDArray[np.float64]

MOST_BURSTS = 2000  # drawn of each instrument
MOST_SENSORS = 12  # listed of each instrument
MOST_CANDIDATES = 12


def match_page(match: Match, title: str = "") -> str:
    """Render a match as one self-contained HTML file.

    Drag a point on the map of one instrument to see the same state on that of the other, with its 95 % region and the
    predicted readings. Of an ambiguous match every candidate can be tried.

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
    style, script, policy = linked_assets("linked.js")
    rows = gathered(match.facts())
    shown = match.candidates[:MOST_CANDIDATES]
    data = as_script(_data(match))
    return (
        _environment()
        .get_template("linked.html")
        .render(
            title=title or f"{match.names[0]} and {match.names[1]}",
            names=match.names,
            rows=rows,
            candidates=[_described(i, one) for i, one in enumerate(shown)],
            chosen=match.chosen or 0,
            refused=match.chosen is None,
            versions=versions(),
            policy=policy,
            style=Markup(style),
            script=Markup(script),
            data=Markup(data),
        )
    )


def linked_assets(script: str) -> tuple[str, str, str]:
    """Return style, script and content security policy of a page with linked maps."""
    style, code = _asset("page.css"), '"use strict";\n(() => {\n' + _asset(script) + "})();\n"
    policy = [
        "default-src 'none'",
        f"script-src {_hash(code)}",
        f"style-src {_hash(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return style, code, "; ".join(policy)


def gathered(facts: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the texts of facts by their names."""
    rows: dict[str, list[str]] = {}
    for name, text in facts:
        rows.setdefault(name, []).append(text)
    return rows


def as_script(data: dict[str, Any]) -> str:
    """Write data for a block of a page; "<" cannot end it early when it is written as an escape."""
    return json.dumps(data).replace("<", "\\u003c")


def _described(i: int, one: Any) -> str:
    return f"candidate {i}: overlap {one.overlap:.0%}" + ("" if one.possible else ", not possible")


def _data(match: Match) -> dict[str, Any]:
    """Gather what the script draws; coordinates to six digits."""
    sides = []
    for side, model in enumerate((match.a, match.b)):
        places = training_embedding(model)
        places = places[:: max(1, -(-len(places) // MOST_BURSTS))]
        sides.append({"places": rounded(places), "predicted": _predicted(match, side, places)})
    maps = [
        {"rotation": one.rigid.rotation.tolist(), "shift": one.rigid.shift.tolist(), "scale": one.rigid.scale}
        for one in match.candidates[:MOST_CANDIDATES]
    ]
    return {"sides": sides, "maps": maps, "chosen": match.chosen}


def _predicted(match: Match, side: int, places: Array) -> dict[str, Any] | None:
    """Predict readings of the other instrument at the bursts of this one, with errors and trust."""
    if match.chosen is None:
        return None
    source, target = match.names[side], match.names[1 - side]
    model, other = match.models[source], match.models[target]
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "X does not have valid feature names", UserWarning
        )  # they are the model's own
        found = match.predict(model.decode(places), source, target)
    listed = slice(0, MOST_SENSORS)
    return {
        "coordinates": rounded(found.coordinates),
        "radius": rounded(2.45 * found.coordinate_errors),  # of 95 % in a plane
        "values": rounded(found.values[:, listed]),
        "errors": rounded(found.standard_errors[:, listed]),
        "trust": rounded(found.trust),
        "sensors": [feature_label(other, i) for i in range(min(other.n_features_in_, MOST_SENSORS))],
        "more": max(0, other.n_features_in_ - MOST_SENSORS),
    }


def rounded(values: Array) -> list[Any]:
    """Return values to six digits of the largest."""
    with np.errstate(divide="ignore"):
        digits = 6 - int(np.ceil(np.log10(max(float(np.abs(values).max(initial=0)), 1e-300))))
    return np.round(values, min(max(digits, 0), 15)).tolist()
