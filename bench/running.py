"""A cluster of two workers that is fed all the time, and what is seen of it from outside."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import numpy as np

from bench.trades import trades, vwap_plan
from coordinator.decisions.status import Status
from coordinator.service.messages import status_from_bytes
from ripple.control.rpc.methods import STATUS
from ripple.storage.log import LogError, LogSettings, PartitionReader, Topic
from ripple.storage.log.router import TopicWriter
from ripple.world import LiveClock, LiveDisk
from ripple.world.control import Channel, ControlError

ROOT = Path(__file__).parents[1]
PARTITIONS = 8
EVERY_S = 0.02
COMMIT_MS = 50
LOOK_S = 0.02
WITHIN_S = 60.0
ASK_S = 0.1
ASK_WITHIN_S = 40.0
PIPELINE = ROOT / "examples/portfolio.py"
OUTPUTS = ("by-symbol", "total")
WORKERS = ("worker-1", "worker-2")


@contextmanager
def running(
    folder: str, pipeline: Path = PIPELINE, outputs: tuple[str, ...] = OUTPUTS
) -> Iterator[str]:
    """Start two workers over a new topic of trades; give the coordinator's address."""
    settings = LogSettings(sync_appends=0)
    schema = vwap_plan().source.schema
    Topic.create(
        LiveDisk(folder), "trades", schema, partitions=PARTITIONS, key=["symbol"], settings=settings
    )
    sinks = {name: f"log:{folder}/{name}" for name in outputs}
    with cluster_up(folder, pipeline, f"log:{folder}/trades", sinks, COMMIT_MS) as coordinator:
        yield coordinator


@contextmanager
def cluster_up(
    folder: str, pipeline: Path, source: str, sinks: Mapping[str, str], commit_ms: int
) -> Iterator[str]:
    """Start two workers from a source to sinks, by output; give the coordinator's address."""
    said = Path(folder, "said")
    with said.open("w") as stderr:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ripple.cli.main", "cluster", "up"),
                *(str(pipeline), "--source", source),
                *(flag for name, sink in sinks.items() for flag in ("--sink", f"{name}={sink}")),
                *("--dir", f"{folder}/state", "--workers", str(len(WORKERS)), "--free-ports"),
            ],
            cwd=ROOT,
            stderr=stderr,
            start_new_session=True,  # Ctrl+C is for the benchmark
            env={**os.environ, "RIPPLE_COMMIT_INTERVAL_MS": str(commit_ms)},
        )
    try:
        until_s = time.monotonic() + WITHIN_S
        while (found := re.search(r"--coordinator (\S+) shows", said.read_text())) is None:
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < until_s, said.read_text()
            time.sleep(0.05)
        yield found[1]
    finally:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        process.kill()


async def settled(channel: Channel) -> Status:
    """Wait until everybody has what is theirs, and nothing is under way; return how it stands."""
    until_s = time.monotonic() + WITHIN_S
    while True:
        with suppress(ControlError):
            data = await channel.call(STATUS, b"", deadline_s=ASK_WITHIN_S)
            status = status_from_bytes(data)
            if len(status.members) == len(WORKERS) and not (status.moves or status.unowned):
                return status
        assert time.monotonic() < until_s
        await asyncio.sleep(ASK_S)


class Plain:
    """A loop of nothing but what a commit asks of the disk, in a process of its own.

    It shows what the machine takes, whoever else is at work: when it began to write, each time.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.wrote_s: list[float] = []

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.plain_commits", f"{self._folder}/plain"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        said, _none = self._process.communicate()
        self.wrote_s = [float(line) for line in said.splitlines()]


class Working(threading.Thread):
    """A thread for as long as a block lasts."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ending = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.join()


class Feed(Working):
    """Appends trades to all partitions, all the time."""

    def __init__(self, folder: str, rows: int, symbols: int) -> None:
        """Append so many rows every EVERY_S, if the machine is fast enough."""
        super().__init__()
        self.appended = 0
        self._rows, self._symbols = rows, symbols
        self._topic = Topic.open(LiveDisk(folder), "trades")

    def run(self) -> None:
        with TopicWriter(self._topic, LiveClock(), holder="bench") as writer:
            due_s = time.monotonic()
            while not self.ending.wait(max(0.0, due_s - time.monotonic())):
                writer.append(trades(self._rows, self._symbols, self.appended))
                self.appended += self._rows
                due_s += EVERY_S


class Watching(Working):
    """Notes when the output of each partition grew."""

    def __init__(self) -> None:
        super().__init__()
        self.grew_s: list[list[float]] = [[] for _ in range(PARTITIONS)]

    def wait(self) -> None:
        """Wait until all partitions have grown."""
        until_s = time.monotonic() + WITHIN_S
        while not all(self.grew_s):
            assert time.monotonic() < until_s
            time.sleep(LOOK_S)

    def pause(self, partition: int, from_s: float, to_s: float) -> float:
        """Return the longest time without growth that touches a span."""
        return pause(self.grew_s[partition], from_s, to_s)


class Watch(Watching):
    """Looks into the log."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._disk = LiveDisk(folder)

    def run(self) -> None:
        readers: list[PartitionReader] = []
        ends = [0] * PARTITIONS
        while not self.ending.wait(LOOK_S):
            with suppress(LogError, OSError):
                topic = Topic.open(self._disk, OUTPUTS[0]) if not readers else readers[0].topic
                readers = readers or [PartitionReader(topic, one) for one in range(PARTITIONS)]
                for partition, reader in enumerate(readers):
                    _, end = reader.range(whole=True)
                    if end > ends[partition]:
                        ends[partition] = end
                        self.grew_s[partition].append(time.monotonic())
        for reader in readers:
            reader.close()


def pause(times_s: list[float], from_s: float, to_s: float) -> float:
    """Return the longest time between two of these times, ascending, that touches a span."""
    # Not all are looked at: whoever asks shares an interpreter with those who feed and watch.
    first = max(0, bisect_left(times_s, from_s) - 1)
    last = bisect_left(times_s, to_s) + 1
    return float(np.diff(times_s[first:last]).max())
