"""All uses of aiokafka's undocumented parts; a test detects changes of a new version.

Requests are importable and undocumented; responses are tuples by the version that the broker and
aiokafka agreed on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.connectors.kafka.private_topics import (
    Asked,
    FetchById,
    fetch_by_id,
    ids_of,
    metadata_with_ids,
)
from ripple.core.errors import RippleError
from ripple.core.extras import needed

with needed("kafka", "a kafka: URI"):
    from aiokafka import errors
    from aiokafka.client import AIOKafkaClient
    from aiokafka.conn import create_conn
    from aiokafka.protocol.fetch import FetchRequest
    from aiokafka.protocol.metadata import MetadataRequest
    from aiokafka.protocol.offset import OffsetRequest

if TYPE_CHECKING:
    from ripple.world.broker import TopicPartition

CONSUMER = -1  # in the place of a replica's number
COMMITTED = 1  # the isolation level
LATEST, EARLIEST = -1, -2
_NO_ERROR = 0
_FIRST_WITH_TRANSACTIONS = 4

# aiokafka logs its failures, by default to standard error; we raise them.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())


class Fetched(NamedTuple):
    """A broker's answer for a partition.

    stable_end: before it readers see everything. aborted: see ``record_batches.decoded``.
    """

    topic: str
    partition: int
    error: int
    stable_end: int
    aborted: Sequence[tuple[int, int]]
    data: bytes


async def fetch(
    client: AIOKafkaClient,
    node: int,
    wanted: Mapping[TopicPartition, int],
    ids: Mapping[str, bytes],
    *,
    wait_ms: int,
    bytes_max: int,
    partition_bytes_max: int,
) -> list[Fetched]:
    """Return the committed records at offsets, waiting for some if there are none.

    ids: of topics, by name; another topic that has the name by now is not read. Raises aiokafka's
    errors.
    """
    topics: dict[str, list[tuple[int, int, int]]] = {}
    for place, offset in wanted.items():
        topics.setdefault(place.topic, []).append((place.partition, offset, partition_bytes_max))
    asked: Any = FetchRequest(wait_ms, 1, bytes_max, COMMITTED, list(topics.items()))
    if all(topic in ids for topic in topics):
        by_id = {ids[topic]: parts for topic, parts in topics.items()}
        asked = Asked(fetch_by_id(wait_ms, bytes_max, COMMITTED, by_id), asked)
    answer = await client.send(node, asked)
    version = answer.API_VERSION
    if version < _FIRST_WITH_TRANSACTIONS:
        raise errors.IncompatibleBrokerVersion(f"fetches of version {version}")
    if getattr(answer, "error_code", _NO_ERROR):
        raise errors.for_code(answer.error_code)()
    if version == FetchById.API_VERSION:
        names = {ids[topic]: topic for topic in topics}
        return [
            Fetched(
                names[one],
                part[0],
                part[1],
                part[3],
                [(*each[:2],) for each in part[5] or ()],
                part[7] or b"",
            )
            for one, parts, _ in answer.topics
            for part in parts
        ]
    aborted_at = 4 if version == _FIRST_WITH_TRANSACTIONS else 5
    return [
        Fetched(topic, part[0], part[1], part[3], part[aborted_at] or (), part[-1] or b"")
        for topic, parts in answer.topics
        for part in parts
    ]


async def offsets(
    client: AIOKafkaClient, node: int, places: Sequence[TopicPartition], when: int, isolation: int
) -> dict[tuple[str, int], tuple[int, int]]:
    """Return by partition an error and the offset of LATEST, EARLIEST or of a time in ms.

    Raises aiokafka's errors.
    """
    topics: dict[str, list[tuple[int, int]]] = {}
    for place in places:
        topics.setdefault(place.topic, []).append((place.partition, when))
    answer = await client.send(node, OffsetRequest(CONSUMER, isolation, list(topics.items())))
    return {
        (topic, part[0]): (part[1], part[3]) for topic, parts in answer.topics for part in parts
    }


async def metadata(
    client: AIOKafkaClient, topics: Sequence[str]
) -> tuple[dict[str, int], dict[str, bytes]]:
    """Learn where partitions of topics are, which are not made by asking.

    Returns an error by topic, 0 for none, and by topic the id that it has for ever, where it has
    one. Raises aiokafka's errors.
    """
    node = client.get_random_node()
    if node is None:
        raise errors.NodeNotReadyError("no broker is known")
    asked = Asked(metadata_with_ids(topics), MetadataRequest(list(topics), False))
    answer, ids = ids_of(await client.send(node, asked))
    client.cluster.update_metadata(answer)
    return {topic[1]: topic[0] for topic in answer.topics}, ids


async def cluster_id(client: AIOKafkaClient) -> str:
    """Return a cluster's id. Raises aiokafka's errors."""
    node = client.get_random_node()
    if node is None:
        raise errors.NodeNotReadyError("no broker is known")
    answer = await client.send(node, MetadataRequest([], False))
    return str(getattr(answer, "cluster_id", None) or "")


async def why_not(hosts: Sequence[tuple[str, int, Any]], arguments: Mapping[str, Any]) -> str:
    """Return the error of each broker after a failed bootstrap."""
    reasons = []
    spoken = arguments.get("security_protocol", "PLAINTEXT")
    for host, port, _ in hosts:
        try:
            connection = await create_conn(host, port, **arguments)
        except Exception as error:  # of any kind: it is the reason
            reasons.append(f"{host}:{port}: {reason_of(error, spoken)}")
        else:
            connection.close()
            reasons.append(
                f"{host}:{port}: it says nothing of its cluster: is {spoken} what it takes there?"
            )
    return "; ".join(reasons)


def reason_of(error: Exception, spoken: str) -> str:
    """Return an error in words. spoken: how the broker was spoken to."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error.__cause__, RippleError):  # ours, as there is no token
        return str(error.__cause__)
    if isinstance(error, errors.UnsupportedSaslMechanismError):
        return "it takes no SASL by this mechanism"
    if isinstance(error, errors.IllegalSaslStateError):
        return f"it takes no SASL there, as {spoken} has it"
    text = str(error).strip()
    if (isinstance(error, errors.KafkaConnectionError) and text.endswith("closed")) or (
        isinstance(error, ConnectionError) and not text
    ):
        return f"it closed the connection: is {spoken} what it takes there?"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    name = type(error).__name__
    text = text.partition(f"{name}: ")[2] or text  # as some of them begin, after a number
    return f"{name}: {text}" if text else name
