"""One snapshot a tick for all who look, and none while nobody does."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

from ripple.client.dashboard.figures import Rates
from ripple.client.dashboard.history import COARSE, FINE, History
from ripple.client.dashboard.ticks import Ticks
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
async def test_later_viewer_gets_the_history_with_a_gap_where_nobody_looked(
    world: SimWorld,
) -> None:
    ticks = Ticks(Counted(), world.clock)
    await look(ticks, 20)
    await asyncio.sleep(60)
    await look(ticks, 20)
    history: Any = ticks.history
    at = history["names"].index("rate_in")
    assert [row[at] for row in history["rows"]] == [*range(1, 21), None, *range(21, 41)]


def test_history_is_bounded_and_has_half_minutes_before_its_last_ticks() -> None:
    history = History({"rate": False, "lag": True})
    for second in range(FINE + 90):
        history.add(1000 * second, {"rate": second, "lag": second})
    assert history.names == ["time_ms", "rate", "lag"]
    assert [row[0] for row in history.rows[:4]] == [0, 30_000, 60_000, 90_000]
    assert history.rows[1] == [30_000, 44.5, 59]  # the mean, and the greatest
    history.add(10**7, {"rate": None, "lag": 1})
    assert history.rows[-2:] == [[1000 * (FINE + 89) + 1, None, None], [10**7, None, 1]]
    for second in range(10**4, 10**4 + 100 * FINE, 4):
        history.add(10**3 * second, {"rate": 1, "lag": 1})
    assert len(history.rows) <= FINE + COARSE + 1


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
