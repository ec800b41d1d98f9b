"""A table that a page writes to a CSV file when its reader asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca.report._packing import pack

__all__ = ["MOST_ROWS", "Download"]

MOST_ROWS = 50_000  # 3 MB of a page; a larger table has its place in a file of its own


@dataclass(frozen=True)
class Download:
    """A button that writes a CSV file. The page makes the file itself; nothing is asked of the network.

    Attributes
    ----------
    title : str
        Of the button.
    filename : str
    columns : mapping of str to (n,) array
        By the names in the header: floats, written with all their digits, or text.
    """

    title: str
    filename: str
    columns: Mapping[str, NDArray[Any] | Sequence[str]]

    @property
    def data(self) -> dict[str, Any]:
        """As the script of the page reads it."""
        columns = []
        for values in self.columns.values():
            array = np.asarray(values)
            columns.append(pack(array, "f8") if array.dtype.kind == "f" else [str(value) for value in array.tolist()])
        return {"title": self.title, "filename": self.filename, "header": list(self.columns), "columns": columns}
