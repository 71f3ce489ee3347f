"""The requests of producers, undocumented parts of aiokafka.

aiokafka's own producer repeats unanswered requests, the end of a transaction too, which may then
end the next one (KIP-890 is beyond its protocol). Here each request is sent once, and the caller
decides. Errors come back by number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ripple.core.extras import needed
from ripple.world.broker import TopicPartition

with needed("kafka", "a kafka: URI"):
    from aiokafka import errors
    from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
    from aiokafka.protocol.admin import (
        CreateTopicsRequest,
        DeleteRecordsRequest,
        DescribeConfigsRequest,
    )
    from aiokafka.protocol.commit import OffsetFetchRequest
    from aiokafka.protocol.produce import ProduceRequest, ProduceRequest_v3
    from aiokafka.protocol.transaction import (
        AddOffsetsToTxnRequest,
        AddPartitionsToTxnRequest,
        EndTxnRequest,
        InitProducerIdRequest,
        TxnOffsetCommitRequest,
    )
    from aiokafka.protocol.types import Int16, Int32, String

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from ripple.connectors.kafka.batches import ProducerId

    Topics: TypeAlias = Sequence[tuple[str, Sequence[tuple[int, bytes]]]]

ALL_IN_SYNC = -1
WRITE_MS = 10_000  # that a leader waits for the others
TRANSACTIONS, GROUPS = CoordinationType.TRANSACTION, CoordinationType.GROUP
_TOPIC = 2  # the kind of thing that is configured
_DEFAULT = -1
_NOT_ATTEMPTED = 55  # what a partition is told of which another one was refused


class Produce(ProduceRequest):  # type: ignore[misc]  # it has no types
    """A request that copies its batches once into its bytes, and not once per nested level."""

    def build(self, kind: Any) -> Any:
        """Return the request in a version, as aiokafka has it but for how it becomes bytes."""
        made = super().build(kind)
        if kind.SCHEMA is ProduceRequest_v3.SCHEMA:
            made.encode = partial(
                _encoded, self._transactional_id, self._required_acks, self._timeout, self._topics
            )
        return made


def _encoded(name: str | None, acks: int, timeout_ms: int, topics: Topics) -> bytes:
    """Return a request in the form that it has since there are transactions."""
    text = String("utf-8").encode
    found = [text(name), Int16.encode(acks), Int32.encode(timeout_ms), Int32.encode(len(topics))]
    for topic, parts in topics:
        found += [text(topic), Int32.encode(len(parts))]
        for partition, batch in parts:
            found += [Int32.encode(partition), Int32.encode(len(batch)), batch]
    return b"".join(found)


async def coordinator(client: AIOKafkaClient, kind: Any, key: str) -> int:
    """Return the node that answers for an id of transactions, or for a group."""
    return int(await client.coordinator_lookup(kind, key))


async def meet(client: AIOKafkaClient, node: int) -> None:
    """Connect to a node that answers for something, unless that was done."""
    await client.ready(node, group=ConnectionGroup.COORDINATION)


async def begin_producer(
    client: AIOKafkaClient, node: int, name: str | None, timeout_ms: int
) -> tuple[int, int, int]:
    """Fence all before; return an error, and the number and epoch of the new producer."""
    answer = await _send(client, node, InitProducerIdRequest(name, timeout_ms))
    return answer.error_code, answer.producer_id, answer.producer_epoch


async def add_partitions(
    client: AIOKafkaClient, node: int, name: str, who: ProducerId, places: Iterable[TopicPartition]
) -> int:
    """Say that partitions are part of the transaction; return an error."""
    topics: dict[str, list[int]] = {}
    for place in places:
        topics.setdefault(place.topic, []).append(place.partition)
    asked = AddPartitionsToTxnRequest(name, *who, list(topics.items()))
    answer = await _send(client, node, asked)
    return _first_error(answer.errors)


async def add_group(
    client: AIOKafkaClient, node: int, name: str, who: ProducerId, group: str
) -> int:
    """Say that a group's offsets are part of the transaction; return an error."""
    answer = await _send(client, node, AddOffsetsToTxnRequest(name, *who, group))
    return int(answer.error_code)


async def write_offsets(
    client: AIOKafkaClient,
    node: int,
    name: str,
    who: ProducerId,
    offsets: tuple[str, Mapping[TopicPartition, int]],
) -> int:
    """Write a group's offsets as part of the transaction; return an error."""
    group, by_place = offsets
    topics: dict[str, list[tuple[int, int, str]]] = {}
    for place, offset in by_place.items():
        topics.setdefault(place.topic, []).append((place.partition, offset, ""))
    asked = TxnOffsetCommitRequest(name, group, *who, list(topics.items()))
    answer = await _send(client, node, asked)
    return _first_error(answer.errors)


async def end(
    client: AIOKafkaClient, node: int, name: str, who: ProducerId, *, commits: bool
) -> int:
    """End the open transaction; return an error."""
    answer = await _send(client, node, EndTxnRequest(name, *who, commits))
    return int(answer.error_code)


async def write(
    client: AIOKafkaClient,
    node: int,
    name: str | None,
    batches: Mapping[TopicPartition, bytes],
) -> dict[TopicPartition, tuple[int, int]]:
    """Write a batch to each of some partitions; return their errors, and their offsets."""
    topics: dict[str, list[tuple[int, bytes]]] = {}
    for place, batch in batches.items():
        topics.setdefault(place.topic, []).append((place.partition, batch))
    asked = Produce(name, ALL_IN_SYNC, WRITE_MS, list(topics.items()))
    answer = await client.send(node, asked)
    return {
        TopicPartition(topic, partition): (int(code), int(offset))
        for topic, parts in answer.topics
        for partition, code, offset, *_ in parts
    }


async def make_topic(
    client: AIOKafkaClient, node: int, topic: str, partitions: int, configs: Mapping[str, str]
) -> int:
    """Make a topic with as many copies as the brokers make by themselves; return an error."""
    asked: Any = (topic, partitions, _DEFAULT, [], list(configs.items()))
    answer = await client.send(node, CreateTopicsRequest([asked], 15_000, False))
    return int(answer.topic_errors[0][1])


async def remove_records(
    client: AIOKafkaClient, node: int, offsets: Mapping[TopicPartition, int]
) -> int:
    """Delete the records before offsets of partitions that the node leads; return an error."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for place, offset in offsets.items():
        topics.setdefault(place.topic, []).append((place.partition, offset))
    answer = await client.send(node, DeleteRecordsRequest(list(topics.items()), WRITE_MS))
    codes = [code for _, parts, *_ in answer.topics for _, _, code, *_ in parts if code]
    return int(codes[0]) if codes else 0


async def controller(client: AIOKafkaClient) -> int:
    """Return the node that makes topics; any will do where brokers pass it on."""
    found = client.cluster.controller
    node = client.get_random_node() if found is None else found.nodeId
    if node is None:
        raise errors.NodeNotReadyError("no broker is known")
    return int(node)


async def batch_bytes_max(client: AIOKafkaClient, node: int, topic: str) -> int | None:
    """Return how many bytes a batch of a topic may have; None if the broker does not say."""
    found = await configs(client, node, topic, ["max.message.bytes"])
    return int(found["max.message.bytes"]) if found else None


async def configs(
    client: AIOKafkaClient, node: int, topic: str, names: Sequence[str]
) -> dict[str, str]:
    """Return settings of a topic, as far as the broker says them."""
    answer = await client.send(node, DescribeConfigsRequest([(_TOPIC, topic, list(names))]))
    return {
        entry[0]: entry[1]
        for code, _, _, _, entries in answer.resources
        for entry in entries
        if not code and entry[0] in names
    }


async def offsets_of(
    client: AIOKafkaClient, node: int, group: str
) -> tuple[int, dict[tuple[str, int], int]]:
    """Return an error, and by partition how far a group has read."""
    answer = await _send(client, node, OffsetFetchRequest(group, None))
    found = {}
    for topic, parts in answer.topics:
        for partition, offset, _, code in parts:
            if code:
                return int(code), {}
            if offset >= 0:
                found[topic, partition] = int(offset)
    return int(getattr(answer, "error_code", 0)), found


async def _send(client: AIOKafkaClient, node: int, asked: Any) -> Any:
    return await client.send(node, asked, group=ConnectionGroup.COORDINATION)


def _first_error(topics: Sequence[tuple[str, Sequence[tuple[int, int]]]]) -> int:
    """Return the first error of partitions, 0 if there is none; the cause before its effects."""
    codes = [code for _, parts in topics for _, code in parts if code]
    return int(min(codes, key=lambda code: code == _NOT_ATTEMPTED)) if codes else 0
