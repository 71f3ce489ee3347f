"""How late a worker's latest heartbeat is while its code holds Python's lock, or a whole processor.

What a coordinator says of it, asked all the time: for how long it has not heard a worker. A worker
computes in processes of their own, and beats from another one. Beside it what beats there would be
from a thread of the process that computes, as the same call holds it.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from bench import holding
from bench.row import Row, at_most
from bench.running import WITHIN_S, WORKERS, running
from bench.timing import QUICK
from coordinator.decisions.limits import Limits
from coordinator.service.messages import status_from_bytes
from ripple.cli.cluster.starting.reach import Reach
from ripple.control.rpc.methods import STATUS
from ripple.model.pipeline.file import load_plan
from ripple.storage.log import Topic
from ripple.storage.log.router import TopicWriter
from ripple.world import LiveClock, LiveDisk
from ripple.world.control import Channel, ControlError
from ripple.world.live_control import LiveControl
from worker.supervisor.membership import HEARTBEAT_INTERVAL_MS

CALL_S = 5.0 if QUICK else 20.0  # less than a process may say nothing
BUSY_S = 10.0 if QUICK else 120.0
PIECE_S = 2.0  # of the time in Python, one record each
LOOK_S = 0.02
REST_S = 5.0
BEAT_S = HEARTBEAT_INTERVAL_MS / 1000
AIM = at_most(Limits().suspected_after_ms / 1000)


def measure() -> list[Row]:
    pipeline = Path(holding.__file__)
    with tempfile.TemporaryDirectory() as folder, running(folder, pipeline, ("counted",)) as at:
        reach = Reach(
            load_plan(str(pipeline)),
            {"trades": f"log:{folder}/trades"},
            {"counted": f"log:{folder}/counted"},
        )
        with TopicWriter(
            Topic.open(LiveDisk(folder), "trades"), LiveClock(), holder="bench"
        ) as writer:
            rest, call, busy = asyncio.run(_silences(at, _Load(writer, reach)))
    threads = [
        _beats_beside(partial(work, s))
        for work, s in ((holding.in_one_call, CALL_S), (holding.in_python, min(BUSY_S, CALL_S)))
    ]
    return [
        Row("latest beat, at rest", rest, "s"),
        Row(
            f"latest beat, beside one call of some {CALL_S:.0f} s",
            call,
            "s",
            "of a thread",
            threads[0],
            AIM,
        ),
        Row(
            f"latest beat, beside {BUSY_S:.0f} s of Python",
            busy,
            "s",
            "of a thread",
            threads[1],
            AIM,
        ),
    ]


class _Load:
    """Records that hold a worker, and how many of them are done."""

    def __init__(self, writer: TopicWriter, reach: Reach) -> None:
        self._writer, self._reach = writer, reach
        self._appended = 0

    def append(self, how: str, seconds: float) -> None:
        """Let a worker be held for so long."""
        self._appended += 1
        row = {
            "symbol": "A",
            "price": 1.0,
            "size": round(seconds * 1000),
            "timestamp_ns": self._appended,
            "venue": how,
        }
        self._writer.append(pa.RecordBatch.from_pylist([row]))

    @property
    def is_done(self) -> bool:
        """Whether what was appended is committed."""
        return self._reach.look().records >= self._appended


async def _silences(coordinator: str, load: _Load) -> tuple[float, float, float]:
    """Return the longest silence of a worker at rest, beside one long call, and beside Python."""
    channel = LiveControl().channel(coordinator)
    try:
        await _longest(channel, lambda: True, least_s=REST_S)  # all have joined, and worked once
        load.append(holding.PYTHON, 0.0)
        await _longest(channel, lambda: load.is_done)
        rest = await _longest(channel, lambda: True, least_s=REST_S)
        load.append(holding.CALL, CALL_S)
        call = await _longest(channel, lambda: load.is_done, least_s=CALL_S / 2)
        adding = asyncio.ensure_future(_add(load))
        busy = await _longest(channel, lambda: adding.done() and load.is_done)
        return rest, call, busy
    finally:
        await channel.close()


async def _add(load: _Load) -> None:
    for _ in range(round(BUSY_S / PIECE_S)):
        load.append(holding.PYTHON, PIECE_S)
        await asyncio.sleep(PIECE_S)


async def _longest(channel: Channel, done: Callable[[], bool], least_s: float = 0.0) -> float:
    """Return for how long a worker was silent at most, until ``done``, in seconds."""
    began_s, longest_ms = time.monotonic(), 0
    while True:
        passed_s = time.monotonic() - began_s
        assert passed_s < WITHIN_S + 2 * BUSY_S
        with suppress(ControlError):
            status = status_from_bytes(await channel.call(STATUS, b"", deadline_s=WITHIN_S))
            if len(status.members) == len(WORKERS):
                longest_ms = max(longest_ms, *(one.silent_ms for one in status.members))
                if passed_s >= least_s and await asyncio.to_thread(done):
                    return longest_ms / 1000
        await asyncio.sleep(LOOK_S)


def _beats_beside(work: Callable[[], None]) -> float:
    """Return the longest time between two beats of a thread while this one works."""
    beats_s, ending = [time.monotonic()], threading.Event()

    def beat() -> None:
        while not ending.wait(BEAT_S):
            beats_s.append(time.monotonic())

    thread = threading.Thread(target=beat)
    thread.start()
    time.sleep(2 * BEAT_S)
    work()
    time.sleep(2 * BEAT_S)
    ending.set()
    thread.join()
    return max(later - earlier for earlier, later in pairwise(beats_s))
