"""A cluster of real processes, disturbed for half a minute; ``make chaos`` goes on for longer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cluster.chaos import PIPELINES, Plan, disturb, job_of

pytestmark = pytest.mark.services


@pytest.mark.parametrize("name", PIPELINES)
def test_readers_of_the_output_notice_no_disturbance(name: str, tmp_path: Path) -> None:
    plan = Plan(trades=100_000, events=10, seed=1, partitions=6)
    job = job_of(name, tmp_path, plan.partitions)
    done = asyncio.run(disturb(job, plan, tmp_path, lambda _: None))
    assert done.is_same, f"{done}\n" + "\n".join(done.said[-200:])
    assert done.events.total() >= plan.events // 2, done.events
