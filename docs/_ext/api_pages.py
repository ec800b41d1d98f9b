"""The API reference: one page per public module, with every name of its ``__all__``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

# What people use, in the order of their work; and what the method is made of, for those who read or extend it.
USED = [
    "pyloca",
    "pyloca.bursts",
    "pyloca.inspection",
    "pyloca.selection",
    "pyloca.diagnostics",
    "pyloca.matching",
    "pyloca.baselines",
    "pyloca.metrics",
    "pyloca.datasets",
    "pyloca.plots",
    "pyloca.report",
    "pyloca.modelfile",
    "pyloca.predict",
    "pyloca.export",
    "pyloca.errors",
]
INSIDE = [
    "pyloca.geometry",
    "pyloca.alignment",
    "pyloca.networks",
    "pyloca.objectives",
    "pyloca.checks",
    "pyloca.solvers",
    "pyloca.findings",
    "pyloca.estimator",
    "pyloca.thresholds",
    "pyloca.paper.demo",
    "pyloca.paper.experiments",
    "pyloca.paper.reproduce",
]


def home(module: str, name: str) -> str:
    """The first module of the reference that has this very object: its page describes it, others point there."""
    member = getattr(importlib.import_module(module), name)
    for other in USED + INSIDE:
        found = importlib.import_module(other)
        if name in found.__all__ and getattr(found, name) is member:
            return other
    return module


def names(module: str) -> dict[str, list[str]]:
    """Public names of a module, by kind."""
    found = importlib.import_module(module)
    kinds: dict[str, list[str]] = {"Classes": [], "Functions": [], "Constants": [], "Described elsewhere": []}
    for name in found.__all__:
        member = getattr(found, name)
        if inspect.ismodule(member) or home(module, name) != module:
            kind = "Described elsewhere"
        elif inspect.isclass(member):
            kind = "Classes"
        else:
            kind = "Functions" if inspect.isroutine(member) else "Constants"
        kinds[kind].append(name)
    return {kind: members for kind, members in kinds.items() if members}


def page(module: str) -> str:
    """The page of a module."""
    lines = [module, "=" * len(module), "", _about(module), "", f".. currentmodule:: {module}", ""]
    for kind, members in names(module).items():
        lines += [kind, "-" * len(kind), ""]
        if kind == "Constants":
            for name in members:
                lines += [
                    f".. py:data:: {name}",
                    "",
                    f"   {_value(getattr(importlib.import_module(module), name))}",
                    "",
                ]
        elif kind == "Described elsewhere":
            for name in members:
                inside = f"{module}.{name}"
                lines += [f"- ``{name}``: :doc:`{inside}`" if inside in USED else _pointer(module, name)]
            lines.append("")
        else:
            lines += [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
            lines += [*(f"   {name}" for name in members), ""]
    return "\n".join(lines)


def _pointer(module: str, name: str) -> str:
    return f"- :py:obj:`{home(module, name)}.{name}`"


def _about(module: str) -> str:
    return (importlib.import_module(module).__doc__ or "").split("\n")[0]


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return f"A mapping with the keys {', '.join(f'``{key}``' for key in value)}."
    text = " ".join(repr(value).split())
    return f"``{text}``" if len(text) < 200 else f"A {type(value).__name__}; see the source."


def index() -> str:
    """The page that lists the modules."""
    lines = ["API reference", "=============", ""]
    lines += ["Every public name, with an example. :doc:`pyloca` is where most people need to look.", ""]
    for title, modules in (("For users", USED), ("Inside the method", INSIDE)):
        lines += [title, "-" * len(title), "", ".. list-table::", "   :widths: 30 70", ""]
        for module in modules:
            lines += [f"   * - :doc:`{module}`", f"     - {_about(module)}"]
        lines += ["", ".. toctree::", "   :hidden:", "", *(f"   {module}" for module in modules), ""]
    return "\n".join(lines)


def _write(app: Sphinx, _: Config) -> None:
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    pages = {"index.rst": index(), **{f"{module}.rst": page(module) for module in USED + INSIDE}}
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:  # an unchanged page is not built again
            path.write_text(text, encoding="utf-8")


def _is_foreign(app: Sphinx, what: str, name: str, member: object, skip: bool, options: object) -> bool | None:
    """Leave the members that scikit-learn and PyTorch add to our classes to their own pages."""
    module = getattr(member, "__module__", None) or getattr(getattr(member, "fget", None), "__module__", None)
    return True if isinstance(module, str) and not module.startswith("pyloca") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for pages."""
    app.connect("config-inited", _write)
    app.connect("autodoc-skip-member", _is_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
