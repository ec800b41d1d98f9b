"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["write_atomically"]

NAMELESS = getattr(os, "O_TMPFILE", 0)  # Linux: a file without a name, which vanishes with the process
PREFIX, LINKED, NAMED = ".pyloca-", ".linked", ".tmp"  # names that last for a moment


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
    token = secrets.token_hex(8)
    private = 0o600 if mode is not None else 0o666  # of which the kernel takes the umask
    with _directory(target.parent) as folder:
        handle = None if folder is None else _nameless(target.parent, private)
        temporary = target.with_name(f"{PREFIX}{token}{NAMED if handle is None else LINKED}")
        try:
            if handle is None:
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
                handle = os.open(temporary, flags, private)
            with open(handle, "wb") as file:
                file.write(content)
                file.flush()
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(handle, mode)
                os.fsync(handle)
                if temporary.suffix == LINKED:
                    os.link(f"/proc/self/fd/{handle}", temporary, src_dir_fd=folder, follow_symlinks=True)
                    os.replace(temporary, target)  # while the lock is held
            if temporary.suffix == NAMED:
                os.replace(temporary, target)
            if folder is not None:
                os.fsync(folder)  # else the rename may be lost with the power
        except BaseException:  # a signal may come at any moment, also after the rename
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def _directory(path: Path) -> Iterator[int | None]:
    """Open a directory, where it can be flushed and can hold files without a name; else None."""
    if not NAMELESS or not os.path.isdir("/proc/self/fd"):
        yield None
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def _nameless(folder: Path, mode: int) -> int | None:
    """Open and lock a file without a name; None where the file system has none."""
    import fcntl

    try:
        handle = os.open(folder, NAMELESS | os.O_WRONLY, mode)
    except OSError:
        return None
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _remove_abandoned(folder)
    return handle


def _remove_abandoned(folder: Path) -> None:
    """Remove what a writer left that was killed between link and rename: such files are locked as long as it lives."""
    import fcntl

    for path in folder.glob(f"{PREFIX}*{LINKED}"):
        with suppress(OSError):  # it is in use, or somebody else's
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(handle)
