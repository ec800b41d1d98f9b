"""Bursts as a notebook shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyloca._html import html_card

if TYPE_CHECKING:
    from pyloca.bursts._container import Bursts

__all__ = ["html_table"]

SHOWN = 6  # ids and features that are listed


def html_table(bursts: Bursts) -> str:
    """Make a small table: sizes, σ, names with units, first ids, provenance."""
    counts = bursts.counts
    sizes = sorted({int(counts.min()), int(counts.max())}) if len(counts) else []
    named = bursts.feature_names is not None or bursts.units is not None
    features = [bursts.feature_label(j) for j in range(min(SHOWN, bursts.n_features))] if named else []
    rows = {
        "bursts": str(len(bursts)),
        "points per burst": " to ".join(map(str, sizes)) or "none",
        "features": str(bursts.n_features) + _listed(features, bursts.n_features),
        "σ": "not known" if bursts.burst_std is None else f"{bursts.burst_std:g}",
    }
    if bursts.effective_counts is not None and len(bursts):
        rows["worth"] = f"{np.median(bursts.effective_counts):.3g} independent points per burst (median)"
    if bursts.has_ids:
        rows["ids"] = _listed([str(label) for label in bursts.ids[:SHOWN]], len(bursts)).removeprefix(": ")
    if bursts.provenance:
        rows["provenance"] = bursts.provenance
    return html_card("Bursts", rows)


def _listed(items: list[str], n: int) -> str:
    return f": {', '.join(items)}{', …' if n > len(items) else ''}" if items else ""
