"""The lanes of all senders to one receiver: what goes wrong with watching them is not lost."""

from __future__ import annotations

import asyncio

import pytest

from ripple.task.repartition.follows import FollowedLanes
from ripple.task.repartition.reading import LogReading
from ripple.testing import sim_world
from tests.task.repartition.sending import Sender, rows_of


class BrokenWatch:
    """Says that nothing can be watched any more."""

    def __init__(self) -> None:
        self.is_closed = False

    async def changed(self) -> None:
        raise OSError("no watches are left")

    def close(self) -> None:
        self.is_closed = True


async def test_lanes_that_cannot_be_watched_any_more_wake_the_partition_and_fail_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, watch = sim_world(), BrokenWatch()
    sender = Sender(world)
    sender.send(3)
    monkeypatch.setattr(type(world.disk), "watch", lambda *_: watch)

    woken = asyncio.Event()
    reading = LogReading(lambda: sender.topic, [0])
    lanes = FollowedLanes(reading, [0], rows_of().schema, woken.set)
    await lanes.find()
    lanes.start()
    woken.clear()
    await woken.wait()
    with pytest.raises(OSError, match="no watches are left"):
        lanes.take()
    await lanes.stop()
    await asyncio.sleep(0)
    assert watch.is_closed
