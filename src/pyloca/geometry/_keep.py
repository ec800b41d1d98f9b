"""Results of parts of a long pass in a folder, so that an interrupted run continues where it stopped."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pyloca._atomic import write_atomically
from pyloca._sealed import read_bytes, seal, unseal
from pyloca.errors import ModelFileError

__all__ = ["KeepParts"]

LOGGER = logging.getLogger("pyloca")
KIND = "pyloca-part"


@dataclass(frozen=True)
class KeepParts:
    """Sealed files of parts; one that is damaged or of other data is computed again.

    Attributes
    ----------
    folder : Path
    facts : str
        What the parts are of: a digest of the data and the settings.
    name : str
        Which pass.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> with TemporaryDirectory() as folder:
    ...     keep = KeepParts(Path(folder), "digest").of("means")
    ...     keep.put(3, {"x": np.arange(2)})
    ...     keep.get(3)["x"].tolist(), keep.get(4)
    ([0, 1], None)
    """

    folder: Path
    facts: str
    name: str = ""

    def of(self, name: str) -> KeepParts:
        """Return where another pass is kept."""
        return KeepParts(self.folder, self.facts, name)

    def _path(self, part: int) -> Path:
        return self.folder / f"{self.name}-{part:06d}.safetensors"

    def get(self, part: int) -> dict[str, NDArray[Any]] | None:
        """Return the result of a part that is done; None if it is not."""
        path = self._path(part)
        if not path.is_file():
            return None
        try:
            header, arrays = unseal(read_bytes(path), KIND, (1,), str(path))
        except ModelFileError as error:
            LOGGER.warning("%s It is computed again.", error)
            return None
        return arrays if header.get("facts") == self.facts else None

    def put(self, part: int, result: dict[str, NDArray[Any]]) -> None:
        """Keep the result of a part."""
        write_atomically(self._path(part), seal(KIND, {"version": 1, "facts": self.facts}, result))
