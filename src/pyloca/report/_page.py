"""What a page holds, and how it becomes one HTML file that asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pyloca.report._download import Download
from pyloca.report._explorer import Explorer

__all__ = ["CITATION", "Figure", "Page", "Section", "Table", "render", "versions"]

CITATION = (
    "E. Peterfreund, O. Lindenbaum, F. Dietrich, T. Bertalan, M. Gavish, I. G. Kevrekidis and R. R. Coifman (2020). "
    "LOCA: LOcal Conformal Autoencoder for standardized data coordinates. "
    "Proceedings of the National Academy of Sciences 117."
)
LIBRARIES = ("pyloca", "torch", "numpy", "scipy", "scikit-learn")
SCRIPTS = (
    "network.js",
    "drawing.js",
    "measurement.js",
    "colours.js",
    "explorer.js",
    "download.js",
)  # each uses what lies in those before it
NUMBER = re.compile(r"[-+−]?(\d[\d,.]*(e[-+]?\d+)?( ?%)?|inf|nan|—)( [^\d\s]{1,3})?")


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; columns of numbers are set to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    @property
    def numeric(self) -> set[int]:
        """Columns in which every cell is a number."""
        return {i for i, cells in enumerate(zip(*self.rows, strict=True)) if all(map(NUMBER.fullmatch, cells))}


@dataclass(frozen=True)
class Figure:
    """A picture, and in `alt` what it shows for those who do not see it."""

    png: bytes
    alt: str
    caption: str = ""

    @property
    def source(self) -> str:
        """The picture itself as an address."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, so that the page does not jump while it opens."""
        return int.from_bytes(self.png[16:20], "big"), int.from_bytes(self.png[20:24], "big")

    @property
    def wide(self) -> bool:
        """Whether it needs the whole width of the page; others stand side by side."""
        width, height = self.size
        return width > 1.5 * height


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it: explorers, paragraphs, downloads, figures, tables, in this order."""

    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    explorers: tuple[Explorer, ...] = ()
    downloads: tuple[Download, ...] = ()


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes
    ----------
    title, lead : str
        The heading, and the sentence or two below it.
    sections : tuple of Section
    settings, versions : mapping of str to str
        Printed at the end, so that a reader can do it again.
    warnings : tuple of str
        Stand in a box above everything else.
    citation : str
        What to cite; the paper of the method unless said otherwise.
    """

    title: str
    lead: str
    sections: tuple[Section, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=lambda: versions())
    warnings: tuple[str, ...] = ()
    citation: str = CITATION


def versions() -> dict[str, str]:
    """What this process runs on."""
    return {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}


def render(page: Page) -> str:
    """The page as one self-contained HTML file.

    Every text is escaped, and the file's own policy lets a browser run exactly one script and one style sheet, known by
    their hashes: whatever a label contains, it is shown and not run.
    """
    active = any(section.downloads or any(e.data for e in section.explorers) for section in page.sections)
    style, script = _asset("page.css"), _script() if active else ""
    policy = [
        "default-src 'none'",
        f"script-src {_hash(script)}",
        f"style-src {_hash(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            policy="; ".join(policy),
            style=Markup(style),
            script=Markup(script),
        )
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("pyloca.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _asset(name: str) -> str:
    return (files("pyloca.report") / "templates" / name).read_text(encoding="utf-8")


def _script() -> str:
    """The parts of the script in one function, so that they share names among themselves and with nothing else."""
    return '"use strict";\n(() => {\n' + "\n".join(map(_asset, SCRIPTS)) + "})();\n"


def _hash(text: str) -> str:
    if not text:
        return "'none'"
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
