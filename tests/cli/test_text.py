"""Text that is no text, from files and pipes."""

import io
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from pyloca.cli import _text, cli
from pyloca.cli._text import read_text
from pyloca.errors import BurstError

ZERO = Path("/dev/zero")


class Endless(io.RawIOBase):
    """A pipe without end: what comes first, and the same bytes again and again."""

    def __init__(self, *parts):
        self.parts, self.reads = cycle(parts), 0

    def read(self, size=-1):
        assert size > 0, "all of it is asked for"
        self.reads += 1
        return next(self.parts)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((b"a,b\n1,2\n", b"\0" * 8), "line 3 has a NUL byte"),
        ((b"a,b\n", "µ".encode()[:1], b"x"), r"not valid UTF-8 \(invalid continuation byte at byte 4\)"),
    ],
)
def test_what_is_no_text_is_not_read_to_its_end(parts, words):
    pipe = Endless(*parts)
    with pytest.raises(BurstError, match=words):
        _text._read(pipe)
    assert pipe.reads <= len(parts)


@pytest.mark.parametrize("part", [1, 2, 3, 1 << 20])
def test_text_in_parts(tmp_path, monkeypatch, part):
    monkeypatch.setattr(_text, "PART", part)
    file = tmp_path / "t.csv"
    file.write_bytes("\ufeffµ,名\r\n1,2\n".encode())
    assert read_text(str(file)) == "µ,名\r\n1,2\n"
    file.write_bytes("µ,名".encode()[:-1])
    with pytest.raises(BurstError, match="unexpected end of data at byte 3"):
        read_text(str(file))


@pytest.mark.skipif(not ZERO.is_char_device(), reason="there is no /dev/zero")
@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", ZERO, "--json"),
        ("inspect", ZERO),
        ("fit", "b.npy", "--json", "--config", ZERO),
        ("fit", "b.npy", "--json", "--distances", ZERO),
    ],
)
def test_a_device_without_end(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    np.save("b.npy", np.random.RandomState(0).standard_normal((40, 5, 2)))
    done = CliRunner().invoke(cli, [str(a) for a in arguments], prog_name="pyloca")
    assert done.exit_code == (2 if "--config" in arguments else 3), done.output
    assert "NUL byte" in done.output
