"""The processes that a process has started."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path


def below(pid: int) -> dict[int, str]:
    """Return the command lines of all processes that a process has started."""
    parents, lines = {}, {}
    for entry in Path("/proc").iterdir():
        try:
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rpartition(")")[2].split()[1]
            )
            lines[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except (OSError, ValueError):
            continue
    known = {pid}
    for _ in range(9):
        known |= {one for one, parent in parents.items() if parent in known}
    return {one: lines[one] for one in known - {pid}}


def until_gone(pids: Iterable[int], within_s: float) -> None:
    """Wait until none of these processes is there."""
    until_s = time.monotonic() + within_s
    while left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < until_s, left
        time.sleep(0.05)
