"""The code of an earlier commit, run beside today's in one benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


@contextmanager
def source_of(revision: str) -> Iterator[Path]:
    """Unpack ``src`` of a commit of this clone into a temporary folder."""
    done = subprocess.run(["git", "-C", str(ROOT), "archive", revision, "src"], capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder) / "src"


def run_with(source: Path, script: str, *arguments: str) -> dict[str, Any]:
    """Run a script with the package in `source`, one thread; it prints one line of JSON."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])
