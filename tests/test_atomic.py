"""Files appear whole or not at all, and leave what they replace as it was."""

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading

import pytest

from helpers import HANG
from pyloca import _atomic
from pyloca._atomic import write_atomically

posix = pytest.mark.skipif(os.name == "nt", reason="permissions, links and devices of POSIX")


@pytest.fixture(params=["nameless", "named"])
def target(request, tmp_path, monkeypatch):
    """A path to write to, with and without files that have no name."""
    if request.param == "named":
        monkeypatch.setattr(_atomic, "NAMELESS", 0)
    return tmp_path / "out.bin"


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_keeps_its_mode(target, mode):
    target.write_bytes(b"old")
    target.chmod(mode)
    write_atomically(target, b"new")
    assert (target.read_bytes(), mode_of(target)) == (b"new", mode)


@posix
def test_the_umask_is_obeyed_and_never_touched(target, monkeypatch):
    before = os.umask(0o027)
    monkeypatch.setattr(_atomic.os, "umask", None)  # other threads share it
    try:
        write_atomically(target, b"new")
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert mode_of(target) == 0o640


@posix
@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(target, tmp_path, there):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    if there:
        (folder / "real").write_bytes(b"old")
    target.symlink_to(folder / "real")
    assert write_atomically(target, b"new") == target
    assert target.is_symlink()
    assert (folder / "real").read_bytes() == b"new"
    assert [path.name for path in folder.iterdir()] == ["real"]


@posix
def test_a_pipe_is_not_replaced(target):
    os.mkfifo(target)
    with pytest.raises(OSError, match=r"cannot write .*out.bin: it exists but is not a regular file\."):
        write_atomically(target, b"new")
    assert stat.S_ISFIFO(target.stat().st_mode)


def test_an_error_names_the_file_and_keeps_its_kind(target, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_atomic.os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot write .*out.bin: No space left on device\.") as caught:
        write_atomically(target, b"new")
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        write_atomically(target / "x" / "y", b"new")
    assert list(target.parent.iterdir()) == []


def test_a_long_name(target):
    path = target.with_name("x" * 255)
    assert write_atomically(path, b"new").read_bytes() == b"new"


def test_a_signal_after_the_rename_stays_that_signal(target, monkeypatch):
    rename = os.replace

    def late(*args):
        rename(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(_atomic.os, "replace", late)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"new"
    assert [path.name for path in target.parent.iterdir()] == ["out.bin"]


def test_writers_of_one_file_do_not_mix(target):
    contents = [bytes([i]) * 300_000 for i in range(8)]
    writers = [threading.Thread(target=write_atomically, args=(target, content)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert target.read_bytes() in contents
    assert [path.name for path in target.parent.iterdir()] == ["out.bin"]


@pytest.mark.skipif(not _atomic.NAMELESS, reason="only Linux has files without a name")
def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    """Killed between link and rename, the only moment at which there are two names."""
    import fcntl

    code = """
        import os, signal, sys
        from pathlib import Path
        from pyloca import _atomic
        _atomic.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        _atomic.write_atomically(Path(sys.argv[1]), b"new")
    """
    target = tmp_path / "out.bin"
    target.write_bytes(b"old")
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(target)], timeout=HANG, check=False)
    (left,) = (path for path in tmp_path.iterdir() if path != target)
    with open(left, "rb") as living:
        fcntl.flock(living, fcntl.LOCK_EX)
        write_atomically(target, b"another")
        assert left.exists()
    write_atomically(target, b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out.bin", b"new")]


@pytest.mark.skipif(not _atomic.NAMELESS, reason="only Linux has files without a name")
def test_a_killed_writer_leaves_nothing(tmp_path):
    """Killed at the last moment before the file gets a name."""
    code = """
        import os, signal, sys
        from pathlib import Path
        from pyloca import _atomic
        _atomic.os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        _atomic.write_atomically(Path(sys.argv[1]), b"new")
    """
    target = tmp_path / "out.bin"
    target.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(target)], timeout=HANG, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out.bin", b"old")]
