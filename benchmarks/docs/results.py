"""The page docs/results.md: every benchmark, in one order."""

from __future__ import annotations

import re

from benchmarks.docs._results import RESULTS, load
from benchmarks.docs.accuracy import accuracy_table, limit_table, paper_solver_table, seeds_table, unseen_table
from benchmarks.docs.failures import files_table
from benchmarks.docs.gallery import gallery_table
from benchmarks.docs.invariance import own_networks_table, units_table
from benchmarks.docs.rivals import rivals_speed_table, rivals_table
from benchmarks.docs.rows import dirty_table, hidden_table, matching_table, shapes_table, sizes_table
from benchmarks.docs.sources import sources_table
from benchmarks.docs.speed import growth_table, profile_table, speed_table, startup_table
from benchmarks.docs.trust import trust_tables

__all__ = ["results"]

OWN_COMMITS = (
    "dirty",
    "faults_of_machines",
    "gallery",
    "hidden",
    "matching",
    "shapes",
    "sizes",
)  # each of their rows names its own


def commits() -> str:
    """Which code was measured, table by table."""
    found: dict[str, list[str]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        if path.stem not in OWN_COMMITS:
            found.setdefault(load(path.stem).get("commit") or "not recorded", []).append(path.stem)
    measured = "; ".join(f"{key} ({', '.join(names)})" for key, names in found.items())
    return f"Where a table does not name its commits: {measured}."


def results() -> str:
    """The generated part of docs/results.md."""
    seconds = ", ".join(f"{name} {value:.0f} s" for name, value in load("accuracy")["seconds"].items())
    facts = load("accuracy")
    page = f"""
Made by `make docs` from the JSON that `python -m benchmarks all` writes ({facts["date"]}; {facts["machine"]}; torch
{facts["torch"]}; commits are listed at the end). Defaults everywhere: only `n_components` and `burst_std` are given.

## The paper's experiments

Stress is the mean over all pairs of (latent distance − embedded distance)², not scaled; `decoder` is the mean squared
error of section 6.3; `wifi` is in px²; `flatten` is the RMS error in units of the sheet's side; `dimension` is the
selected d, which must be right on every seed. Where the paper has no figure, the worst seed may be 5 × the bar. One
command does it all again, with every figure of the paper: [reproduce](reproduce.md).

Median seconds of a whole fit, encoder and decoder, in a run that shared its machine with others: {seconds}. Speed is
measured below, in runs of its own.

{accuracy_table()}

Every seed:

{seeds_table("accuracy")}

{paper_solver_table()}

What sampling noise allows on `mushroom`: maximum likelihood in the true coordinates with polynomial freedom
(`python -m benchmarks limit`).

{limit_table()}

## Data that the defaults were not tuned on

Stress divided by the latent variance, seeds {", ".join(map(str, load("unseen")["seed_list"]))}; the bar is 0.01 on
every seed, and no fold.

{unseen_table()}

{trust_tables()}

{sources_table()}

{dirty_table()}

{shapes_table()}

{hidden_table()}

{sizes_table()}

{files_table()}

{matching_table()}

## Speed

{speed_table()}

{growth_table()}

{startup_table()}

{units_table()}

{own_networks_table()}

{profile_table()}

{rivals_table()}

{rivals_speed_table()}

{gallery_table()}

## Which code was measured

{commits()}
"""
    return re.sub(r"\n{3,}", "\n\n", page).strip()  # where a benchmark has not been run
