"""A table that the reader of a page can download as a CSV file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca.report._packing import pack

__all__ = ["MOST_ROWS", "Download"]

MOST_ROWS = 50_000  # 3 MB of a page; a larger table belongs in a file of its own


@dataclass(frozen=True)
class Download:
    """A button that downloads a CSV file. The page makes the file itself and needs no network.

    Attributes
    ----------
    title : str
        Text of the button.
    filename : str
        Suggested name of the file.
    columns : mapping of str to (n,) array
        Columns by name: floats, written with all their digits, or text.

    Examples
    --------
    >>> import numpy as np
    >>> button = Download("Coordinates", "z.csv", {"burst_id": ["r7", "r2"], "z0": np.array([0.1, 0.2])})
    >>> button.filename
    'z.csv'
    """

    title: str
    filename: str
    columns: Mapping[str, NDArray[Any] | Sequence[str]]

    @property
    def data(self) -> dict[str, Any]:
        """The table as the script of the page reads it."""
        columns = []
        for values in self.columns.values():
            array = np.asarray(values)
            columns.append(pack(array, "f8") if array.dtype.kind == "f" else [str(value) for value in array.tolist()])
        return {"title": self.title, "filename": self.filename, "header": list(self.columns), "columns": columns}
