"""Lives of one partition of a VWAP pipeline on a simulated disk."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import ripple as rp
from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.files.text.file import FileSink
from ripple.connectors.files.text.sink import TextFormat
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.log.sink import LogSink, schema_of_output, topic_for
from ripple.connectors.record_shape import RecordShape
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.log import LogSettings, PartitionReader, PartitionWriter, Topic, TopicError
from ripple.storage.store import DiskStore
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.settings import Settings
from ripple.task.spec import TaskContext, TaskSpec
from ripple.testing import SimWorld
from tests.records import Fill

SECOND_NS = 10**9
SETTINGS = Settings(batch_rows=4, replay_rows=7, commit_batches=2, checkpoint_batches=3)


PLAN = (
    rp.Pipeline("vwap")
    .source("trades", Fill)
    .partition("by-symbol", key="symbol")
    .window("10s", rp.Tumbling("10s"), lateness="5s")
    .fold("vwap", vwap=rp.vwap("price", "size"), trades=rp.count())
    .partition("all", key=())
    .fold("sum", windows=rp.count())
    .sink("out", of="vwap")
    .sink("total", of="sum")
).plan()
ROWS = [
    {
        "symbol": "ABC"[i % 3],
        "price": 10.0 + i * 0.1,
        "size": 1 + i % 4,
        "timestamp_ns": (i - (3 if i % 7 == 3 else 0)) * SECOND_NS,
    }
    for i in range(40)
]


def append(world: SimWorld, rows: list[dict[str, object]] = ROWS) -> None:
    """Append what is not there yet of ``rows``."""
    try:
        topic = Topic.open(world.disk, "trades")
    except TopicError:
        settings = LogSettings(sync_appends=0)
        topic = Topic.create(world.disk, "trades", PLAN.source.schema, settings=settings)
    with PartitionWriter(topic, 0, world.clock) as writer:
        for first in range(writer.next_offset, len(rows), 7):
            piece = rows[first : first + 7]
            writer.append(
                pa.RecordBatch.from_pylist(piece, RecordShape(topic.schema).arrow_schema())
            )


def outputs(world: SimWorld) -> SinkGroup:
    def open_file() -> FileSink:
        columns = [field.name for field in PLAN.outputs[0].fields]
        owner = Owner(PLAN.name, "out")
        return FileSink(world.disk, "out.csv", TextFormat(), owner, columns, guards=world.guards)

    def open_log() -> LogSink:
        topic = topic_for(world.disk, "totals", schema_of_output(PLAN, PLAN.outputs[1]))
        owner = Owner(PLAN.name, "total")
        return LogSink(topic, 0, world.clock, owner, guards=world.guards)

    return SinkGroup({"out": open_file, "total": open_log})


def life(
    world: SimWorld, settings: Settings = SETTINGS, *, follow: bool = False, **more: Any
) -> PartitionTask[TaskSpec]:
    topic = Topic.open(world.disk, "trades")
    shape, rows = RecordShape(PLAN.source.schema), settings.batch_rows
    inputs = LogInputs(topic, {"trades": 0}, shape, rows, follow=follow)
    state = DurableState(Checkpoints(DiskStore(world.disk, world.random), PLAN.name), world)
    spec, context = TaskSpec(PLAN, inputs, outputs(world)), TaskContext(settings=settings, **more)
    return PartitionTask(spec, state, context)


def written(world: SimWorld) -> tuple[bytes, list[dict[str, object]]]:
    """Return what the outputs hold."""
    with PartitionReader(Topic.open(world.disk, "totals"), 0) as reader:
        totals = [row for entry in reader.read() for row in entry.records.to_pylist()]
    return world.disk.read_bytes("out.csv", length_max=1 << 20), totals
