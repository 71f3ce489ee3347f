"""VWAP by symbol from a CSV of trades, as whole processes: the demo command beside its peers.

The command emits the rows that every 1,000 trades changed (with windows: a row when a window
closes), and so do the loops; Polars and DuckDB emit once. "Steady" leaves start-up out: it is the
slope between two sizes of file. This process loads nothing large, because a child's peak memory
starts with its parent's.
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

from bench.row import Aim, Row, at_least, at_most, beside
from bench.timing import QUICK

SYMBOLS = (100,) if QUICK else (100, 10_000)
WINDOW_NS = 60_000_000_000
REPEATS = 1 if QUICK else 3
# A fast program needs many events to rise above its start-up, a slow one would take too long.
FAST_EVENTS = (200_000, 1_000_000) if QUICK else (500_000, 5_000_000)
SLOW_EVENTS = (50_000, 200_000) if QUICK else (100_000, 1_000_000)
ONE, BOTH = "one core", "all cores"
CORES = {ONE: {min(os.sched_getaffinity(0))}, BOTH: os.sched_getaffinity(0)}
COMMAND = ("-m", "ripple.cli.vwap_demo", "--file")
START_UP_S = 0.5


@dataclass(frozen=True, slots=True)
class Measured:
    """A program's cost: rates in millions of trades a second, of the larger file's run.

    steady, start_up_s: nan where the machine's noise was larger than the difference of both files.
    """

    steady: float
    whole: float
    start_up_s: float
    peak_mb: float


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
        *_rows(f"{label}", running, at_least(5), of_polars=1.2 if few else 1.0),
        *_rows(f"{label}, windows of 60 s", windowed, at_least(4), of_polars=1.0),
    ]


def _programs(folder: str, *, windows: bool) -> dict[str, Measured]:
    """Measure every program on files that were written, and check that the results agree."""
    window = ["--window", "60s"] if windows else []
    peer_window = [str(WINDOW_NS)] if windows else []
    measured = {}
    for cores in (ONE, BOTH):
        ours = [*COMMAND, "{}", *window]
        measured[f"ripple, {cores}"] = _measured(folder, ours, cores, FAST_EVENTS)
    peers = {"plain": (SLOW_EVENTS, (ONE,)), "numpy": (SLOW_EVENTS, (ONE,))}
    if windows:
        del peers["numpy"]
    peers |= {
        name: (FAST_EVENTS, (ONE, BOTH))
        for name in ("polars", "duckdb")
        if importlib.util.find_spec(name)
    }
    for name, (events, on) in peers.items():
        for cores in on:
            peer = ["-m", "bench.peers", name, "{}", *peer_window]
            measured[f"{name}, {cores}"] = _measured(folder, peer, cores, events)
    checked, against = (str(Path(folder) / name) for name in ("ours", "theirs"))
    path = _csv(folder, FAST_EVENTS[0])
    _run([*COMMAND, path, *window], ONE, checked)
    _run(["-m", "bench.peers", "polars", path, *peer_window], BOTH, against)
    _python("bench.trade_files", "check", path, checked, against)
    return measured


def _rows(label: str, measured: Mapping[str, Measured], aim: Aim, *, of_polars: float) -> list[Row]:
    """Return what is told; aim: on one core; of_polars: how many times its rate, on all cores."""
    peers = {name: one for name, one in measured.items() if not name.startswith("ripple")}
    rows: list[Row] = []
    unit = "M trades/s"
    batch = "polars, all cores"
    for cores in (ONE, BOTH):
        ours = measured[f"ripple, {cores}"]
        steady = {name: one.steady for name, one in peers.items() if cores in name or cores == ONE}
        only = aim if cores == ONE else at_least(of_polars, of_ratio=True)
        rows += beside(f"{label}, {cores}, steady", ours.steady, unit, steady, only)
        whole = peers[batch].whole
        rows.append(Row(f"{label}, {cores}, whole process", ours.whole, unit, batch, whole))
    ours, other = measured[f"ripple, {ONE}"], peers["plain, one core"]
    limit = at_most(START_UP_S)
    rows += [
        Row(f"{label}, start-up", ours.start_up_s, "s", "plain", other.start_up_s, limit),
        Row(f"{label}, peak memory", ours.peak_mb, "MB", batch, peers[batch].peak_mb),
    ]
    return rows


def _measured(folder: str, program: list[str], cores: str, events: tuple[int, int]) -> Measured:
    few, many = events
    few_s = many_s = float("inf")
    peak_mb = 0.0
    for _ in range(REPEATS):
        few_s = min(few_s, _run(_filled(program, _csv(folder, few)), cores, os.devnull)[0])
        took_s, peak_mb = _run(_filled(program, _csv(folder, many)), cores, os.devnull)
        many_s = min(many_s, took_s)
    steady = (many - few) / (many_s - few_s) if many_s > few_s else math.nan
    return Measured(steady / 1e6, many / many_s / 1e6, few_s - few / steady, peak_mb)


def _filled(program: list[str], path: str) -> list[str]:
    return [path if part == "{}" else part for part in program]


def _csv(folder: str, events: int) -> str:
    return str(Path(folder) / f"{events}.csv")


def _run(arguments: list[str], cores: str, output: str) -> tuple[float, float]:
    """Return (seconds, peak resident MB) of a whole Python process on some cores."""
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
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            errors.seek(0)
            raise RuntimeError(f"{arguments} failed:\n{errors.read().decode()}")
    return took_s, usage.ru_maxrss / 1000


def _python(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], check=True)
