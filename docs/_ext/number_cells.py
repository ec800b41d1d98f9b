"""Cells of tables that hold one number get the class `number`, so that 1.5e-05 is not broken at its hyphen."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

NUMBER = re.compile(r"[<>=≤≥±]{0,2} ?[-−]?\d[\d.,]*(e[-+]?\d+)?( ?[%×µA-Za-z]{1,3})?")


def _mark(app: Sphinx, tree: nodes.document, _: str) -> None:
    for cell in tree.findall(nodes.entry):
        if NUMBER.fullmatch(cell.astext().strip()):
            cell["classes"].append("number")


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at every page once its references are resolved."""
    app.connect("doctree-resolved", _mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
