"""What a reader of files is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyloca.bursts._missing import Missing
from pyloca.bursts._tables import OnText

__all__ = ["Wanted"]


@dataclass(frozen=True)
class Wanted:
    """What to read from a file."""

    burst_id: str
    columns: Sequence[str] | None
    exclude: Sequence[str]
    on_text: OnText
    missing: Missing
