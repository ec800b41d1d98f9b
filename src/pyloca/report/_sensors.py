"""The embedding coloured by what was measured, and what each sensor measured."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from pyloca.plots import MOST_AXES, plot_map
from pyloca.report._download import MOST_ROWS, Download
from pyloca.report._found import Found
from pyloca.report._page import Figure, Section, Table
from pyloca.report._words import as_figure

__all__ = ["embedding", "sensor_table"]

MOST_MAPS = 6  # sensors that have a map each
LISTED = 64  # sensors in the table
PROBE = 5000  # bursts that are decoded for it


def embedding(found: Found) -> Section:
    """Draw the embedding coloured by what was measured, and offer it as a table to download."""
    d, by_sensor = found.Z.shape[1], _by_sensor(found)
    shown = "" if d <= MOST_AXES else f" Of the {d} coordinates the first {MOST_AXES} are drawn."
    what = "the mean of a sensor" if by_sensor else "a principal component of the measurements y"
    words = (
        f"Each dot is a burst, coloured by what was measured there: {what}. Colours that change smoothly mean that "
        "nearby points have similar measurements. All axes have the same scale; rotating, reflecting or shifting the "
        f"whole picture would change nothing.{shown}"
    )
    if len(found.Z) <= MOST_ROWS:
        return Section("Embedding", (words,), figures=tuple(_maps(found)), downloads=(_download(found),))
    more = (
        f"A page can hold a table of at most {MOST_ROWS:,} bursts; LOCA.transform and pyloca transform write larger "
        "ones."
    )
    return Section("Embedding", (words, more), figures=tuple(_maps(found)))


def _by_sensor(found: Found) -> bool:
    return found.named and found.statistics.n_features <= MOST_MAPS


def _maps(found: Found) -> list[Figure]:
    if _by_sensor(found):
        coloured = list(zip(found.sensors, found.means.T, strict=True))
    else:
        means = found.statistics.means
        solver = "full" if means.shape[1] <= 500 else "randomized"
        parts = PCA(min(2, means.shape[1]), svd_solver=solver, random_state=0).fit_transform(means).T
        orders = ("1st", "2nd")[: len(parts)]
        coloured = [(f"{order} principal component of y", part) for order, part in zip(orders, parts, strict=True)]
    # Figures with more than one panel are stacked; one of them is enough.
    coloured = coloured if found.Z.shape[1] <= 2 else coloured[:1]
    return [
        as_figure(plot_map(found.Z, values, label), f"Map of the embedded bursts, coloured by {label}.")
        for label, values in coloured
    ]


def _download(found: Found) -> Download:
    left = found.strays  # at the end, with a trust of 0
    none = np.full(len(left), np.nan)
    ids = [*found.statistics.ids.tolist(), *(one.name for one in left)]
    Z = np.concatenate([found.Z, *(one.place[None] for one in left)])
    columns: dict[str, NDArray[Any] | list[str]] = {"burst_id": [str(name) for name in ids]}
    columns |= {f"z{i}": Z[:, i] for i in range(Z.shape[1])}
    columns |= {"trust": np.r_[found.trust, 0 * np.arange(len(left))], "loss": np.r_[found.loss, none]}
    if found.agreement is not None:
        columns["standard_error"] = np.r_[found.agreement.standard_errors, none]
    return Download("Download the embedding as CSV", "embedding.csv", columns)


def sensor_table(found: Found) -> Table:
    """Tabulate what each sensor measured, and how well it comes back, in its own unit."""
    means = found.means
    some = slice(None, None, -(-len(means) // PROBE))
    off = np.median(np.abs(found.model.decode(found.Z[some]) - means[some]), axis=0)
    facts = (means.min(axis=0), means.max(axis=0), off, found.model.feature_scale_)
    rows = [
        (name, *("left out" if np.isinf(value) else re.sub("^-", "−", f"{value:.4g}") for value in values))
        for name, *values in zip(found.sensors[:LISTED], *(fact[:LISTED] for fact in facts), strict=True)
    ]
    more = f"; the first {LISTED} of {means.shape[1]}" if means.shape[1] > LISTED else ""
    caption = f"Means of the bursts by sensor, in the unit of each{more}"
    header = ("sensor", "least", "greatest", "reconstruction off by (median)", "divided by")
    return Table(header, tuple(rows), caption)
