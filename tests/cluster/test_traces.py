"""An event is traced through two workers, without changing any row."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ripple.core.tracing import CONTEXTS_MAX
from ripple.model.pipeline.file import load_plan
from ripple.model.schema.columns import records_of
from ripple.storage.log import LogSettings, PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk
from tests.cluster.cluster import Job, cluster
from tests.cluster.settled import settled
from tests.control.telemetry.collector import collecting
from tests.patience import PATIENCE_S

# What is appended first may reach the next stage together with what follows: all are of one batch
# then, and none is beyond those that a batch follows.
PARTITIONS = CONTEXTS_MAX // 2
FILE = Path(__file__).parent / "pipeline_traced.py"


def trace(number: int) -> str:
    return f"{number + 1:032x}"


def parent(number: int) -> str:
    return f"{number + 1:016x}"


def append(folder: Path, sampled: bool) -> None:
    """Append a trade to each partition, each of a trace of its own, or of none."""
    fields = load_plan(str(FILE)).source.fields
    disk, settings = LiveDisk(folder), LogSettings(sync_appends=0)
    if not disk.exists("trades/topic"):
        schema = load_plan(str(FILE)).source.schema
        Topic.create(disk, "trades", schema, partitions=PARTITIONS, settings=settings)
    for number in range(PARTITIONS):
        text = f"00-{trace(number)}-{parent(number)}-01" if sampled else ""
        row = {"symbol": f"s{number}", "size": 4 * number, "at_ns": number, "traceparent": text}
        with PartitionWriter(Topic.open(disk, "trades"), number, LiveClock()) as writer:
            writer.append(records_of([row], fields))


@pytest.mark.services
def test_an_event_is_followed_from_its_record_to_another_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(FILE, tmp_path / "trades", tmp_path / "made", ("out", "by-class"), PARTITIONS)
    append(tmp_path, sampled=False)

    async def live() -> None:
        async with cluster(job, tmp_path / "state", workers=2) as up:
            await settled(up.coordinators, 2)
            await up.caught_up(PATIENCE_S)
            append(tmp_path, sampled=True)
            await up.caught_up(PATIENCE_S)
            traces = [trace(number) for number in range(PARTITIONS)]
            await asyncio.to_thread(collector.wait, traces, 2)

    with collecting() as collector:
        monkeypatch.setenv("RIPPLE_TRACE_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        asyncio.run(live())

    crossed = 0
    for number in range(PARTITIONS):
        first, second = collector.of(trace(number))
        assert (first.name, first.stage, first.parent) == ("stabilize", 0, parent(number))
        assert (second.name, second.stage, second.parent) == ("stabilize", 1, first.id)
        assert first.about["ripple.partition"] == number
        assert (first.about["ripple.rows"], first.about["ripple.rows_out"]) == (1, 1)
        crossed += first.process != second.process
    assert {one.process for one in collector.spans} == {"worker-1/0", "worker-2/0"}
    assert 0 < crossed < PARTITIONS
    begun = {one.trace for one in collector.spans} - {trace(n) for n in range(PARTITIONS)}
    assert begun, "batches without a trace begin some"
    assert job.tables_made() == job.tables_alone(tmp_path)
