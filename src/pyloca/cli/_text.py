"""Text from files, pipes and standard input, none of which is read to its end if it is not text."""

from __future__ import annotations

import codecs
import sys
from typing import BinaryIO

from pyloca.errors import BurstError

__all__ = ["read_text"]

PART = 1 << 20  # bytes


def read_text(path: str) -> str:
    """Read UTF-8 from a file or a pipe, or from standard input ("-"); ends of lines stay as they are.

    A device such as /dev/zero has no end, so what is not text must be noticed while it is read.
    """
    if path == "-":
        return _read(sys.stdin.buffer)
    with open(path, "rb") as file:
        return _read(file)


def _read(file: BinaryIO) -> str:
    decoder, parts, before, line = codecs.getincrementaldecoder("utf-8")(), [], 0, 1
    while True:
        content = file.read(PART)
        if (place := content.find(0)) >= 0:
            raise BurstError(f"line {line + content.count(10, 0, place)} has a NUL byte; expected text.")
        pending = len(decoder.getstate()[0])
        try:
            parts.append(decoder.decode(content, final=not content))
        except UnicodeDecodeError as error:
            place = before - pending + error.start
            raise BurstError(f"is not valid UTF-8 ({error.reason} at byte {place}).") from error
        if not content:
            return "".join(parts).removeprefix("\ufeff")
        before += len(content)
        line += content.count(10)
