"""Sinks of a group wait for the disk beside the loop, and are released whatever happens."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, cast

import pytest

from ripple.connectors import commit_group as group_module
from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.contract import Commit
from ripple.connectors.endings import Endings
from ripple.core.errors import OutputAwayError, OutputError
from ripple.core.events import CommitWaits
from ripple.world.live import LiveExecutor

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ripple.connectors.contract import Sink

WITHIN_S = 10.0


class SlowSink:
    """Does nothing, and that only once it is let."""

    name, records_cut, promise, cut_off_bytes = "slow", True, "", 0
    committed = unfinished = None

    def __init__(self, let: threading.Event) -> None:
        self.let = let
        self.is_closed = False
        self.wait()

    def wait(self) -> None:
        assert self.let.wait(WITHIN_S), "the loop was held up"

    def commit(self, _reached: Commit) -> None:
        self.wait()

    def close(self) -> None:
        self.wait()
        self.is_closed = True


async def beside(work: Awaitable[object], let: threading.Event) -> None:
    """Let work end once the loop has turned."""
    let.clear()
    doing = asyncio.ensure_future(work)
    await asyncio.sleep(0.01)
    let.set()
    await doing


async def test_the_loop_turns_while_a_group_waits_for_its_sinks() -> None:
    let = threading.Event()
    group = SinkGroup({"out": partial(cast("type[Sink]", SlowSink), let)}, LiveExecutor())
    await beside(group.open(1), let)
    await beside(group.commit({"out": Commit({}, "")}), let)
    await beside(group.close(), let)


class AwaySink(SlowSink):
    """Commits once it has been asked four times."""

    asked = 0

    def commit(self, _reached: Commit) -> None:
        self.asked += 1
        if self.asked < 4:
            raise OutputAwayError("no answer")


async def test_a_sink_whose_server_is_away_is_asked_again_and_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_module, "PAUSE_S", 0.001)
    monkeypatch.setattr(group_module, "EMIT_FIRST_S", 0.0)
    told: list[object] = []
    let = threading.Event()
    let.set()

    async def run(*, waits: bool) -> AwaySink:
        sink = AwaySink(let)
        group = SinkGroup({"out": lambda: cast("Sink", sink)}, LiveExecutor(), waits=waits)
        await group.open(1, told.append)
        try:
            await group.commit({"out": Commit({}, "")})
        finally:
            await group.close()
        return sink

    assert (await run(waits=True)).asked == 4
    assert [one.error for one in told if isinstance(one, CommitWaits)] == ["no answer"]
    with pytest.raises(OutputError, match="no answer"):
        await run(waits=False)
    monkeypatch.setattr(group_module, "PATIENCE_S", 0.0)
    with pytest.raises(OutputError, match=r"for 0 s now.*start again once the server answers"):
        await run(waits=True)


async def test_sink_that_opens_while_its_life_is_cancelled_is_closed() -> None:
    opened: list[SlowSink] = []

    let, begun = threading.Event(), threading.Event()

    def open_sink() -> Sink:
        begun.set()
        opened.append(SlowSink(let))
        return cast("Sink", opened[0])

    opening = asyncio.ensure_future(SinkGroup({"out": open_sink}, LiveExecutor()).open(1))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    opening.cancel()
    await asyncio.sleep(0.01)
    let.set()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert opened[0].is_closed


async def test_task_cancelled_while_it_ends_releases_everything() -> None:
    released = []

    async def slow() -> None:
        await asyncio.sleep(WITHIN_S)

    async def life() -> None:
        async with Endings() as endings:
            endings.add(lambda: released.append("lock"))
            endings.add(slow)

    living = asyncio.ensure_future(life())
    await asyncio.sleep(0)
    living.cancel()
    with pytest.raises(asyncio.CancelledError):
        await living
    assert released == ["lock"]
