"""What a terminal shows: names come from files, and must not command it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["printable", "printable_streams", "shortened"]

LAYOUT = "\n\t\u00a0\u2009\u202f"  # also spaces that do not break, or are thin
MOST = 4000  # characters of one message


def printable(text: str) -> str:
    r"""Write control characters, and others that cannot be seen, as Python writes them.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> print(printable("p1 (\x1b[31mPa)"))
    p1 (\x1b[31mPa)
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in LAYOUT else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str) -> str:
    """Leave out the middle of a message that is too long to read.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> len(shortened("x" * 9_000_000)) < 4100
    True
    """
    if len(text) <= MOST:
        return text
    return f"{text[: 3 * MOST // 4]} … [{len(text):,} characters in all] … {text[-MOST // 4 :]}"


class _Printable:
    """A text stream on which everything is printable."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write; a progress bar begins with a carriage return, and no name does."""
        start, rest = ("\r", text[1:]) if text[:1] == "\r" else ("", text)
        return int(self._stream.write(start + printable(rest)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def printable_streams() -> Iterator[None]:
    """Make what is written to stderr printable, and what is written to stdout if that is a terminal.

    Data in a pipe or file stays as it is.
    """
    before = sys.stdout, sys.stderr
    sys.stderr = _Printable(sys.stderr)
    if sys.stdout.isatty():
        sys.stdout = _Printable(sys.stdout)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
