"""Topics to replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ripple.engine.machine import Engine
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.file import load_plan
from ripple.model.pipeline.plan import Plan
from ripple.spark.log_table import open_topic
from ripple.storage.log import LogSettings, PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk

TRADES = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    venue: str
    price: float
    size: int
    t: rp.Timestamp
"""
"""The begin of a pipeline file over ``tests.engine.machine.stage_plans.trades``."""


def topic_of(
    folder: Path,
    plan: Plan,
    events: Sequence[dict[str, Any]],
    *,
    partitions: int,
    key: Sequence[str] = (),
    frame_rows: int = 13,
    source: str | None = None,
) -> str:
    """Write events of a source to a topic, in their order; return its place.

    Without a key they rotate.
    """
    of = plan.source if source is None else next(s for s in plan.sources if s.name == source)
    name = source or "trades"
    rows = pa.RecordBatch.from_pylist(list(events), pa.schema(arrow_fields(of.fields)))
    topic = Topic.create(
        LiveDisk(folder),
        name,
        of.schema,
        partitions=partitions,
        key=key,
        time_field=of.time_field,
        settings=LogSettings(sync_appends=0),
    )
    numbers = (
        partition_numbers(rows, key, partitions).tolist()
        if key
        else [at % partitions for at in range(len(events))]
    )
    for partition in range(partitions):
        own = [at for at, number in enumerate(numbers) if number == partition]
        taken = rows.take(pa.array(own, pa.int64()))
        with PartitionWriter(topic, partition, LiveClock()) as writer:
            for start in range(0, taken.num_rows, frame_rows):
                writer.append(taken.slice(start, frame_rows))
    return f"log:{folder}/{name}"


def append(place: str, file: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write more events of a pipeline's file to a topic that is divided by a key, or not at all."""
    batch = pa.RecordBatch.from_pylist(
        list(rows), pa.schema(arrow_fields(load_plan(file).source.fields))
    )
    topic, _ = open_topic(place)
    numbers = [0] * batch.num_rows
    if topic.partitions > 1:
        numbers = partition_numbers(batch, topic.key, topic.partitions).tolist()
    for partition in range(topic.partitions):
        own = [at for at, number in enumerate(numbers) if number == partition]
        with PartitionWriter(topic, partition, LiveClock()) as writer:
            writer.append(batch.take(pa.array(own, pa.int64())))


def whole_engine(plan: Plan, shares: Sequence[pa.RecordBatch], *, closes: bool = True) -> Engine:
    """Return one engine over all inputs, read side by side."""
    names = [f"{plan.source.name}/{number}" for number in range(len(shares))]
    engine = Engine(plan, inputs=names)
    for at in range(0, max(share.num_rows for share in shares), 7):
        for name, share in zip(names, shares, strict=True):
            part = share.slice(at, 7)
            if part.num_rows:
                engine.apply(name, part, at + part.num_rows)
                engine.stabilize()
    if closes:
        engine.close()
    engine.stabilize()
    return engine
