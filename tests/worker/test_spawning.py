"""Starts of a worker's spares, by a simulated clock."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from ripple.testing import SimWorld
from tests.patience import PATIENCE_S
from tests.worker.pipes import Silent
from tests.world.clusters import in_sim_world
from worker.supervisor import spawning
from worker.supervisor.spawning import SPARES_AFTER_S, Spawner


class Started:
    """A child that hears whatever it is told."""

    is_alive = True
    pipe = Silent()


@in_sim_world
async def test_spare_is_started_in_its_time_however_often_others_die_meanwhile(
    world: SimWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    began_s: list[float] = []

    async def started() -> Started:
        began_s.append(world.loop.time())
        return Started()

    monkeypatch.setattr(spawning, "_started", started)
    spawner = Spawner(lambda _: {}, spares=1)
    for _ in range(8):
        await spawner(0)
        await asyncio.sleep(2)
    await spawner.close()
    assert SPARES_AFTER_S == 5
    # One after 5 s, which who is asked for at 6 s gets, and one so long after that.
    assert began_s == pytest.approx([0, 2, 4, 5, 8, 10, 11, 14], abs=1e-3)


async def test_child_ignores_signals_from_its_first_moment_and_its_parent_does_not(
    capfd: pytest.CaptureFixture[str],
) -> None:
    child = await spawning._started()
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(child.pid, number)  # it has loaded nothing yet
    child.pipe.close()
    async with asyncio.timeout(PATIENCE_S):
        assert await child.wait() == "with exit code 1"  # it received no task
    assert capfd.readouterr().err == ""
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
