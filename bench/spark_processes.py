"""What processes of Spark have used, and how far a benchmark of them is."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def say(line: str) -> None:
    """Tell whoever waits, on standard error."""
    print(line, file=sys.stderr, flush=True)


def processor_s() -> float:
    """Return the processor time of this process and all that it has started, seconds."""
    time.sleep(0.2)  # what was done is noted when tasks end
    parents, used = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        used[int(entry.name)] = sum(map(int, fields[11:15]))
    own = os.getpid()
    return sum(ticks for pid, ticks in used.items() if _is_below(pid, own, parents)) / TICKS_PER_S


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        if pid == ancestor:
            return True
        pid = parents[pid]
    return False
