"""What the pages of a match and of a fusion share: maps of instruments on which one point moves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from pyloca.estimator import LOCA, feature_label, training_embedding
from pyloca.report._page import _asset, _environment, _hash, versions

__all__ = ["MOST_SENSORS", "drawn_places", "listed_sensors", "maps_page", "rounded"]

Array = NDArray[np.float64]

MOST_BURSTS = 2000  # drawn of each instrument
MOST_SENSORS = 12  # listed of each instrument


def maps_page(
    name: str,
    *,
    title: str,
    names: Sequence[str],
    facts: list[tuple[str, str]],
    warnings: Sequence[str],
    data: dict[str, Any],
    **more: Any,
) -> str:
    """Render the page of this name: its template, with more values if it needs them, and its script with their data."""
    style, script, policy = _assets(f"{name}.js")
    return (
        _environment()
        .get_template(f"{name}.html")
        .render(
            title=title,
            names=names,
            rows=_gathered(facts),
            warnings=warnings,
            versions=versions(),
            policy=policy,
            style=Markup(style),
            script=Markup(script),
            data=Markup(_as_script(data)),
            **more,
        )
    )


def _assets(script: str) -> tuple[str, str, str]:
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


def _gathered(facts: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Gather the texts of facts by their names."""
    rows: dict[str, list[str]] = {}
    for name, text in facts:
        rows.setdefault(name, []).append(text)
    return rows


def _as_script(data: dict[str, Any]) -> str:
    """Write data for a block of a page; "<" cannot end it early when it is written as an escape."""
    return json.dumps(data).replace("<", "\\u003c")


def drawn_places(model: LOCA) -> Array:
    """Return the bursts that are drawn of an instrument: so many that a page holds them, in its own coordinates."""
    places = training_embedding(model)
    return places[:: max(1, -(-len(places) // MOST_BURSTS))]


def listed_sensors(model: LOCA) -> dict[str, Any]:
    """Return the names of the sensors that are listed of an instrument, and how many more there are."""
    return {
        "sensors": [feature_label(model, j) for j in range(min(model.n_features_in_, MOST_SENSORS))],
        "more": max(0, model.n_features_in_ - MOST_SENSORS),
    }


def rounded(values: Array) -> list[Any]:
    """Return values to six digits of the largest."""
    with np.errstate(divide="ignore"):
        digits = 6 - int(np.ceil(np.log10(max(float(np.abs(values).max(initial=0)), 1e-300))))
    return np.round(values, min(max(digits, 0), 15)).tolist()
