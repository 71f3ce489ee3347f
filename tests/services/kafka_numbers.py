"""Numbers in a topic, written by owners of partitions that do nothing but commit."""

from __future__ import annotations

import pyarrow as pa

import ripple as rp
from ripple.connectors.contract import Commit
from ripple.connectors.kafka.broker import KafkaBroker
from ripple.connectors.kafka.group import KafkaGroup
from ripple.connectors.kafka.group_partition import GroupPartition
from ripple.connectors.kafka.rows import Rows
from ripple.connectors.kafka.topic_target import TopicTarget
from ripple.core.row_ops import OP, OP_SET
from ripple.world.broker import TopicPartition
from ripple.world.live import LiveClock


@rp.record(version=1)
class Number:
    x: int


PLAN = (
    rp.Pipeline("seen")
    .source("numbers", Number)
    .partition("by-x", key="x")
    .fold("seen", count=rp.count())
    .sink("out")
).plan()


def group_of(
    broker: KafkaBroker, whose: GroupPartition, topic: str, reads: TopicPartition | None = None
) -> KafkaGroup:
    """Return the outputs of a partition. reads: where its numbers are, if brokers have them."""
    return KafkaGroup(
        broker,
        whose,
        {"out": TopicTarget(topic, Rows(PLAN, PLAN.outputs[0], topic))},
        clock=LiveClock(),
        offsets=lambda cut: {} if reads is None else {reads: cut["numbers"]},
    )


async def opened(group: KafkaGroup, epoch: int) -> int:
    """Begin; return how many commits there are."""
    committed = (await group.open(epoch))["out"].committed
    return 0 if committed is None else committed.cut["numbers"]


async def commit_rows(group: KafkaGroup, number: int, keys: range) -> None:
    """Write a row of each key, and commit with them that so many records were read."""
    reached = Commit({"numbers": number}, f"{number:016x}")
    columns = {
        "x": list(keys),
        OP: pa.array([OP_SET] * len(keys), pa.int8()),
        "count": [number] * len(keys),
    }
    group.write("out", pa.record_batch(columns), reached)
    await group.commit({"out": reached})
