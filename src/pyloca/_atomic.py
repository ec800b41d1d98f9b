"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

__all__ = ["write_atomically"]

NAMELESS = getattr(os, "O_TMPFILE", 0)  # Linux: a file without a name, which vanishes with the process


def write_atomically(path: Path, content: bytes) -> Path:
    """Write beside the target, fsync, rename: whatever happens leaves the old file or the new one, never half.

    A link is followed, and a file that is replaced keeps its permissions.

    Parameters
    ----------
    path : Path
    content : bytes

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    OSError
        If the file cannot be written; the message names it, and what was there is unchanged.
    """
    target = Path(os.path.realpath(path))
    try:
        if not target.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"there is no directory {target.parent}")
        _write(target, content, _permissions(target))
    except OSError as error:  # of the same kind, since that follows from the number
        raise OSError(error.errno, f"cannot write {path}: {error.strerror or error}.") from error
    return path


def _permissions(target: Path) -> int | None:
    """Return the mode of a file that is there; refuse what a rename would destroy unasked."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it exists but is not a regular file")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return stat.S_IMODE(mode)


def _write(target: Path, content: bytes, mode: int | None) -> None:
    temporary = target.with_name(f".pyloca-{secrets.token_hex(8)}.tmp")
    folder = None
    try:
        folder = os.open(target.parent, os.O_RDONLY) if NAMELESS else None
        handle, nameless = _open(temporary, private=mode is not None)
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(handle, mode)
            os.fsync(handle)
            if nameless:
                os.link(f"/proc/self/fd/{handle}", temporary, src_dir_fd=folder, follow_symlinks=True)
        os.replace(temporary, target)
        if folder is not None:
            os.fsync(folder)  # else the rename may be lost with the power
    except BaseException:  # a signal may come at any moment, also after the rename
        temporary.unlink(missing_ok=True)
        raise
    finally:
        if folder is not None:
            os.close(folder)


def _open(temporary: Path, *, private: bool) -> tuple[int, bool]:
    """Open a file without a name, or `temporary` where the system has none; the kernel applies the umask."""
    mode = 0o600 if private else 0o666
    if NAMELESS and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):  # not on every file system
            return os.open(temporary.parent, NAMELESS | os.O_WRONLY, mode), True
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    return os.open(temporary, flags, mode), False
