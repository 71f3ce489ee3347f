"""New code removes visible rows of its own partition only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import ripple as rp
from ripple.connectors.connector import Grouping, Part
from ripple.connectors.kafka.group import KafkaGroup
from ripple.connectors.kafka.rows import Rows
from ripple.connectors.kafka.sink_opening import partition_of
from ripple.connectors.kafka.topic_target import TopicTarget
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.record_shape import RecordShape
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.log import PartitionWriter, Topic
from ripple.storage.store import RetryingStore
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.owned_state import Ownership
from ripple.task.spec import TaskContext, TaskSpec
from ripple.world.broker import TopicPartition
from tests.world.clusters import simulated

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan
    from ripple.testing import SimCluster, SimWorld

PARTITIONS = 2
TRADES = [(symbol, f"V{n}", n) for n in range(12) for symbol in ("A", "B")]


@rp.record(version=1)
class Trade:
    symbol: str
    venue: str
    size: int


def plan_of(least: int) -> Plan:
    """Show rows by more fields than divide the source: of a symbol all are in one partition."""
    trades = rp.Pipeline("p").source("trades", Trade, key="symbol")
    rows = trades.partition("by", key=("symbol", "venue")).fold("rows", total=rp.sum("size"))
    return rows.filter("large", rp.col("total") >= least).sink("out").plan()


def write(world: SimWorld) -> None:
    topic = Topic.create(world.disk, "trades", plan_of(0).source.schema, partitions=PARTITIONS)
    schema = RecordShape(topic.schema).arrow_schema()
    for number, symbol in enumerate("AB"):
        rows = [dict(zip(Trade.__annotations__, t, strict=True)) for t in TRADES if t[0] == symbol]
        PartitionWriter(topic, number, world.clock).append(pa.RecordBatch.from_pylist(rows, schema))


async def run(world: SimWorld, plan: Plan, number: int, epoch: int) -> None:
    """Own a partition until its input ends."""
    assert world.broker is not None
    part = Part(number, PARTITIONS)
    group = KafkaGroup(
        world.broker,
        partition_of(Grouping(plan, part)),
        {"out": TopicTarget("out", Rows(plan, plan.output("out"), "out"))},
        clock=world.clock,
    )
    shape = RecordShape(plan.source.schema, plan.source.checks)
    inputs = LogInputs(Topic.open(world.disk, "trades"), {f"trades/{number}": number}, shape, 100)
    store = Checkpoints(RetryingStore(world.store, world.clock, world.random), "p", number)
    state = DurableState(store, world, Ownership(epoch=epoch))
    await PartitionTask(TaskSpec(plan, inputs, group), state, TaskContext()).run()


def shown(cluster: SimCluster) -> set[tuple[str, str]]:
    """Return the keys of the visible rows; asserts that each was removed at most once."""
    found: dict[bytes, Any] = {}
    for number in range(PARTITIONS):
        for record in cluster.broker.committed(TopicPartition("out", number)):
            if record.value is None:
                assert record.key in found, "a remove without a row"
                del found[record.key]
            else:
                found[record.key or b""] = json.loads(record.value)
    return {(row["symbol"], row["venue"]) for row in found.values()}


@simulated
async def test_a_source_is_divided_by_fewer_fields_than_its_fold(cluster: SimCluster) -> None:
    cluster.broker.create("out", PARTITIONS)

    async def main(world: SimWorld) -> None:
        write(world)
        for at, least in enumerate((0, 5, 2)):
            for number in range(PARTITIONS):
                await run(world, plan_of(least), number, 1024 * (at + 1))
                if number:
                    kept = {(symbol, venue) for symbol, venue, size in TRADES if size >= least}
                    assert shown(cluster) == kept

    cluster.host("a").start(main)
    await cluster.host("a").ended()
