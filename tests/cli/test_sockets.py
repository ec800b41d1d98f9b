"""No command opens a socket: there is nothing to talk to. Python itself tells, by its audit events."""

import subprocess
import sys

import numpy as np
import pytest

from helpers import HANG, planar_bursts

HOOK = """
import os, sys

def hook(event, _):
    if event.startswith("socket."):
        os.write(2, f"SOCKET {event}\\n".encode())
        os._exit(98)

sys.addaudithook(hook)
"""
COMMANDS = """
from pyloca.cli import cli
for arguments in (
    ["inspect", "b.npy"],
    ["fit", "b.npy", "-q", "--max-iter", "5", "-o", "m.safetensors"],
    ["transform", "m.safetensors", "b.npy"],
    ["report", "m.safetensors", "b.npy", "-o", "page.html"],
):
    code = cli(arguments, standalone_mode=False)
    assert code in (None, 0, 4), (arguments, code)
"""


def run(folder, code):
    command = [sys.executable, "-c", HOOK + code]
    return subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=HANG, check=False)


@pytest.mark.slow
def test_no_command_opens_a_socket(tmp_path):
    """`python -m benchmarks faults_of_files` tries all of them."""
    np.save(tmp_path / "b.npy", planar_bursts(40, 12)[1])
    done = run(tmp_path, COMMANDS)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").is_file()


def test_a_socket_would_be_seen(tmp_path):
    done = run(tmp_path, "import socket; socket.socket()")
    assert (done.returncode, done.stderr) == (98, "SOCKET socket.__new__\n")
