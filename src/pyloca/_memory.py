"""What becomes of memory that was freed: back to the system, or kept for the next time."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

__all__ = ["keep_memory", "release_memory"]

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # their names for `mallopt`
MOST = 32 << 20  # bytes: where glibc's own adjustment of the second ends


def release_memory() -> None:
    """Return freed memory to the system, where the C library (glibc) would keep it.

    A pass by several threads leaves hundreds of megabytes behind that are free and still resident.

    Examples
    --------
    >>> release_memory()
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def keep_memory() -> None:
    """Keep freed memory of the size of buffers in this process, as the C library (glibc) does by itself.

    Dask sets MALLOC_TRIM_THRESHOLD_ for its workers, which ends that: every buffer would be taken from the system anew,
    page by page, and training spends much of its time on that.

    Examples
    --------
    >>> keep_memory()
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            library = ctypes.CDLL("libc.so.6")
            library.mallopt(MMAP_THRESHOLD, MOST)
            library.mallopt(TRIM_THRESHOLD, 2 * MOST)
