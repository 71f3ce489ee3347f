"""One snapshot a tick for all who look, and none while nobody does."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

from ripple.client.dashboard.figures import Rates
from ripple.client.dashboard.ticks import HISTORY, Ticks
from ripple.testing import SimWorld
from tests.client.dashboard.counted import Counted
from tests.client.dashboard.simulated import in_a_world


async def look(ticks: Ticks, times: int, pause_s: float = 0.0) -> list[dict[str, Any]]:
    found = []
    async with aclosing(ticks.watch()) as snapshots:
        async for one in snapshots:
            found.append(json.loads(one))
            if len(found) == times:
                break
            await asyncio.sleep(pause_s)
    return found


@in_a_world
async def test_all_who_look_share_each_snapshot(world: SimWorld) -> None:
    shown = Counted()
    ticks = Ticks(shown, world.clock)
    seen = await asyncio.gather(*(look(ticks, 10) for _ in range(20)))
    assert shown.snapshots == 10
    assert all(one == seen[0] for one in seen)
    assert [one["number"] for one in seen[0]] == list(range(1, 11))


@in_a_world
async def test_no_snapshots_without_viewers(world: SimWorld) -> None:
    shown = Counted()
    ticks = Ticks(shown, world.clock)
    await asyncio.sleep(60)
    assert shown.snapshots == 0
    await look(ticks, 3)
    await asyncio.sleep(60)
    assert (shown.snapshots, ticks.viewers) == (3, 0)
    first = (await look(ticks, 1))[0]  # not the one of a minute ago
    assert first["number"] == 4


@in_a_world
async def test_slow_viewer_skips_snapshots_and_delays_no_other(world: SimWorld) -> None:
    ticks = Ticks(Counted(), world.clock)
    slow, fast = await asyncio.gather(look(ticks, 3, pause_s=4.5), look(ticks, 10))
    assert [one["number"] for one in fast] == list(range(1, 11))
    assert len(slow) == 3
    assert slow[2]["number"] - slow[0]["number"] >= 8


@in_a_world
async def test_a_failure_is_shown_and_the_next_tick_tries_again(world: SimWorld) -> None:
    shown = Counted(fails=True)
    ticks = Ticks(shown, world.clock)
    assert (await look(ticks, 2))[1]["error"] == "no numbers today"
    shown.fails = False
    assert "totals" in (await look(ticks, 1))[0]


@in_a_world
async def test_later_viewer_gets_the_bounded_history(world: SimWorld) -> None:
    ticks = Ticks(Counted(), world.clock)
    await look(ticks, HISTORY + 20)
    history: Any = ticks.history
    assert len(history["rows"]) == HISTORY
    at = history["names"].index("rate_in")
    assert [row[at] for row in history["rows"]] == list(range(21, HISTORY + 21))


def test_rates_are_unknown_until_there_are_two_and_begin_anew_with_the_counter() -> None:
    rates, second = Rates(), 10**9
    assert rates.rate("a", 100, second) is None
    assert rates.rate("a", 150, 2 * second) == 50
    assert rates.rate("a", 10, 3 * second) is None  # another process counts now
    assert rates.rate("a", 30, 5 * second) == 10
    assert rates.rate("a", None, 6 * second) is None
    assert rates.rate("a", 30, 7 * second) is None
    rates.turn()
    rates.turn()
    assert rates.rate("a", 40, 8 * second) is None  # it was not asked for in between
