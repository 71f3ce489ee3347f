"""What we use of aiokafka beyond its promises is there, and is what it was."""

from __future__ import annotations

import inspect

from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.conn import create_conn
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest

from ripple.kafka import private
from ripple.world.broker import Place

FETCHED = [("t", [(0, 0, 9, 8, 7, [(1, 2)], b"data"), (1, 6, -1, -1, -1, None, None)])]


def parameters(what) -> list[str]:
    return list(inspect.signature(what).parameters)


def test_requests_take_what_they_took() -> None:
    assert parameters(FetchRequest) == [
        *("max_wait_time", "min_bytes", "max_bytes", "isolation_level", "topics", "rack_id")
    ]
    assert parameters(OffsetRequest) == ["replica_id", "isolation_level", "topics"]
    assert parameters(MetadataRequest) == ["topics", "allow_auto_topic_creation"]


def test_clients_have_what_they_had() -> None:
    assert parameters(AIOKafkaClient.send)[:3] == ["self", "node_id", "request"]
    assert parameters(ClusterMetadata.update_metadata) == ["self", "metadata"]
    assert {"client_id", "request_timeout_ms", "ssl_context"} <= {*parameters(create_conn)}
    for name in ("bootstrap", "get_random_node", "close", "hosts"):
        assert hasattr(AIOKafkaClient, name), name


def test_answers_of_every_version_say_the_same() -> None:
    import asyncio

    for version in (4, 5, 7, 11):
        parts = [
            tuple(part[:4]) + (part[4:] if version > 4 else part[5:]) for part in FETCHED[0][1]
        ]
        if version == 11:
            parts = [(*part[:-1], -1, part[-1]) for part in parts]
        # The names and their order are aiokafka's own: of the response that it would give us.

        response_type = next(
            kind for kind in _versions(FetchRequest) if version == kind.API_VERSION
        ).RESPONSE_TYPE
        topics = response_type.SCHEMA.fields[-1]
        assert len(topics.array_of.fields[1].array_of.fields) == len(parts[0])

        class Client:
            async def send(self, node, asked, response_type=response_type, parts=parts):
                assert (node, asked.topics) == (7, [("t", [(0, 5, 100)])])
                head = [0] * (len(response_type.SCHEMA.fields) - 1)
                return response_type(*head, [("t", parts)])

        found = asyncio.run(
            private.fetch(
                Client(), 7, {Place("t", 0): 5}, wait_ms=1, bytes_max=1, partition_bytes_max=100
            )
        )
        assert found == [
            private.Fetched("t", 0, 0, 8, [(1, 2)], b"data"),
            private.Fetched("t", 1, 6, -1, (), b""),
        ]


def _versions(request) -> list:
    import aiokafka.protocol.fetch as module

    return [getattr(module, f"FetchRequest_v{number}") for number in range(12)]
