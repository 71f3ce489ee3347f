"""VWAP by symbol from a CSV of trades, as whole processes: the demo command beside its peers.

The command emits the rows that every 1,000 trades changed (with windows: a row when a window
closes), and so does the plain loop; another one writes a row a trade; Polars and DuckDB emit once.
"Steady" leaves start-up out: it is the slope between two sizes of file. Seconds are the
processor's on one core, of all threads, and the clock's on all cores; programs take turns. This
process loads nothing large, because a child's peak memory starts with its parent's.
"""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.row import Row, at_least, at_most
from bench.timing import QUICK

SYMBOLS = (100,) if QUICK else (100, 10_000)
WINDOW_NS = 60_000_000_000
REPEATS = 1 if QUICK else 3
# A fast program needs many events to rise above its start-up, a slow one would take too long.
FAST_EVENTS = (200_000, 1_000_000) if QUICK else (500_000, 5_000_000)
SLOW_EVENTS = (50_000, 200_000) if QUICK else (100_000, 1_000_000)
ONE, BOTH = "one core", "all cores"
CORES = {ONE: {min(os.sched_getaffinity(0))}, BOTH: os.sched_getaffinity(0)}
COMMAND = ("-m", "ripple.cli.run.vwap_demo", "--file")
LOOP, EACH = "plain", "a row a trade"
RUNNING = {f"{EACH}, {ONE}": 20, f"polars, {ONE}": 1.3, f"polars, {BOTH}": 1.2}
RUNNING_OF_MANY = {f"{EACH}, {ONE}": 10, f"polars, {ONE}": 0.6}
WINDOWED = {f"{LOOP}, {ONE}": 12, f"polars, {ONE}": 1.7}
WINDOWED_OF_MANY = {f"{LOOP}, {ONE}": 7, f"polars, {ONE}": 1.7}
START_UP_S = 0.15


@dataclass(frozen=True, slots=True)
class Measured:
    """A program's cost: rates in millions of trades a second, of the larger file's run.

    steady, start_up_s: nan where the machine's noise was larger than the difference of both files.
    """

    steady: float
    whole: float
    start_up_s: float
    peak_mb: float


class Program(NamedTuple):
    """Arguments of Python, "{}" for the file, its cores, and the sizes of its two files."""

    arguments: list[str]
    cores: str
    events: tuple[int, int]


def measure() -> list[Row]:
    return [row for symbols in SYMBOLS for row in _with_symbols(symbols)]


def _with_symbols(symbols: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        for events in {*FAST_EVENTS, *SLOW_EVENTS}:
            _python("bench.trade_files", "write", _csv(folder, events), str(events), str(symbols))
        running = _programs(folder, windows=False)
        windowed = _programs(folder, windows=True)
    label = f"{symbols:,} symbols"
    few = symbols == SYMBOLS[0]
    return [
        *_rows(label, running, RUNNING if few else RUNNING_OF_MANY),
        *_rows(f"{label}, windows of 60 s", windowed, WINDOWED if few else WINDOWED_OF_MANY),
    ]


def _programs(folder: str, *, windows: bool) -> dict[str, Measured]:
    """Measure every program on files that were written, and check that the results agree."""
    window = ["--window", "60s"] if windows else []
    peer_window = [str(WINDOW_NS)] if windows else []
    ours = [*COMMAND, "{}", *window]
    programs = {f"ripple, {cores}": Program(ours, cores, FAST_EVENTS) for cores in (ONE, BOTH)}
    peers = {LOOP: (SLOW_EVENTS, (ONE,))}
    if not windows:  # where rows come when windows close, this is the loop
        peers |= {EACH: (SLOW_EVENTS, (ONE,)), "numpy": (SLOW_EVENTS, (ONE,))}
    peers |= {
        name: (FAST_EVENTS, (ONE, BOTH))
        for name in ("polars", "duckdb")
        if importlib.util.find_spec(name)
    }
    for name, (events, on) in peers.items():
        for cores in on:
            peer = ["-m", "bench.peers", name, "{}", *peer_window]
            programs[f"{name}, {cores}"] = Program(peer, cores, events)
    measured = _measured(folder, programs)
    checked, against = (str(Path(folder) / name) for name in ("ours", "theirs"))
    path = _csv(folder, FAST_EVENTS[0])
    _run([*COMMAND, path, *window], ONE, checked)
    _run(["-m", "bench.peers", "polars", path, *peer_window], BOTH, against)
    _python("bench.trade_files", "check", path, checked, against)
    return measured


def _rows(label: str, measured: Mapping[str, Measured], aims: Mapping[str, float]) -> list[Row]:
    """Return what is told. aims: how many times the rates of other programs, at least."""
    peers = {name: one for name, one in measured.items() if not name.startswith("ripple")}
    rows: list[Row] = []
    unit = "M trades/s"
    batch = f"polars, {BOTH}"
    for cores in (ONE, BOTH):
        ours = measured[f"ripple, {cores}"]
        for name, one in peers.items():
            if cores in name:
                aim = at_least(aims[name], of_ratio=True) if name in aims else None
                row = f"{label}, {cores}, steady"
                rows.append(Row(row, ours.steady, unit, name, one.steady, aim))
    whole = measured[f"ripple, {BOTH}"].whole
    rows.append(Row(f"{label}, {BOTH}, whole process", whole, unit, batch, peers[batch].whole))
    ours, other = measured[f"ripple, {ONE}"], peers[f"{LOOP}, {ONE}"]
    limit = at_most(START_UP_S)
    rows += [
        Row(f"{label}, start-up", ours.start_up_s, "s", LOOP, other.start_up_s, limit),
        Row(f"{label}, peak memory", ours.peak_mb, "MB", batch, peers[batch].peak_mb),
    ]
    return rows


def _measured(folder: str, programs: Mapping[str, Program]) -> dict[str, Measured]:
    least_s: dict[tuple[str, int], float] = {}
    peak_mb = dict.fromkeys(programs, 0.0)
    for _ in range(REPEATS):
        for name, program in programs.items():
            for events in program.events:
                arguments = _filled(program.arguments, _csv(folder, events))
                took_s, used_mb = _run(arguments, program.cores, os.devnull)
                least_s[name, events] = min(least_s.get((name, events), math.inf), took_s)
                peak_mb[name] = max(peak_mb[name], used_mb)
    found = {}
    for name, program in programs.items():
        few, many = program.events
        few_s, many_s = least_s[name, few], least_s[name, many]
        steady = (many - few) / (many_s - few_s) if many_s > few_s else math.nan
        found[name] = Measured(
            steady / 1e6, many / many_s / 1e6, few_s - few / steady, peak_mb[name]
        )
    return found


def _filled(program: list[str], path: str) -> list[str]:
    return [path if part == "{}" else part for part in program]


def _csv(folder: str, events: int) -> str:
    return str(Path(folder) / f"{events}.csv")


def _run(arguments: list[str], cores: str, output: str) -> tuple[float, float]:
    """Return (seconds, peak resident MB) of a whole Python process on some cores.

    The seconds are the processor's on one core, the clock's on all.
    """
    allowed = CORES[cores]
    environment = {**os.environ, "POLARS_MAX_THREADS": str(len(allowed))}
    with Path(output).open("wb") as out, tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        child = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=out,
            stderr=errors,
            env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, allowed),  # noqa: PLW1509 - no threads here
        )
        _, status, usage = os.wait4(child.pid, 0)
        took_s = time.perf_counter() - started
        if cores == ONE:
            took_s = usage.ru_utime + usage.ru_stime
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            errors.seek(0)
            raise RuntimeError(f"{arguments} failed:\n{errors.read().decode()}")
    return took_s, usage.ru_maxrss / 1000


def _python(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], check=True)
