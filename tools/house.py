"""The house, drawn from the import graph: ``make house``.

Floors from the ground up: a module imports only what lies on a floor before its own, also inside functions and for type
checkers, and no package imports a private module of another. Prints the floors with what each imports and exits with 1
when an import points up, sideways or behind another package's door.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent.parent / "src" / "pyloca"

# Modules of one floor do not know each other. "pyloca" is the package's own __init__, which only points at names.
FLOORS: list[set[str]] = [
    {
        "errors",
        "_arguments",
        "_atomic",
        "_filters",
        "_forks",
        "_html",
        "_memory",
        "_optional",
        "_signals",
        "_version",
        "thresholds",
    },
    {"_contract", "_points", "_sealed", "_threads", "_workers", "metrics"},
    {"predict"},
    {"plots"},
    {"bursts"},
    {"geometry", "datasets"},
    {"alignment"},
    {"networks", "objectives"},
    {"checks"},
    {"solvers"},
    {"findings"},
    {"modelfile"},
    {"estimator"},
    {"selection", "diagnostics", "inspection", "matching", "baselines", "export"},
    {"report"},
    {"pyloca"},
    {"paper"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, floor in enumerate(FLOORS) for name in floor}
# Private to pyloca, not to one of its packages.
SHARED = {
    "_arguments",
    "_atomic",
    "_contract",
    "_filters",
    "_forks",
    "_html",
    "_memory",
    "_optional",
    "_points",
    "_sealed",
    "_signals",
    "_threads",
    "_version",
    "_workers",
}


class Import(NamedTuple):
    """One import of pyloca by pyloca."""

    importer: str
    imported: str
    where: str
    private: bool


def modules() -> list[Path]:
    """All source files."""
    return sorted(SOURCE.rglob("*.py"))


def top(path: Path) -> str:
    """The room of a source file: its first folder, or itself."""
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    return "pyloca" if part == "__init__" else part


def imports(tree: ast.AST, importer: str, file: str = "") -> Iterator[Import]:
    """Every import of pyloca in a file, however indented."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            where = "." * node.level + (node.module or "")
            if node.level:
                raise ValueError(f"{file}:{node.lineno}: the relative import of {where} hides the floor")
            parent = node.module == "pyloca"
            names = [f"pyloca.{alias.name}" for alias in node.names] if parent else [str(node.module)]
        for name in names:
            package, *rest = name.split(".")
            if package == "pyloca":
                room = rest[0] if rest and rest[0] in LEVEL else "pyloca"
                private = any(part.startswith("_") for part in rest if part not in SHARED)
                yield Import(importer, room, f"{file}:{node.lineno}", private and room != importer)


def graph() -> list[Import]:
    """Every import between rooms."""
    found = []
    for path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += imports(tree, top(path), str(path.relative_to(SOURCE)))
    return [edge for edge in found if edge.imported != edge.importer]


def faults(edges: list[Import]) -> list[str]:
    """Imports that break the rules, in words."""
    wrong = []
    for edge in edges:
        # The facade names what lies on any floor; nobody inside the house goes through it.
        if edge.importer != "pyloca" and LEVEL[edge.imported] >= LEVEL[edge.importer]:
            wrong.append(f"{edge.where}: {edge.importer} may not import {edge.imported}")
        if edge.private:
            wrong.append(f"{edge.where}: {edge.importer} imports a private module of {edge.imported}")
    return wrong


def main() -> int:
    """Print the house."""
    edges = graph()
    for floor in FLOORS:
        for room in sorted(floor):
            used = sorted({edge.imported for edge in edges if edge.importer == room}, key=lambda name: LEVEL[name])
            if (SOURCE / room).is_dir() or (SOURCE / f"{room}.py").is_file():
                print(f"{LEVEL[room]:2d}  {room:<12} {', '.join(used) or '—'}")
    wrong = faults(edges)
    pairs = len({(edge.importer, edge.imported) for edge in edges})
    print(f"\n{len(edges)} imports between {pairs} pairs of rooms, {len(wrong)} against the rules", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
