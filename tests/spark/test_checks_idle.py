"""Checks of a run in which an input fell silent: they judge records by its markers, or say so."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
from ripple.core.errors import InputError
from ripple.model.pipeline.file import load_plan
from ripple.model.pipeline.input_names import markers_of
from ripple.spark.checkpoint_check import AgainstCheckpoints, checkpoints_at, markers_for
from ripple.spark.crashes import Crashes
from ripple.spark.markers import marked
from ripple.spark.oracle_check import AgainstOracle
from ripple.spark.output_check import AgainstLog
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.starting_point import StartingPoint
from tests.patience import comes
from tests.spark.backfilled import backfilled
from tests.spark.logs import topic_of

PIPELINE = f"{Path(__file__).parents[1]}/services/pipeline_idle.py:pipeline"
SECOND = 1_000_000_000


def found(job: Any) -> Any:
    (packet,) = job.run()
    return packet.about


@pytest.mark.parametrize("is_backfilled", [False, True])
def test_a_run_with_an_idle_input_is_checked_by_its_markers(
    tmp_path: Path, is_backfilled: bool
) -> None:
    state, out = tmp_path / "state", f"log:{tmp_path}/out/sizes"
    plan = load_plan(PIPELINE)
    ticks = [{"symbol": "AB"[at % 2], "size": at, "timestamp_ns": at * SECOND} for at in range(40)]
    place = topic_of(tmp_path, plan, ticks, partitions=1)

    if is_backfilled:
        history = tmp_path / "history.jsonl"
        history.write_text("".join(f"{json.dumps(one)}\n" for one in ticks[:25]))
        receipt = backfilled(PIPELINE, str(history), place, state, 25 * SECOND)
        assert receipt.partitions[0]["inputs"][0]["offset"] == 25

    ended = 15 if is_backfilled else 39  # rows of windows that end without a marker

    async def act() -> dict[str, int]:
        async with rp.Task(plan, source=place, sink=out, checkpoint_dir=state, follow=True) as task:
            running = asyncio.create_task(task.run())
            await comes(lambda: running.done() or task.report.rows_out > ended)
            task.stop()
            return dict((await running).cut or {})

    count = asyncio.run(act())[markers_of(0)]
    assert count > 0
    parcel = Parcel.of(PIPELINE, lambda _: b"", has_markers=True)
    bare = sources_at(place, plan)
    against = f"checkpoints:{state}"
    assert markers_for(None, (out, against)) == str(state)
    sources = marked(bare, str(state), plan)
    (portion,) = sources.portions(plan)
    store, begun = checkpoints_at(against, plan)
    beginning = StartingPoint.of(store, plan.name, begun)
    assert len(beginning.history) == is_backfilled
    jobs: list[Any] = [
        AgainstLog(parcel, sources.shares, "sizes-out", out, 0, beginning=beginning),
        AgainstCheckpoints(parcel, sources.shares, store, "idle", 0, beginning=beginning),
        Crashes(parcel, portion, 5, 1),
        AgainstOracle(parcel, portion, 1000),
    ]
    for job in jobs:
        about = found(job)
        assert not about["differences"]
        assert about["cases"]
    for job in jobs[:2]:
        with pytest.raises(InputError, match=rf"by {count} markers .* were not given: give --mark"):
            found(replace(job, shares=bare.shares))
