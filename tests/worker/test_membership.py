"""Members and coordinators as they are, on simulated machines that die, pause and are cut off."""

from __future__ import annotations

import asyncio

from ripple import events
from ripple.testing import SimCluster
from tests.worker.members import (
    problem_of,
    start,
)
from tests.world.clusters import simulate


async def rest(cluster: SimCluster, seen: object, seconds: int = 120, **of: object) -> None:
    for _ in range(seconds):
        await asyncio.sleep(1)
        if problem_of(seen, **of) is None:  # type: ignore[arg-type]
            return
    raise AssertionError(problem_of(seen, **of))  # type: ignore[arg-type]


def test_workers_join_together_and_share_all_partitions() -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        seen = start(cluster)
        await rest(cluster, seen, 8)
        assert seen.newest is not None
        assert seen.newest.version <= 2, "they are collected"
        assert all(
            [type(one) for one in member.told].count(events.Joined) == 1
            for member in seen.members.values()
        )

    simulate(scenario)
