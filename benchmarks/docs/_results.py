"""Results of benchmarks as they lie on disk, and how a number is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "ROOT", "exists", "load", "number"]

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def load(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def exists(name: str) -> bool:
    return (RESULTS / f"{name}.json").is_file()


def number(value: float | None) -> str:
    if value is None:
        return "—"
    return f"{value:.0f}" if value == round(value) else f"{value:.1e}"
