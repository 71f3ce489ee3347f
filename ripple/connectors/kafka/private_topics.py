"""Requests with topic ids (KIP-516), which aiokafka lacks: of Kafka 2.8 and later.

A name may be another topic's by now, an id never is. Brokers that do not know ids are asked by
name, as aiokafka does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.extras import needed

with needed("kafka", "a kafka: URI"):
    from aiokafka.protocol.api import RequestStruct, Response
    from aiokafka.protocol.metadata import MetadataResponse_v5
    from aiokafka.protocol.types import (
        AbstractType,
        Boolean,
        CompactArray,
        CompactBytes,
        CompactString,
        Int8,
        Int16,
        Int32,
        Int64,
        Schema,
        TaggedFields,
    )

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from io import BytesIO

CONSUMER = -1
NO_ID = bytes(16)
"""Of brokers that give topics none."""

_UNKNOWN = -1  # a leader's epoch, a log's start


class _Id(AbstractType):  # type: ignore[misc]  # it has no types
    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        return data.read(16)


_TEXT = CompactString("utf-8")
_TAGS = ("tags", TaggedFields)
_NUMBERS = CompactArray(Int32)


class FetchById(Response):  # type: ignore[misc]
    """The answer of version 13; as aiokafka's of lower ones, but for ids and tags."""

    API_KEY, API_VERSION = 1, 13
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("session_id", Int32),
        (
            "topics",
            CompactArray(
                ("topic_id", _Id),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("error_code", Int16),
                        ("high_watermark", Int64),
                        ("last_stable_offset", Int64),
                        ("log_start_offset", Int64),
                        (
                            "aborted",
                            CompactArray(("producer_id", Int64), ("first_offset", Int64), _TAGS),
                        ),
                        ("preferred_read_replica", Int32),
                        ("records", CompactBytes),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _FetchById(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY, API_VERSION = 1, 13
    RESPONSE_TYPE = FetchById
    SCHEMA = Schema(
        ("replica_id", Int32),
        ("max_wait_ms", Int32),
        ("min_bytes", Int32),
        ("max_bytes", Int32),
        ("isolation_level", Int8),
        ("session_id", Int32),
        ("session_epoch", Int32),
        (
            "topics",
            CompactArray(
                ("topic_id", _Id),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("current_leader_epoch", Int32),
                        ("fetch_offset", Int64),
                        ("last_fetched_epoch", Int32),
                        ("log_start_offset", Int64),
                        ("max_bytes", Int32),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        ("forgotten", CompactArray(("topic_id", _Id), ("partitions", _NUMBERS), _TAGS)),
        ("rack_id", _TEXT),
        _TAGS,
    )


class _MetadataWithIds(Response):  # type: ignore[misc]
    API_KEY, API_VERSION = 3, 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT), _TAGS
            ),
        ),
        ("cluster_id", _TEXT),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", _TEXT),
                ("topic_id", _Id),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", _NUMBERS),
                        ("isr", _NUMBERS),
                        ("offline_replicas", _NUMBERS),
                        _TAGS,
                    ),
                ),
                ("operations", Int32),
                _TAGS,
            ),
        ),
        ("operations", Int32),
        _TAGS,
    )


class _AskMetadata(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY, API_VERSION = 3, 10
    RESPONSE_TYPE = _MetadataWithIds
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Id), ("topic", _TEXT), _TAGS)),
        ("allow_auto_topic_creation", Boolean),
        ("with_cluster_operations", Boolean),
        ("with_topic_operations", Boolean),
        _TAGS,
    )


class Asked:
    """A request in the newest of two forms that a broker takes."""

    def __init__(self, newer: Any, older: Any) -> None:
        """Take a struct of one version, and a request of aiokafka's in place of it."""
        self._newer, self._older = newer, older

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Any:
        """Return the encoded request; aiokafka calls this."""
        least, most = versions.get(self._newer.API_KEY, (0, 0))
        if least <= self._newer.API_VERSION <= most:
            return self._newer
        return self._older.prepare(versions)


def fetch_by_id(
    wait_ms: int,
    bytes_max: int,
    isolation: int,
    topics: Mapping[bytes, Sequence[tuple[int, int, int]]],
) -> Any:
    """Return a request for records. topics: by id, (partition, offset, bytes_max)."""
    asked: list[tuple[bytes, list[tuple[Any, ...]], dict[int, bytes]]] = [
        (
            one,
            [(number, _UNKNOWN, at, _UNKNOWN, _UNKNOWN, most, {}) for number, at, most in parts],
            {},
        )
        for one, parts in topics.items()
    ]
    whole_session = (0, -1)
    return _FetchById(CONSUMER, wait_ms, 1, bytes_max, isolation, *whole_session, asked, [], "", {})


def metadata_with_ids(topics: Sequence[str]) -> Any:
    """Return a metadata request, which does not create topics."""
    return _AskMetadata([(NO_ID, topic, {}) for topic in topics], False, False, False, {})


def ids_of(answer: Any) -> tuple[Any, dict[str, bytes]]:
    """Return an answer of metadata as aiokafka takes it, and the ids of topics that have one."""
    if answer.API_VERSION != _MetadataWithIds.API_VERSION:
        return answer, {}
    topics, ids = [], {}
    for code, topic, one, is_internal, parts, *_ in answer.topics:
        topics.append((code, topic, is_internal, [(*part[:3], *part[4:7]) for part in parts]))
        if one != NO_ID:
            ids[topic] = one
    brokers = [tuple(broker[:4]) for broker in answer.brokers]
    older = MetadataResponse_v5(
        answer.throttle_time_ms, brokers, answer.cluster_id, answer.controller_id, topics
    )
    return older, ids
