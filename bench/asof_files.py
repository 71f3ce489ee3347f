"""An as-of join from CSV files to a CSV file, as a whole process on one core: records a second.

Start-up is left out: it is the slope between one length of the files and several.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

import ripple as rp
from bench.asof import MS, TRADES, Quote, Trade, streams
from bench.row import Row, at_least
from bench.timing import QUICK

if TYPE_CHECKING:
    from collections.abc import Iterator

LENGTHS = (1, 3) if QUICK else (1, 6)
ROUNDS = 1 if QUICK else 3
RATE_MIN = 8e6
PLAIN = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")

market = rp.Pipeline("market")
pipeline = (
    market.source("trades", Trade)
    .join_asof("at-quote", market.source("quotes", Quote), on="symbol", lateness="2s", emit="final")
    .sink("out")
)


def measure() -> Iterator[Row]:
    """Yield records a second, with prices of two digits behind the point and of all."""
    for keys, digits in ((100, 2), (10_000, 2), (100, 17)):
        sides = dict(zip(("trades", "quotes"), streams(keys, 0.0), strict=True))
        count = sum(side.num_rows for side in sides.values())
        with tempfile.TemporaryDirectory() as folder:
            took_s = []
            for length in LENGTHS:
                for name, side in sides.items():
                    _write(side, digits, length, Path(folder, f"{name}.csv"))
                took_s.append(min(_run(folder) for _ in range(ROUNDS)))
        rate = count * (LENGTHS[1] - LENGTHS[0]) / (took_s[1] - took_s[0])
        prices = "prices of two decimals" if digits == 2 else "of all digits"
        name = f"CSV to CSV, {keys:,} keys, {prices}"
        aim = at_least(RATE_MIN) if digits == 2 else None
        yield Row(name, rate, "records/s", aim=aim)


def _write(side: pa.Table, digits: int, length: int, path: Path) -> None:
    """Write a side several times, each time later."""
    at = side.schema.names.index("at_ns")
    for place, field in enumerate(side.schema):
        if field.type == pa.float64() and digits == 2:
            prices = pc.round(pc.multiply(side.column(place), 100.0), 2)
            side = side.set_column(place, field.name, prices)
    parts = [
        side.set_column(at, "at_ns", pc.add(side.column(at), TRADES * MS * turn))
        for turn in range(length)
    ]
    pyarrow.csv.write_csv(pa.concat_tables(parts), path, PLAIN)


def _run(folder: str) -> float:
    """Return the processor time of one run."""
    arguments = ["run", f"{__file__}:pipeline", "-q", "--sink", f"out=csv:{folder}/out.csv"]
    for name in ("trades", "quotes"):
        arguments += ["--source", f"{name}=csv:{folder}/{name}.csv"]
    core = min(os.sched_getaffinity(0))
    child = subprocess.Popen(
        [sys.executable, "-m", "ripple.cli.main", *arguments],
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509 - no threads here
    )
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, "it ends well"
    return usage.ru_utime + usage.ru_stime
