"""Restarts of a worker's process, by a simulated clock."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from ripple.control.assignment import Report
from ripple.testing.sim.chance import Chance
from ripple.testing.sim.loop import SimLoop
from ripple.testing.sim.world import SimClock
from ripple.world import LiveClock
from tests.patience import PATIENCE_S
from tests.worker.pipes import Silent
from worker.health import TaskHealth
from worker.messages import FROM_ENGINE, Inspect, report
from worker.pipe import PipeError
from worker.supervisor import slot
from worker.supervisor.slot import Slot

STARTS = 12


class Talk(Silent):
    """What a process says: how its partition stands, and nothing more until it is gone."""

    def __init__(self, health: TaskHealth | None) -> None:
        self._standing = health

    async def read(self) -> bytes | None:
        if self._standing is not None:
            health, self._standing = self._standing, None
            return FROM_ENGINE.to_bytes(report(Report(), {3: health}))
        return await super().read()


class Engine:
    """A process that lives for so long."""

    def __init__(self, lives_s: float, health: TaskHealth | None) -> None:
        self._lives_s = lives_s
        self.pipe = Talk(health)

    async def wait(self) -> str:
        await asyncio.sleep(self._lives_s)
        return "by SIGKILL"

    def dump(self) -> None:
        pass

    def kill(self) -> None:
        pass


def pauses(lives_s: float, health: TaskHealth | None) -> list[float]:
    """Return how long a slot was without a process, between the first STARTS of them."""
    chance = Chance(0)
    loop = SimLoop(chance)
    began_s: list[float] = []

    async def spawn(_slot: int) -> Engine:
        began_s.append(loop.time())
        if len(began_s) == STARTS:
            one.stop()
        return Engine(lives_s, health)

    one = Slot(
        0,
        spawn,
        SimClock(loop, chance),
        hung_after_s=30.0,
        changed=lambda: None,
        exited=lambda _slot, _start, _how, _unable: None,
        say=lambda _line: None,
    )
    try:
        loop.run_until_complete(one.run())
    finally:
        loop.close()
    return [after - before - lives_s for before, after in pairwise(began_s)]


@pytest.mark.parametrize("lives_s", [slot.STEADY_S + 0.1, 3600.0])
@pytest.mark.parametrize("health", [TaskHealth(is_live=True), TaskHealth(behind=2)])
def test_process_that_has_worked_is_followed_at_once_each_time(
    lives_s: float, health: TaskHealth
) -> None:
    assert pauses(lives_s, health) == pytest.approx([slot.PAUSE_MIN_S] * (STARTS - 1), abs=1e-3)


@pytest.mark.parametrize(
    ("lives_s", "health"),
    [(1.0, TaskHealth(is_live=True)), (20.0, TaskHealth()), (20.0, None)],
    ids=["dies at once", "dies as it restores", "dies as it loads"],
)
def test_process_that_cannot_work_is_started_ever_more_rarely(
    lives_s: float, health: TaskHealth | None
) -> None:
    found = pauses(lives_s, health)
    expected = [min(slot.PAUSE_MIN_S * 2**at, slot.PAUSE_MAX_S) for at in range(STARTS - 1)]
    assert found == pytest.approx(expected, abs=1e-3)


class Unsendable(Silent):
    """A pipe that takes no message."""

    async def write(self, message: bytes) -> None:
        raise PipeError("a message is too long")


class Deaf(Engine):
    """A process that lives until it is killed."""

    def __init__(self) -> None:
        super().__init__(0, None)
        self.pipe = Unsendable()  # type: ignore[assignment]
        self._killed = asyncio.Event()

    async def wait(self) -> str:
        await self._killed.wait()
        return "by SIGKILL"

    def kill(self) -> None:
        self._killed.set()


async def test_process_that_cannot_be_sent_a_message_is_killed_and_followed() -> None:
    said: list[str] = []
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def spawn(_slot: int) -> Deaf:
        return Deaf()

    def exited(_slot: int, _start: int, how: str, _unable: bool) -> None:
        if not ended.done():
            ended.set_result(how)

    one = Slot(
        0,
        spawn,
        LiveClock(),
        hung_after_s=30.0,
        changed=lambda: None,
        exited=exited,
        say=said.append,
    )
    one.greeting = lambda: [Inspect()]
    running = asyncio.ensure_future(one.run())
    async with asyncio.timeout(PATIENCE_S):
        assert await ended == "by SIGKILL"
    one.stop()
    await running
    assert "cannot be sent a message: PipeError('a message is too long')" in said[0]
