"""Commands in processes of their own, whose memory and sockets are watched."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil

__all__ = ["LIMIT", "pyloca", "until", "watch"]

LIMIT = 2 << 30  # bytes that a process may have resident; beyond, all are killed
EVERY = 0.25  # seconds


def pyloca(
    *arguments: str,
    during: Callable[[psutil.Process], None] = lambda process: None,
    first: str = "",
    environment: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Run ``pyloca``; return its exit code, messages, processor seconds of all its processes, and what they used.

    `first` is Python to run before the command.
    """
    variables = os.environ | {"OMP_NUM_THREADS": "1"} | (environment or {})
    command = [sys.executable, "-c", f"{first}\nfrom pyloca.cli import main\nmain()", *arguments]
    child = subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    seen: dict[str, Any] = {"gb": 0.0, "exceeded": False, "seconds": 0.0, "sockets": set()}
    stop = threading.Event()
    watcher = threading.Thread(target=watch, args=(child.pid, seen, stop), daemon=True)
    watcher.start()
    moment = threading.Thread(target=during, args=(psutil.Process(child.pid),), daemon=True)
    moment.start()
    told, said = child.communicate()
    stop.set()
    watcher.join()
    seen["sockets"] = sorted(seen["sockets"])
    return {"code": child.returncode, "said": said, "told": told, **seen}


def watch(pid: int, seen: dict[str, Any], stop: threading.Event) -> None:
    """Look at a process and all below it again and again; kill them if one grows beyond the limit."""
    spent: dict[int, float] = {}
    while not stop.wait(EVERY):
        try:
            top = psutil.Process(pid)
            family = [top, *top.children(recursive=True)]
        except psutil.Error:
            continue
        for process in family:
            try:
                times = process.cpu_times()
                spent[process.pid] = times.user + times.system
                size = process.memory_info().rss
                opened = process.net_connections("inet")
            except psutil.Error:
                continue
            seen["gb"] = max(seen["gb"], size / 2**30)
            seen["sockets"] |= {one.laddr.ip for one in opened if one.laddr and one.type == socket.SOCK_STREAM}
            if size > LIMIT:
                seen["exceeded"] = True
                for one in family:
                    one.kill()
        seen["seconds"] = sum(spent.values())


def until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait for a condition; tell whether it came."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False
