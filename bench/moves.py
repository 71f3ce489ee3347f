"""How long a partition pauses while it moves, by plan, from one worker to the other.

Two workers in processes of their own; trades come to every partition all the time, and each changes
a row of the output. Partition after partition is moved to the other worker, some at once, and as
many come back for balance. A pause is the longest time that the output of a partition did not
grow, from when moves were asked for until they were complete; beside it, that of the partitions
that stayed where they were: what commits cost anyway, and two processors that all of this shares.
What of it is the machine's a plain loop shows, which does nothing but write and sync as often.

It says every TELL_S on stderr what it has found so far. Ctrl+C or SIGTERM ends the moves, and the
figures are of those that were made.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench.row import Row, at_most, beside
from bench.running import (
    ASK_WITHIN_S,
    PARTITIONS,
    WORKERS,
    Feed,
    Plain,
    Watch,
    pause,
    running,
    settled,
)
from bench.timing import QUICK
from coordinator.decisions.commands import Command, Move
from coordinator.service.messages import command_to_bytes
from ripple.control.assignment import worker_of
from ripple.control.rpc.methods import COMMAND
from ripple.world.control import Channel, RefusedError
from ripple.world.live_control import LiveControl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.running import Watching

MOVES = 12 if QUICK else 1000
AT_ONCE = 2
SYMBOLS = 2_000
ROWS = 200  # every 20 ms
SHARES = {"p50": 50, "p99": 99, "longest": 100}
TELL_S = 10.0
ENDING = (signal.SIGINT, signal.SIGTERM)


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, running(folder) as coordinator:
        with Plain(folder) as plain, Feed(folder, ROWS, SYMBOLS), Watch(folder) as watch:
            watch.wait()
            moves = move_all(coordinator, watch, MOVES)
        machine = [pause(plain.wrote_s, *span) for span in moves.spans]
    return moves.rows(watch, {"a plain loop": machine})


def _share(seconds: list[float], percent: float) -> float:
    return float(np.percentile(seconds, percent)) * 1e3


class _Span(NamedTuple):
    """What a partition did in a while: it moved, or stayed."""

    partition: int
    from_s: float
    to_s: float


class Moves(NamedTuple):
    """What was done: who has moved, and who has stayed meanwhile."""

    moved: list[_Span]
    stayed: list[_Span]

    @property
    def spans(self) -> list[tuple[float, float]]:
        """When partitions moved."""
        return sorted({(one.from_s, one.to_s) for one in self.moved})

    def rows(self, watch: Watching, others: Mapping[str, list[float]]) -> list[Row]:
        """Return how long the pauses were. others: beside those that stayed, by whose they are."""
        pauses, still = ([watch.pause(*one) for one in some] for some in self)
        rows = [
            row
            for name, percent in SHARES.items()
            for row in beside(
                f"pause, {name}",
                _share(pauses, percent),
                "ms",
                {
                    whose: _share(found, percent)
                    for whose, found in {"those that stay": still, **others}.items()
                },
                at_most(500) if percent == 99 else None,
            )
        ]
        last = sorted({one.to_s - one.from_s for one in self.moved})
        took = Row("from command to completion, p50", last[len(last) // 2], "s")
        return [*rows, took, Row("moves", len(self.moved), "")]


def move_all(coordinator: str, watch: Watching, moves: int) -> Moves:
    """Let so many move, or as many as there is time for until somebody ends it."""
    found = asyncio.run(_move_all(coordinator, watch, moves))
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)  # the figures come
    time.sleep(1)
    return found


async def _move_all(coordinator: str, watch: Watching, moves: int) -> Moves:
    channel = LiveControl().channel(coordinator)
    mover = _Mover(channel, watch, moves)
    moving = asyncio.ensure_future(mover.move_all())
    for number in ENDING:
        asyncio.get_running_loop().add_signal_handler(number, moving.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await moving
    finally:
        await channel.close()
    if not mover.moved:
        sys.exit("bench moves: it was ended before anything had moved")
    return Moves(mover.moved, mover.stayed)


class _Mover:
    """Moves partitions between two workers, as people would command it."""

    def __init__(self, channel: Channel, watch: Watching, moves: int) -> None:
        self._channel = channel
        self._watch = watch
        self._moves = moves
        self._told_s = time.monotonic()
        self.moved: list[_Span] = []
        self.stayed: list[_Span] = []
        self._pauses: list[float] = []  # of those that have moved, as far as was told

    async def move_all(self) -> None:
        """Move until enough have moved; who has stayed meanwhile is noted, too."""
        status = await settled(self._channel)
        for turn in itertools.count():
            before = [(one.owner, one.since) for one in status.owners[:PARTITIONS]]
            from_s = time.monotonic()
            for partition in ((turn * AT_ONCE + each) % PARTITIONS for each in range(AT_ONCE)):
                owner = before[partition][0]
                assert owner is not None
                (other,) = {*WORKERS} - {worker_of(owner)}
                with suppress(RefusedError):  # it goes there already, for balance
                    await self._command(Move(partition, other, "bench"))
            status = await settled(self._channel)
            to_s = time.monotonic()
            after = [(one.owner, one.since) for one in status.owners[:PARTITIONS]]
            for partition in range(PARTITIONS):
                is_same = before[partition] == after[partition]
                which = self.stayed if is_same else self.moved
                which.append(_Span(partition, from_s, to_s))
            if len(self.moved) >= self._moves:
                return
            self._tell()

    def _tell(self) -> None:
        """Say now and then how far it is; the last pauses may not be over yet."""
        now_s = time.monotonic()
        if now_s - self._told_s < TELL_S or not self.moved:
            return
        self._told_s = now_s
        new = self.moved[len(self._pauses) :]
        self._pauses += [self._watch.pause(*one) for one in new]
        figures = ", ".join(
            f"{name} {_share(self._pauses, percent):.0f} ms" for name, percent in SHARES.items()
        )
        done = f"{len(self.moved)} of {self._moves} moves"
        print(f"{done}; pause: {figures}", file=sys.stderr, flush=True)

    async def _command(self, command: Command) -> None:
        await self._channel.call(COMMAND, command_to_bytes(command), deadline_s=ASK_WITHIN_S)
