"""How long a partition pauses while it moves, by plan, from one worker to the other.

Two workers in processes of their own; trades come to every partition all the time, and each changes
a row of the output. Partition after partition is moved to the other worker, some at once, and as
many come back for balance. A pause is the longest time that the output of a partition did not grow,
from when moves were asked for until they were complete; beside it, that of the partitions that
stayed where they were: what commits cost anyway, and two processors that all of this shares.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from bench.row import Row, at_most
from bench.timing import QUICK
from bench.trades import trades, vwap_plan
from coordinator.commands import Command, Move
from coordinator.messages import command_to_bytes, status_from_bytes
from ripple.assignment import worker_of
from ripple.log import LogError, LogSettings, PartitionReader, Topic
from ripple.log.router import TopicWriter
from ripple.rpc.methods import COMMAND, STATUS
from ripple.world import LiveClock, LiveDisk
from ripple.world.control import Channel, ControlError, RefusedError
from ripple.world.live_control import LiveControl

if TYPE_CHECKING:
    from coordinator.status import Status

ROOT = Path(__file__).parents[1]
MOVES = 40 if QUICK else 1000
AT_ONCE = 2
PARTITIONS = 8
SYMBOLS = 2_000
ROWS = 200
EVERY_S = 0.02
COMMIT_MS = 50
LOOK_S = 0.004
ASK_S = 0.1
ASK_WITHIN_S = 40.0
WITHIN_S = 60.0
OUTPUT = "by-symbol"
WORKERS = ("worker-1", "worker-2")


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, _cluster(folder) as coordinator:
        with _Feed(folder), _Watch(folder) as watch:
            watch.wait()
            moved, stayed = asyncio.run(_move_all(coordinator))
            time.sleep(1)
        pauses, still = ([watch.pause(*one) for one in some] for some in (moved, stayed))
    rows = [
        Row(f"pause, {name}", figure, "ms", "those that stay", other, aim)
        for name, figure, other, aim in (
            ("p50", _share(pauses, 50), _share(still, 50), None),
            ("p99", _share(pauses, 99), _share(still, 99), at_most(500)),
            ("longest", max(pauses) * 1e3, max(still) * 1e3, None),
        )
    ]
    last = sorted({one.to_s - one.from_s for one in moved})
    took = Row("from command to completion, p50", last[len(last) // 2], "s")
    return [*rows, took, Row("moves", len(moved), "")]


def _share(seconds: list[float], percent: float) -> float:
    return float(np.percentile(seconds, percent)) * 1e3


@contextmanager
def _cluster(folder: str) -> Iterator[str]:
    """Start two workers over a new topic; give the coordinator's address."""
    settings = LogSettings(sync_appends=0)
    schema = vwap_plan().source.schema
    Topic.create(
        LiveDisk(folder), "trades", schema, partitions=PARTITIONS, key=["symbol"], settings=settings
    )
    said = Path(folder, "said")
    with said.open("w") as stderr:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ripple.cli.main", "cluster", "up"),
                *(str(ROOT / "examples/portfolio.py"), "--source", f"log:{folder}/trades"),
                *(
                    "--sink",
                    f"{OUTPUT}=log:{folder}/{OUTPUT}",
                    "--sink",
                    f"total=log:{folder}/total",
                ),
                *("--dir", f"{folder}/state", "--workers", str(len(WORKERS)), "--free-ports"),
            ],
            cwd=ROOT,
            stderr=stderr,
            env={**os.environ, "RIPPLE_COMMIT_INTERVAL_MS": str(COMMIT_MS)},
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


class _Thread(threading.Thread):
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


class _Feed(_Thread):
    """Appends trades to all partitions, all the time."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._topic = Topic.open(LiveDisk(folder), "trades")

    def run(self) -> None:
        with TopicWriter(self._topic, LiveClock(), holder="bench") as writer:
            at = 0
            while not self.ending.wait(EVERY_S):
                writer.append(trades(ROWS, SYMBOLS, at))
                at += ROWS


class _Watch(_Thread):
    """Notes when the output of each partition grew."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._disk = LiveDisk(folder)
        self.grew_s: list[list[float]] = [[] for _ in range(PARTITIONS)]

    def run(self) -> None:
        ends = [0] * PARTITIONS
        topic = None
        while not self.ending.wait(LOOK_S):
            with suppress(LogError, OSError):
                topic = topic or Topic.open(self._disk, OUTPUT)
                for partition in range(PARTITIONS):
                    with PartitionReader(topic, partition) as reader:
                        end = reader.range()[1]
                    if end > ends[partition]:
                        ends[partition] = end
                        self.grew_s[partition].append(time.monotonic())

    def wait(self) -> None:
        """Wait until all partitions have grown."""
        until_s = time.monotonic() + WITHIN_S
        while not all(self.grew_s):
            assert time.monotonic() < until_s
            time.sleep(LOOK_S)

    def pause(self, partition: int, from_s: float, to_s: float) -> float:
        """Return the longest time without growth that touches a span."""
        grew = np.array(self.grew_s[partition])
        first = max(0, int(np.searchsorted(grew, from_s)) - 1)
        last = int(np.searchsorted(grew, to_s)) + 1
        return float(np.diff(grew[first:last]).max())


class _Span(NamedTuple):
    """What a partition did in a while: it moved, or stayed."""

    partition: int
    from_s: float
    to_s: float


async def _move_all(coordinator: str) -> tuple[list[_Span], list[_Span]]:
    channel = LiveControl().channel(coordinator)
    try:
        return await _Mover(channel).move_all()
    finally:
        await channel.close()


class _Mover:
    """Moves partitions between two workers, as people would command it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def move_all(self) -> tuple[list[_Span], list[_Span]]:
        """Return who has moved, at least MOVES, and who has stayed meanwhile."""
        moved: list[_Span] = []
        stayed: list[_Span] = []
        status = await self._settled()
        for turn in itertools.count():
            before = [(one.owner, one.since) for one in status.owners[:PARTITIONS]]
            from_s = time.monotonic()
            for partition in ((turn * AT_ONCE + each) % PARTITIONS for each in range(AT_ONCE)):
                owner = before[partition][0]
                assert owner is not None
                (other,) = {*WORKERS} - {worker_of(owner)}
                with suppress(RefusedError):  # it goes there already, for balance
                    await self._command(Move(partition, other, "bench"))
            status = await self._settled()
            to_s = time.monotonic()
            after = [(one.owner, one.since) for one in status.owners[:PARTITIONS]]
            for partition in range(PARTITIONS):
                which = stayed if before[partition] == after[partition] else moved
                which.append(_Span(partition, from_s, to_s))
            if len(moved) >= MOVES:
                return moved, stayed
        raise AssertionError

    async def _settled(self) -> Status:
        """Wait until everybody has what is theirs, and nothing is under way."""
        until_s = time.monotonic() + WITHIN_S
        while True:
            with suppress(ControlError):
                data = await self._channel.call(STATUS, b"", deadline_s=ASK_WITHIN_S)
                status = status_from_bytes(data)
                if len(status.members) == len(WORKERS) and not (status.moves or status.unowned):
                    return status
            assert time.monotonic() < until_s
            await asyncio.sleep(ASK_S)

    async def _command(self, command: Command) -> None:
        await self._channel.call(COMMAND, command_to_bytes(command), deadline_s=ASK_WITHIN_S)
