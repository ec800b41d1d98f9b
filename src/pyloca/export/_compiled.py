"""A header of ours, compiled and run, to see what it computes."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyloca.export._c import CTemplate
from pyloca.predict import Predictor

__all__ = ["COMPILERS", "FLAGS", "CompiledHeader", "find_compiler"]

Array = NDArray[np.float64]

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror")


def find_compiler() -> str | None:
    """Return the first C compiler that is installed, or None."""
    return next((path for path in map(shutil.which, COMPILERS) if path), None)


class CompiledHeader:
    """A header as a program in a folder of its own, which goes with the object's context.

    Parameters
    ----------
    text : str
        Of the header.
    predictor : Predictor
        What it was written from.
    prefix : str
        Of its names.
    dtype : {"float64", "float32"}
    compiler : str

    Raises
    ------
    OSError
        If it does not compile without a warning.
    """

    def __init__(self, text: str, predictor: Predictor, prefix: str, dtype: str, compiler: str) -> None:
        self._dtype, self._shape = np.dtype(dtype), (predictor.n_components, predictor.n_features)
        self._folder = tempfile.TemporaryDirectory(prefix="pyloca-export-")
        folder = Path(self._folder.name)
        program = CTemplate((files("pyloca.export") / "templates" / "check.c").read_text(encoding="utf-8"))
        (folder / "model.h").write_text(text, encoding="utf-8")
        (folder / "check.c").write_text(program.substitute(p=prefix, P=prefix.upper()), encoding="utf-8")
        self._program = folder / "check"
        command = [compiler, *FLAGS, str(folder / "check.c"), "-o", str(self._program), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            self._folder.cleanup()
            raise OSError(f"it says: {' '.join(done.stderr.split())[:300]}")
        version = subprocess.run([compiler, "--version"], capture_output=True, text=True, errors="replace", check=False)
        self.name = (version.stdout.splitlines() or [Path(compiler).name])[0]

    def encode(self, Y: Array) -> Array:
        """Run encode."""
        return self._run("encode", Y, self._shape[:1])

    def decode(self, Z: Array) -> Array:
        """Run decode."""
        return self._run("decode", Z, self._shape[1:])

    def jacobian(self, Y: Array) -> Array:
        """Run encode_with_jacobian."""
        return self._run("jacobian", Y, self._shape)

    def trust(self, Y: Array) -> Array:
        """Run encode_with_trust."""
        return self._run("trust", Y, ())

    def __enter__(self) -> CompiledHeader:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def _run(self, task: str, points: Array, shape: tuple[int, ...]) -> Array:
        given = np.ascontiguousarray(points, dtype=self._dtype)
        done = subprocess.run([self._program, task[0]], input=given.tobytes(), capture_output=True, check=True)
        return np.frombuffer(done.stdout, dtype=self._dtype).reshape(len(points), *shape).astype(np.float64)
