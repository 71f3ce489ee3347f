"""Processor time and memory of processes of Spark, and the progress of a benchmark of them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def say(line: str) -> None:
    """Print a line of progress on standard error."""
    print(line, file=sys.stderr, flush=True)


class Used(NamedTuple):
    """Processor time of this process and its descendants so far; see ``used_since``.

    By process its ticks and its parent. unwaited: those whose time nobody gets when they end.
    """

    ticks: dict[int, int]
    parents: dict[int, int]
    unwaited: frozenset[int]


def used() -> Used:
    """Return the use of the present processes."""
    time.sleep(0.2)  # the time of a task is noted at its end
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
    unwaited = frozenset(pid for pid, parent in ours.items() if _ignores_ends(parent))
    return Used({pid: ticks[pid] for pid in ours}, ours, unwaited)


def used_since(before: Used) -> float | None:
    """Return the processor time since then, seconds; None where some of it cannot be known.

    The time of an ended process is its parent's, unless that has ended too. That of a process of
    Python that Spark has ended, since it was idle for a minute, is nobody's.
    """
    after = used()
    ended = before.parents.keys() - after.parents.keys()
    if any(before.parents[pid] in ended for pid in ended):
        return None
    idle = ended & before.unwaited
    ticks = sum(after.ticks.values()) - sum(before.ticks.values())
    return (ticks + sum(before.ticks[pid] for pid in idle)) / TICKS_PER_S


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
    """Return the least processor time of a round. Raises RuntimeError where none is known."""
    if not spent_s:
        raise RuntimeError("processes of Spark ended in every round: measure in more quiet")
    return min(spent_s)


def spent_s_of(
    calls: Mapping[str, Callable[[], Any]], rounds: int, what: str = "", *, warms_up: bool = True
) -> dict[str, float]:
    """Return the least seconds of processor time of each call; the calls take turns.

    what: the work of a call, for lines of progress. warms_up: in a round that does not count.
    """
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(0 if warms_up else 1, rounds + 1):
        for name, call in calls.items():
            before = used()
            call()
            used_s = used_since(before)
            told = "a process has ended" if used_s is None else f"{used_s:.2f} s"
            say(f"{name}, round {round_} of {rounds}: {told}{what and f' for {what}'}")
            if round_ and used_s is not None:  # in the first, code is compiled
                spent[name].append(used_s)
    return {name: least_s(all_s) for name, all_s in spent.items()}


def rates_of(
    calls: Mapping[str, Callable[[], Any]], events: int, rounds: int, *, warms_up: bool = True
) -> dict[str, float]:
    """Return millions of trades per second of processor time; the calls take turns."""
    spent = spent_s_of(calls, rounds, f"{events:,} trades", warms_up=warms_up)
    return {name: events / one_s / 1e6 for name, one_s in spent.items()}


def _ignores_ends(pid: int) -> bool:
    """Return whether a process waits for none of its children."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    (ignored,) = (int(line.split()[1], 16) for line in lines if line.startswith("SigIgn:"))
    return bool(ignored >> (signal.SIGCHLD - 1) & 1)


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        if pid == ancestor:
            return True
        pid = parents[pid]
    return False
