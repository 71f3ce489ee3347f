"""Five tasks of a newcomer, in an empty folder: Ripple, Polars, Bytewax, Pathway and csp.

a  bars of a minute with their VWAP, by symbol and venue
b  alerts: a last price over two deviations off the mean of five minutes, each minute
c  sessions of users, from nested JSON with times in text
d  positions, and their profit at the newest quotes of another file
e  users and events by hour of New York in the night of the clock change, each event once

Each program reads the files of ``data`` from its folder and writes ``out.csv``. A figure counts
only if the rows equal plain Python's, so a wrong row ends the benchmark. Blank lines are not
counted. Quix Streams reads topics of Kafka alone: ``docs/coming-from/quix.md`` has a job of it.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import kafka_peers
from bench.newcomer import data
from bench.row import Row, at_most, beside

HERE = Path(__file__).parent
LINES_MAX = 20
TASKS = "abcde"
PEERS = {"polars": "Polars", "bytewax": "Bytewax", "pathway": "Pathway", "csp": "csp"}
_FIGURES = {"a": 6, "b": 1, "c": 1, "d": 2, "e": 2}
_NS = 1e15


def measure() -> list[Row]:
    """Return lines and seconds of each task. Raises RuntimeError for wrong rows."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        expected = data.write(Path(folder))
        for task in TASKS:
            seconds = {name: run(name, task, Path(folder), expected) for name in ("ripple", *PEERS)}
            lines = {name: count(name, task) for name in seconds}
            aim = at_most(LINES_MAX) if task in "de" else None
            others = {PEERS[name]: float(lines[name]) for name in PEERS}
            rows += beside(f"{task}: lines", lines["ripple"], "", others, aim)
            others = {PEERS[name]: seconds[name] for name in PEERS}
            rows += beside(f"{task}: whole process", seconds["ripple"], "s", others)
    return rows


def count(library: str, task: str) -> int:
    """Return the number of lines of a program that are not blank."""
    return sum(bool(line.strip()) for line in _program(library, task).read_text().splitlines())


def run(library: str, task: str, folder: Path, expected: dict[str, list[data.Row]]) -> float:
    """Run a program and compare its rows; return its seconds. Raises RuntimeError."""
    out = folder / "out.csv"
    out.unlink(missing_ok=True)
    program, environment = _program(library, task), {**os.environ}
    command = [sys.executable, str(program)]
    if library == "bytewax":
        command = [kafka_peers.python(), "-m", "bytewax.run", f"{program}:flow"]
    elif library == "pathway":
        command[0] = kafka_peers.python()
    elif library == "csp":
        from tests.deploy.tools import of_python  # noqa: PLC0415 - Ripple alone does without it

        environment["PYTHONPATH"] = str(of_python("csp==0.19.1"))
    began = time.perf_counter()
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if ended.returncode:
        raise RuntimeError(f"{library} {task}: {ended.stderr.strip()}")
    check(f"{library} {task}", rows_of(out, task), expected[task])
    return seconds


def rows_of(path: Path, task: str) -> list[data.Row]:
    """Return the rows that a program wrote, without a heading and without additional columns."""
    with path.open(newline="") as file:
        lines = [line for line in csv.reader(file) if line]
    if isinstance(_key(lines[0][-1]), str):
        heading, *lines = lines
        own = [at for at, name in enumerate(heading) if name not in _ADDITIONAL]
        lines = [[line[at] for at in own] for line in lines]
    figures = _FIGURES[task]
    return sorted(
        (*map(_key, line[:-figures]), *(float(value) for value in line[-figures:]))
        for line in lines
    )


# The ends of windows, the times and counts of changes, and values on the way.
_ADDITIONAL = {"window_end_ns", "time", "diff", "last", "mean", "deviation", "cost", "bid"}


def _key(text: str) -> str | float:
    try:
        number = float(text)
    except ValueError:
        return text
    return round(number / 1e6) * 1_000_000 if number > _NS else number


def check(name: str, found: list[data.Row], expected: list[data.Row]) -> None:
    """Raise RuntimeError unless the rows are equal, their figures within a billionth."""
    if len(found) != len(expected):
        raise RuntimeError(f"{name}: {len(found)} rows in place of {len(expected)}")
    for one, other in zip(found, expected, strict=True):
        pairs = zip(one, other, strict=True)
        if any(not _is_near(a, b) for a, b in pairs):
            raise RuntimeError(f"{name}: {one} in place of {other}")


def _is_near(one: str | float, other: str | float) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))


def _program(library: str, task: str) -> Path:
    return HERE / library / f"{task}.py"
