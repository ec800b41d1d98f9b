"""One way to print a table and to keep its numbers."""

from __future__ import annotations

import datetime
import json
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

RESULTS = Path(__file__).parent / "results"


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    cells = [list(header), *[[_text(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    print(f"\n{title}")
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _text(cell: Any) -> str:
    return f"{cell:.2g}" if isinstance(cell, float) else str(cell)


def write_results(name: str, content: dict[str, Any], *, quiet: bool = False) -> None:
    RESULTS.mkdir(exist_ok=True)
    content = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, Python {platform.python_version()}",
        "torch": torch.__version__,
        "commit": commit(),
        **content,
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if not quiet:
        print(f"written: benchmarks/results/{path.name}")


def summary(values: Sequence[float], bar: float) -> dict[str, Any]:
    """Median and worst of all seeds, and whether median ≤ bar and worst ≤ 5 × bar."""
    median, worst = float(np.median(values)), float(np.max(values))
    return {
        "bar": bar,
        "seeds": [float(value) for value in values],
        "median": median,
        "worst": worst,
        "holds": median <= bar and worst <= 5 * bar,
    }


def summary_row(name: str, facts: dict[str, Any]) -> list[Any]:
    seeds = " ".join(f"{value:.1e}" for value in facts["seeds"])
    return [name, facts["bar"], facts["median"], facts["worst"], "yes" if facts["holds"] else "NO", seeds]


HEADER = ("what", "bar", "median", "worst", "holds", "seeds")


def commit() -> str:
    """Which code was measured; "" outside a clone."""
    root = RESULTS.parent.parent
    try:
        head = _git(root, "rev-parse", "--short", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "src")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{head} with changes" if changed else head


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()
