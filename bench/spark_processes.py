"""What processes of Spark have used, and how far a benchmark of them is."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def say(line: str) -> None:
    """Tell whoever waits, on standard error."""
    print(line, file=sys.stderr, flush=True)


class Used(NamedTuple):
    """What this process and all that it has started have used so far; see ``used_since``."""

    ticks: int
    parents: dict[int, int]


def used() -> Used:
    """Look at the processes that are there."""
    time.sleep(0.2)  # what was done is noted when tasks end
    parents, ticks = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    own = os.getpid()
    ours = {pid: parents[pid] for pid in ticks if _is_below(pid, own, parents)}
    return Used(sum(ticks[pid] for pid in ours), ours)


def used_since(before: Used) -> float | None:
    """Return the processor time since then, seconds; None where some of it cannot be known.

    What an ended process has used, its parent has, unless that has ended too.
    """
    after = used()
    ended = before.parents.keys() - after.parents.keys()
    if any(before.parents[pid] in ended for pid in ended):
        return None
    return (after.ticks - before.ticks) / TICKS_PER_S


def peaks_mb() -> dict[str, float]:
    """Return the most memory that the JVM and one Python process of Spark have had, megabytes."""
    found: dict[str, float] = {}
    for pid in used().parents:
        try:
            line = Path(f"/proc/{pid}/cmdline").read_text()
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        name = "the JVM" if "SparkSubmit" in line else "a Python process of a task"
        if "SparkSubmit" not in line and "pyspark.daemon" not in line:
            continue
        (peak,) = (one.split()[1] for one in status.splitlines() if one.startswith("VmHWM"))
        found[name] = max(found.get(name, 0.0), int(peak) / 1024)
    return found


def least_s(spent_s: Collection[float]) -> float:
    """Return the least of what rounds have used. Raises RuntimeError where none is known."""
    if not spent_s:
        raise RuntimeError("processes of Spark ended in every round: measure in more quiet")
    return min(spent_s)


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        if pid == ancestor:
            return True
        pid = parents[pid]
    return False
