"""The world's clocks and chance, live and simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from ripple.testing import sim_world
from ripple.world import World, live_world


@pytest.fixture(params=["live", "simulated"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return live_world(tmp_path / "root") if request.param == "live" else sim_world()


def test_monotonic_clock_never_goes_back(world: World) -> None:
    times = [world.clock.monotonic_ns() for _ in range(1000)]
    assert times == sorted(times)
    assert world.clock.now_ns() > 1_600_000_000_000_000_000


def test_chance_stays_within_its_bounds(world: World) -> None:
    assert {world.random.below(3) for _ in range(200)} == {0, 1, 2}
    assert len(world.random.bytes(9)) == 9
    assert world.random.bytes(0) == b""
    assert world.random.bytes(16) != world.random.bytes(16)


def test_safeguards_are_on_until_switched_off(world: World) -> None:
    assert world.guards("digest_check")
    careless = world.without("digest_check").without("lock")
    assert not careless.guards("digest_check")
    assert not careless.guards("lock")
    assert careless.guards("fence")
    assert world.guards("digest_check")


async def test_sleep_lets_time_pass(tmp_path: Path) -> None:
    clock = live_world(tmp_path).clock
    started = clock.monotonic_ns()
    await clock.sleep(0.01)
    assert clock.monotonic_ns() - started >= 9_000_000
