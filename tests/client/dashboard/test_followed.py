"""Who has a version of a table is answered when there is another."""

from __future__ import annotations

import asyncio
from typing import Any

from ripple.client.dashboard.outputs import WAITS_S, _Followed
from tests.client.dashboard.simulated import in_a_world


class _Seen:
    """An output of which nothing comes but when a test says so."""

    missing = ()

    def __init__(self) -> None:
        self.there = asyncio.Event()

    async def arrived(self) -> None:
        await self.there.wait()

    def take(self) -> list[Any]:
        self.there.clear()
        return [_Change()]


class _Change:
    since = None


@in_a_world
async def test_an_answer_waits_for_the_next_version_and_no_longer_than_it_may(world: Any) -> None:
    seen = _Seen()
    one = _Followed(seen, world.clock)  # type: ignore[arg-type]
    now_s = asyncio.get_running_loop().time

    async def waited_s(version: str) -> float:
        began_s = now_s()
        await one.newer(version)
        return now_s() - began_s

    assert await waited_s("") == await waited_s("7") == 0
    assert await waited_s("0") == WAITS_S
    asyncio.get_running_loop().call_later(1.5, seen.there.set)
    assert 1.5 <= await waited_s("0") < WAITS_S
    assert await waited_s("0") == 0
    asyncio.get_running_loop().call_later(1.5, one.close)
    assert 1.5 <= await waited_s("1") < WAITS_S
