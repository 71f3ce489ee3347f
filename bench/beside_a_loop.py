"""The longest turn of an event loop beside a run: the processor time between two turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import ripple as rp
from bench.row import Row, at_most
from bench.timing import QUICK
from bench.trades import trades, vwap_plan

KEYS = 1_000
EVENTS = 100_000 if QUICK else 400_000
ROUNDS = 3
TURN_MAX_MS = 10.0


def measure() -> list[Row]:
    plan, records = vwap_plan(windows=True), trades(EVENTS, KEYS).to_pylist()

    async def changes() -> None:
        async for _ in rp.changes(plan, iter(records)):
            pass

    found = []
    ways: dict[str, Callable[[], Awaitable[Any]]] = {
        "rp.arun, a list": lambda: rp.arun(plan, source=records, sink=lambda _: None),
        "rp.changes, an iterator": changes,
    }
    for name, run in ways.items():
        rounds = [asyncio.run(_turns(run)) for _ in range(ROUNDS)]
        least = min(rounds, key=max)
        what = f"longest turn of a loop beside {name} of {EVENTS:,} rows"
        median = sorted(least)[len(least) // 2]
        found.append(Row(what, max(least), "ms", "median turn", median, at_most(TURN_MAX_MS)))
    return found


async def _turns(run: Callable[[], Awaitable[Any]]) -> list[float]:
    """Return the processor time, in ms, of the whole process between turns of a loop."""
    turns: list[float] = []

    async def turn() -> None:
        before_s = time.process_time()
        while True:
            await asyncio.sleep(0.001)
            now_s = time.process_time()
            turns.append((now_s - before_s) * 1e3)
            before_s = now_s

    turning = asyncio.create_task(turn())
    await run()
    turning.cancel()
    return turns
