"""The latency of single rows from Python: from the making of a row to its sink.

They go through ``rp.run`` in this process: from a generator, and from an ``rp.Stream`` into a run
with checkpoints.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import ripple as rp
from bench.row import Row, at_most
from bench.timing import QUICK

ROWS = 50 if QUICK else 200
PAUSE_S = 0.02  # so that each row comes alone
AIM_MS = 10.0


@rp.record(version=1)
class Tick:
    key: str
    n: int


def live_rows() -> list[Row]:
    """Return the latency of a row, and the wait of the first rows for the start of a run."""
    rows = []
    for name, measured in (("a generator", _generated()), ("rp.Stream, durable", _pushed())):
        ordered = sorted(measured)
        rows += [
            Row(f"a row of {name}: median", ordered[ROWS // 2], "ms", aim=at_most(AIM_MS)),
            Row(f"a row of {name}: p99", ordered[ROWS * 99 // 100], "ms"),
            Row(f"a row of {name}: largest", ordered[-1], "ms"),
        ]
    first = [sys.executable, "-c", "from bench.live_rows import pushed_first as f; print(f())"]
    printed = subprocess.run(first, check=True, stdout=subprocess.PIPE).stdout
    return [*rows, Row("a row pushed before a durable run starts", float(printed), "ms")]


class _Timed:
    """Rows with the times of their making, and a sink with the times of their arrival."""

    def __init__(self) -> None:
        self.made: list[float] = []
        self.got: list[float] = []

    def rows(self) -> Iterator[dict[str, Any]]:
        for number in range(ROWS):
            time.sleep(PAUSE_S)
            self.made.append(time.perf_counter())
            yield {"key": str(number), "n": number}

    def take(self, changes: Any) -> None:
        self.got += [time.perf_counter()] * changes.num_rows

    def took_ms(self) -> list[float]:
        return [(got - made) * 1e3 for made, got in zip(self.made, self.got, strict=True)]


def _pipeline() -> Any:
    ticks = rp.Pipeline("live-rows").source("ticks", Tick)
    return ticks.partition("by-key", key="key").fold("counts", n=rp.count()).sink("out")


def _generated() -> list[float]:
    timed = _Timed()
    rp.run(_pipeline(), source=timed.rows(), sink=timed.take)
    return timed.took_ms()


def _pushed() -> list[float]:
    timed, stream = _Timed(), rp.Stream(Tick)

    def push() -> None:
        asyncio.run(stream.opened())
        for row in timed.rows():
            stream.push(row)
        stream.close()

    pushing = threading.Thread(target=push)
    pushing.start()
    _run_durably(stream, timed)
    pushing.join()
    return timed.took_ms()


def pushed_first() -> float:
    """Return the latency of a row that was pushed before its run, in ms."""
    timed, stream = _Timed(), rp.Stream(Tick)
    stream.push(next(timed.rows()))
    stream.close()
    _run_durably(stream, timed)
    return timed.took_ms()[0]


def _run_durably(stream: Any, timed: _Timed) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rp.run(_pipeline(), source=stream, sink=timed.take, checkpoint_dir=folder)
