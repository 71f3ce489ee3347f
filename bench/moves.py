"""How long a partition pauses while it moves, by plan, from one worker to the other.

Two workers in processes of their own; trades come to every partition all the time, and each changes
a row of the output. Partition after partition is moved to the other worker, some at once, and as
many come back for balance. A pause is the longest time that the output of a partition did not
grow, from when moves were asked for until they were complete; beside it, that of the partitions
that stayed where they were: what commits cost anyway, and two processors that all of this shares.
What of it is the machine's a plain loop shows, which does nothing but write and sync as often.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench.row import Row, at_most, beside
from bench.running import PARTITIONS, WITHIN_S, WORKERS, Feed, Plain, Watch, pause, running
from bench.timing import QUICK
from coordinator.commands import Command, Move
from coordinator.messages import command_to_bytes, status_from_bytes
from ripple.assignment import worker_of
from ripple.rpc.methods import COMMAND, STATUS
from ripple.world.control import Channel, ControlError, RefusedError
from ripple.world.live_control import LiveControl

if TYPE_CHECKING:
    from coordinator.status import Status

MOVES = 40 if QUICK else 1000
AT_ONCE = 2
SYMBOLS = 2_000
ROWS = 200  # every 20 ms
ASK_S = 0.1
ASK_WITHIN_S = 40.0


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, running(folder) as coordinator:
        with Plain(folder) as plain, Feed(folder, ROWS, SYMBOLS), Watch(folder) as watch:
            watch.wait()
            moved, stayed = asyncio.run(_move_all(coordinator))
            time.sleep(1)
        pauses, still = ([watch.pause(*one) for one in some] for some in (moved, stayed))
        spans = sorted({(one.from_s, one.to_s) for one in moved})
        machine = [pause(plain.wrote_s, *span) for span in spans]
    others = {"those that stay": still, "a plain loop": machine}
    rows = [
        row
        for name, percent, aim in (
            ("p50", 50, None),
            ("p99", 99, at_most(500)),
            ("longest", 100, None),
        )
        for row in beside(
            f"pause, {name}",
            _share(pauses, percent),
            "ms",
            {whose: _share(found, percent) for whose, found in others.items()},
            aim,
        )
    ]
    last = sorted({one.to_s - one.from_s for one in moved})
    took = Row("from command to completion, p50", last[len(last) // 2], "s")
    return [*rows, took, Row("moves", len(moved), "")]


def _share(seconds: list[float], percent: float) -> float:
    return float(np.percentile(seconds, percent)) * 1e3


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
