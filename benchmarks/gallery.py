"""The examples of the gallery on other seeds than the one that the site shows; needs `pyloca[gallery]`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.tables import RESULTS, commit, print_table, write_results

__all__ = ["run", "with_seed"]

EXAMPLES = Path(__file__).parent.parent / "examples"
HEADER = ("example", "seed", "ours", "Isomap", "UMAP", "verdict", "right", "processor s")


def with_seed(source: str, seed: int) -> str:
    """The text of an example in which every seed is another one; seed 0 is the example as it is."""
    seeds = r"(random_state=|default_rng\(|setRandomNumberSeed\()(\w+)"
    changed, count = re.subn(seeds, rf"\g<1>\g<2> + {1000 * seed}", source)
    if not count:
        raise ValueError("this example has no seed")
    return changed if seed else source


def run(seeds: list[int], only: str = "") -> bool:
    import matplotlib

    matplotlib.use("Agg")
    path = RESULTS / "gallery.json"
    rows: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.is_file() else {}
    examples = [path for path in sorted(EXAMPLES.glob("plot_*.py")) if not only or path.stem[5:] in only.split(",")]
    printed = []
    for example in examples:
        runs = {}
        for seed in seeds:
            runs[str(seed)] = facts = _run(example, seed)
            errors = [facts.get(key, "—") for key in ("ours", "isomap", "umap")]
            printed.append([example.stem[5:], seed, *errors, facts["verdict"], facts["right"], facts["seconds"]])
        measure = facts["measure"]
        rows[example.stem[5:]] = {"measure": measure, "runs": runs, "commit": commit()}
        write_results("gallery", {"rows": rows}, quiet=True)
    print_table("Examples of the gallery", HEADER, printed)
    return all(facts["right"] for row in rows.values() for facts in row["runs"].values())


def _run(example: Path, seed: int) -> dict[str, Any]:
    source = with_seed(example.read_text(encoding="utf-8"), seed)
    names: dict[str, Any] = {"__name__": "__main__"}
    before, start = Path.cwd(), time.process_time()
    os.chdir(example.parent)  # the molecule lies beside its script
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            exec(compile(source, example.name, "exec"), names)
    finally:
        os.chdir(before)
    scores = names["scores"]
    verdict = scores["verdict"]
    facts = {key: float(scores[key]) for key in ("ours", "isomap", "umap") if key in scores}
    facts |= {"measure": re.sub(r" \(.*", "", scores["measure"]), "right": bool(scores["right"])}
    facts["verdict"] = verdict if isinstance(verdict, str) else ", ".join(found.name for found in verdict)
    return facts | {"seconds": round(time.process_time() - start, 1)}
