"""The loop of an engine process over its pipe, with faults in its own code."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ripple.control.assignment import Report
from ripple.world import LiveClock
from tests.worker.pipes import Silent
from worker.engine.runtime import Runtime
from worker.engine.serving import serve
from worker.health import TaskHealth
from worker.messages import FROM_ENGINE

ALONE: Any = SimpleNamespace(intake=None)  # a context without partitions


class Broken(Runtime):
    """Cannot say how it is."""

    @property
    def report(self) -> Report:
        raise LookupError("a figure that is not there")


async def test_a_process_that_cannot_say_how_it_is_ends_with_the_reason() -> None:
    runtime = Broken("w/0", ALONE)
    with pytest.raises(LookupError, match="a figure that is not there"):
        await serve(Silent(), runtime, LiveClock(), lambda _: None)


class Standings(Runtime):
    """Has a partition that becomes live at the second look, and stays so."""

    looks = 0

    @property
    def standings(self) -> dict[int, TaskHealth]:
        self.looks += 1
        return {3: TaskHealth(is_live=self.looks > 1)}


class Turning(LiveClock):
    """Time passes at once, until there were enough turns."""

    turns = 0

    async def sleep(self, seconds: float) -> None:
        self.turns += 1
        if self.turns > 8:
            await asyncio.Event().wait()
        await asyncio.sleep(0)


class Hearing(Silent):
    def __init__(self) -> None:
        self.heard: list[bool] = []

    async def write(self, message: bytes) -> None:
        said = FROM_ENGINE.from_bytes(message)
        self.heard.append(dict(said.standings)[3].is_live)


async def test_changes_are_reported_at_once_and_other_reports_every_second_round() -> None:
    async def run() -> list[bool]:
        pipe, clock = Hearing(), Turning()
        runtime = Standings("w/0", ALONE)
        serving = asyncio.ensure_future(serve(pipe, runtime, clock, lambda _: None))
        while clock.turns <= 8:
            await asyncio.sleep(0)
        serving.cancel()
        await asyncio.wait([serving])
        return pipe.heard

    # Looks 1, 3, 5, 7 and 9; and 2, where it has become live.
    assert await asyncio.wait_for(run(), 5) == [False, True, True, True, True, True]


class Spent(Runtime):
    """Has a partition that cannot be tried any more from the second look on."""

    looks = 0
    has_stopped = False

    @property
    def standings(self) -> dict[int, TaskHealth]:
        self.looks += 1
        return {3: TaskHealth(is_spent=self.looks > 1)}

    async def stop(self) -> None:
        self.has_stopped = True


async def test_a_process_ends_where_only_a_new_start_of_it_may_try_again() -> None:
    async def run() -> int:
        return await serve(Silent(), runtime, Turning(), said.append)

    said: list[str] = []
    runtime = Spent("w/0", ALONE)
    assert await asyncio.wait_for(run(), 5) == 1
    assert runtime.has_stopped
    assert said[0].startswith("partition 3 has failed 1024 times")
