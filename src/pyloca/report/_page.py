"""The content of a page, and how it becomes one HTML file that needs no network."""

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
)  # each uses those before it
NUMBER = re.compile(r"[-+−]?(\d[\d,.]*(e[-+]?\d+)?( ?%)?|inf|nan|—)( [^\d\s]{1,3})?")


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; columns of numbers are aligned to the right.

    Attributes
    ----------
    header : tuple of str
    rows : tuple of tuple of str
    caption : str

    Examples
    --------
    >>> Table(("sensor", "unit"), (("pressure", "kPa"), ("temperature", "K"))).rows[0]
    ('pressure', 'kPa')
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    @property
    def numeric(self) -> set[int]:
        """Columns in which every cell is a number."""
        return {i for i, cells in enumerate(zip(*self.rows, strict=True)) if all(map(NUMBER.fullmatch, cells))}


@dataclass(frozen=True)
class Figure:
    """A picture.

    Attributes
    ----------
    png : bytes
    alt : str
        What it shows, for readers who cannot see it.
    caption : str

    Examples
    --------
    >>> import io
    >>> import matplotlib.pyplot as plt
    >>> drawing, file = plt.figure(), io.BytesIO()
    >>> drawing.savefig(file, format="png")
    >>> Figure(file.getvalue(), alt="an empty sheet").alt
    'an empty sheet'
    >>> plt.close(drawing)
    """

    png: bytes
    alt: str
    caption: str = ""

    @property
    def source(self) -> str:
        """The picture as a data URL."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, so that the layout does not move while the page loads."""
        return int.from_bytes(self.png[16:20], "big"), int.from_bytes(self.png[20:24], "big")

    @property
    def wide(self) -> bool:
        """Whether it needs the full width of the page; others are placed side by side."""
        width, height = self.size
        return width > 1.5 * height


@dataclass(frozen=True)
class Section:
    """A heading and its content, shown in this order: explorers, paragraphs, downloads, figures, tables.

    Attributes
    ----------
    title : str
    paragraphs : tuple of str
    tables : tuple of Table
    figures : tuple of Figure
    explorers : tuple of Explorer
    downloads : tuple of Download

    Examples
    --------
    >>> Section("Method", ("Fitted to 300 runs.",), tables=(Table(("N", "M"), (("300", "20"),)),)).title
    'Method'
    """

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
        Printed at the end, so that a reader can reproduce the result.
    warnings : tuple of str
        Shown in a box above everything else.
    citation : str
        What to cite; by default the paper of the method.

    Examples
    --------
    See `render`.
    """

    title: str
    lead: str
    sections: tuple[Section, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=lambda: versions())
    warnings: tuple[str, ...] = ()
    citation: str = CITATION


def versions() -> dict[str, str]:
    """List the versions of Python and of the libraries in use.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> list(versions())
    ['python', 'pyloca', 'torch', 'numpy', 'scipy', 'scikit-learn']
    """
    return {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}


def render(page: Page) -> str:
    """Render a page as one self-contained HTML file.

    Every text is escaped, and the file's own policy lets a browser use exactly one script and one style sheet, known by
    their hashes: whatever a label contains, it is shown and not run.

    Parameters
    ----------
    page : Page

    Returns
    -------
    str

    Examples
    --------
    >>> "<h1>Wi-Fi</h1>" in render(Page("Wi-Fi", "A floor plan.", (Section("Result", ("It worked.",)),)))
    True
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
    """Join the parts of the script in one function, so that they share names only with each other."""
    return '"use strict";\n(() => {\n' + "\n".join(map(_asset, SCRIPTS)) + "})();\n"


def _hash(text: str) -> str:
    if not text:
        return "'none'"
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
