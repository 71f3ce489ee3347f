"""The fullest queue decides: warn at 0.6, slow at 0.8, pause at 0.95."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.control.assignment import Backpressure, Level, Report
from ripple.core.errors import LimitError
from ripple.testing import SimWorld, repeat
from worker import messages
from worker.backpressure import Intake, Limits, Pressure, Queue, Thresholds

QUEUES = st.lists(st.builds(Queue, st.sampled_from("abc"), st.integers(0, 150), st.just(100)))


def pressure(*percent: int, before: Pressure | None = None) -> Pressure:
    queues = [Queue(f"queue-{n}", held, 100) for n, held in enumerate(percent)]
    return (before or Pressure()).after(queues)


@pytest.mark.parametrize(
    ("percent", "level", "intake"),
    [
        (0, Level.NORMAL, 1.0),
        (59, Level.NORMAL, 1.0),
        (60, Level.WARN, 1.0),
        (79, Level.WARN, 1.0),
        (80, Level.SLOW, 1.0),
        (86, Level.SLOW, 0.6),
        (94, Level.SLOW, 0.0667),
        (95, Level.PAUSE, 0.0),
        (100, Level.PAUSE, 0.0),
        (140, Level.PAUSE, 0.0),
    ],
)
def test_level_and_intake_follow_from_how_full_it_is(
    percent: int, level: Level, intake: float
) -> None:
    now = pressure(percent)
    assert now.level is level
    assert now.intake == pytest.approx(intake, abs=1e-3)


def test_fullest_queue_is_named() -> None:
    assert pressure(10, 96, 50).queue == "queue-1"
    assert pressure().queue == ""


def test_paused_intake_goes_on_below_the_slow_threshold() -> None:
    paused = pressure(95)
    assert pressure(94, before=paused).level is Level.PAUSE
    assert pressure(80, before=paused).level is Level.PAUSE
    assert pressure(79, before=paused).level is Level.WARN
    assert pressure(94, before=pressure(79, before=paused)).level is Level.SLOW


@given(QUEUES, QUEUES, st.sampled_from(Level))
def test_more_in_a_queue_never_means_less_pressure(
    queues: list[Queue], more: list[Queue], level: Level
) -> None:
    before = Pressure(level)
    less, most = before.after(queues), before.after(queues + more)
    assert less.level <= most.level
    assert less.intake >= most.intake
    assert 0.0 <= less.fill <= most.fill <= 1.0


@pytest.mark.parametrize("values", [(0.0, 0.8, 0.95), (0.8, 0.6, 0.95), (0.6, 0.8, 1.1)])
def test_thresholds_must_rise(values: tuple[float, float, float]) -> None:
    warn, slow, pause = values
    with pytest.raises(LimitError, match="must rise"):
        Thresholds(warn_threshold=warn, slow_threshold=slow, pause_threshold=pause)


def test_a_queue_without_a_limit_is_refused() -> None:
    with pytest.raises(LimitError, match="queue outbox holds 3 of 0"):
        Queue("outbox", 3, 0)


def test_intake_slows_down_pauses_and_comes_back() -> None:
    async def scenario(world: SimWorld, seed: int) -> None:
        said: list[Level] = []
        held, clock = {"outboxes": 0}, world.clock
        intake = Intake(
            clock, limits=Limits(outboxes=100), changed=lambda now: said.append(now.level)
        )
        gate = intake.gate(lambda: held)

        async def batches(percent: int) -> int:
            """Return how many batches of 10 ms are taken in within a second."""
            held["outboxes"] = percent
            began, count = world.loop.time(), 0
            while world.loop.time() - began < 1:
                if await gate.admits():
                    await asyncio.sleep(0.01)
                    count += 1
            return count

        found = {percent: await batches(percent) for percent in (0, 70, 86, 93, 96)}
        assert found[0] in range(98, 102)
        assert found[70] in range(98, 102)
        assert found[86] in range(55, 66)
        assert found[93] in range(10, 17)
        assert found[96] == 0
        assert await batches(85) == 0, "it would stop and start"
        assert await batches(79) > 90
        assert await batches(10) > 90
        assert said == [Level.WARN, Level.SLOW, Level.PAUSE, Level.WARN, Level.NORMAL]
        assert str(Pressure(Level.PAUSE, 0.96, "outboxes", 0.0)) == (
            "outboxes is 96% full: nothing is taken in"
        )
        held["outboxes"] = 100
        gate.close()
        await asyncio.sleep(1)
        assert intake.look() == Pressure(queue="uncommitted")

    done = repeat(scenario, seed=0)
    if done.error is not None:
        raise done.error


def test_worker_reports_the_fullest_queue_of_its_processes() -> None:
    full, empty = Backpressure(Level.SLOW, 0.83, "outboxes"), Backpressure()
    said = Report(backpressure=full)
    assert messages.together({0: Report(backpressure=empty), 1: said}, (0, 0)).backpressure == full
