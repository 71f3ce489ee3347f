"""A worker whose code cannot go on from what is stored says so before anybody hears of it."""

from __future__ import annotations

import asyncio

import pytest

import ripple.aggregate as ra
from ripple.change.adaptation import ChangedPlanError
from ripple.checkpoint import Checkpoints
from ripple.store import MemoryStore
from ripple.testing import sim_world
from tests.change.test_staying import plan_of, states
from worker.identity import check_code


def test_code_is_compared_with_what_is_stored_and_nothing_stored_fits_all() -> None:
    async def run() -> None:
        world, store = sim_world(), MemoryStore()
        before = plan_of()
        await check_code(before, store, divides=False)
        owner = await Checkpoints(store, before.name).claim(world.clock, world.random)
        await owner.write(states(before)[0].snapshot())
        for fits in (before, plan_of(step="renamed"), plan_of(shown=("minutes",))):
            await check_code(fits, store, divides=False)
        with pytest.raises(ChangedPlanError, match="fold 'sums': its key, window or aggregates"):
            await check_code(plan_of(aggregate=ra.max("volume")), store, divides=False)

    asyncio.run(run())
