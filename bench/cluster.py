"""What distribution costs: the same trades through ``ripple run`` and through clusters.

Each begins with an empty log and is ready; then all trades are appended at once, and it is waited
until the outputs have committed them. Wall time, so only a quiet machine tells: the coordinator,
all workers and the log's writer share its processors. The tables that are left are compared.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from bench.row import Row
from bench.timing import QUICK
from bench.trades import trades, vwap_plan
from ripple.cli.cluster.starting.reach import Reach
from ripple.connectors.log.sink import committed_in
from ripple.model.pipeline.file import load_plan
from ripple.storage.log import LogSettings, Topic
from ripple.storage.log.router import TopicWriter
from ripple.world import LiveClock, LiveDisk

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
TRADES = 200_000 if QUICK else 2_000_000
FIRST = 4_000
PARTITIONS = 4
SYMBOLS = 2_000
WITHIN_S = 120.0
POLL_S = 0.02
PIPELINES = {
    "60 s windows": ("vwap.py", ("output",)),
    "portfolio": ("portfolio.py", ("by-symbol", "total")),
}


def measure() -> list[Row]:
    rows = []
    for name, (file, outputs) in PIPELINES.items():
        pipeline = str(EXAMPLES / file)
        alone, expected = _rate(pipeline, outputs, _run)
        rows.append(Row(f"{name}, one process", alone / 1e6, "M events/s"))
        for workers in (1, 2):
            rate, made = _rate(pipeline, outputs, partial(_up, workers=workers))
            assert made == expected, f"{name}, {workers} workers: {made}, not {expected}"
            rows.append(
                Row(f"{name}, {workers} workers", rate / 1e6, "M events/s", "one process",
                    alone / 1e6)
            )  # fmt: skip
    return rows


class _Place:
    """A log, and where a run over it keeps all else."""

    def __init__(self, folder: str, pipeline: str, outputs: tuple[str, ...]) -> None:
        self.folder, self.pipeline, self.outputs = folder, pipeline, outputs
        self.sinks = [f"{name}=log:{folder}/{name}" for name in outputs]
        self.source = f"log:{folder}/trades"
        self.topic = Topic.create(
            LiveDisk(folder),
            "trades",
            vwap_plan().source.schema,
            partitions=PARTITIONS,
            key=["symbol"],
            settings=LogSettings(sync_appends=0),
        )
        sinks = {name: f"log:{folder}/{name}" for name in outputs}
        self.reach = Reach(load_plan(pipeline), {"trades": self.source}, sinks)

    def append(self, first: int, events: int) -> None:
        with TopicWriter(self.topic, LiveClock(), holder="bench") as writer:
            for at in range(first, first + events, FIRST):
                writer.append(trades(FIRST, SYMBOLS, at))

    def wait(self) -> None:
        until_s = time.monotonic() + WITHIN_S
        while not self.reach.look().is_all:
            assert time.monotonic() < until_s, str(self.reach.look())
            time.sleep(POLL_S)

    def digests(self) -> list[str]:
        """Return the digest of each output, of all its partitions together."""
        found = []
        for name in self.outputs:
            topic = Topic.open(LiveDisk(self.folder), name)
            reached = [committed_in(topic, partition) for partition in range(topic.partitions)]
            whole = sum(int(one.digest, 16) for one in reached if one is not None)
            found.append(f"{whole % (1 << 64):016x}")
        return found


def _rate(
    pipeline: str,
    outputs: tuple[str, ...],
    start: Callable[[_Place], subprocess.Popen[bytes]],
) -> tuple[float, list[str]]:
    """Return events a second from the first append to the last commit, and the digests."""
    with tempfile.TemporaryDirectory() as folder:
        place = _Place(folder, pipeline, outputs)
        place.append(0, FIRST)
        process = start(place)
        try:
            place.wait()
            began_s = time.perf_counter()
            place.append(FIRST, TRADES)
            place.wait()
            seconds = time.perf_counter() - began_s
            digests = place.digests()
        finally:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
        return TRADES / seconds, digests


def _run(place: _Place) -> subprocess.Popen[bytes]:
    return _start(
        *(
            "run",
            place.pipeline,
            "--source",
            place.source,
            "--follow",
            "--commit-interval",
            "100ms",
        ),
        *(flag for sink in place.sinks for flag in ("--sink", sink)),
        *("--checkpoint-dir", f"{place.folder}/state"),
    )


def _up(place: _Place, workers: int) -> subprocess.Popen[bytes]:
    return _start(
        *("cluster", "up", place.pipeline, "--source", place.source, "--free-ports"),
        *(flag for sink in place.sinks for flag in ("--sink", sink)),
        *("--dir", f"{place.folder}/state", "--workers", str(workers)),
    )


def _start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "ripple.cli.main", *arguments],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "RIPPLE_COMMIT_INTERVAL_MS": "100"},
    )
