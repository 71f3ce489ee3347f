"""What we use of aiokafka beyond its promises is there, and is what it was."""

from __future__ import annotations

import inspect
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.protocol.admin import SaslAuthenticateResponse_v1
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.protocol.produce import ProduceRequest
from packaging.requirements import Requirement

from ripple.connectors.kafka import private, private_topics, private_writing
from ripple.world.broker import TopicPartition

FETCHED = [("t", [(0, 0, 9, 8, 7, [(1, 2)], b"data"), (1, 6, -1, -1, -1, None, None)])]


PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"
RAISE_THE_CAP = """
To allow a newer minor version of aiokafka: install it, run this file and the Kafka tests of
`make test-services`, compare its sources with what ripple/connectors/kafka/private.py,
private_connecting.py, private_topics.py and private_writing.py use, then raise the upper bound of
aiokafka in pyproject.toml (the extras kafka and dev) and run `make lock`."""


def test_aiokafka_is_capped_below_the_next_minor_version() -> None:
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    found = [Requirement(line) for of in ("kafka", "dev") for line in extras[of]]
    specifiers = [one.specifier for one in found if one.name == "aiokafka"]
    major, minor, *_ = map(int, metadata.version("aiokafka").split("."))
    for specifier in specifiers:
        assert f"{major}.{minor}" in specifier, RAISE_THE_CAP
        assert f"{major}.{minor + 1}" not in specifier, RAISE_THE_CAP
    assert len(specifiers) == 2


def parameters(what) -> list[str]:
    return list(inspect.signature(what).parameters)


def test_arguments_of_requests_are_unchanged() -> None:
    assert parameters(FetchRequest) == [
        *("max_wait_time", "min_bytes", "max_bytes", "isolation_level", "topics", "rack_id")
    ]
    assert parameters(OffsetRequest) == ["replica_id", "isolation_level", "topics"]
    assert parameters(MetadataRequest) == ["topics", "allow_auto_topic_creation"]


def test_attributes_of_clients_are_unchanged() -> None:
    assert parameters(AIOKafkaClient.send)[:3] == ["self", "node_id", "request"]
    assert parameters(ClusterMetadata.update_metadata) == ["self", "metadata"]
    assert {"client_id", "request_timeout_ms", "ssl_context"} <= {*parameters(create_conn)}
    for name in ("bootstrap", "get_random_node", "close", "hosts"):
        assert hasattr(AIOKafkaClient, name), name


def test_constructors_of_clients_and_connections_are_unchanged() -> None:
    asked = {"client_id", "request_timeout_ms", "security_protocol", "on_close", "max_idle_ms"}
    assert asked <= {*parameters(AIOKafkaConnection)}
    assert parameters(AIOKafkaConnection.send) == ["self", "request", "expect_response"]
    assert parameters(AIOKafkaClient._get_conn)[:3] == ["self", "node_id", "group"]
    assert parameters(AIOKafkaClient.ready) == ["self", "node_id", "group"]
    source = inspect.getsource(AIOKafkaClient)
    for name in ("_conns", "_get_conn_lock", "_on_connection_closed", "_connections_max_idle_ms"):
        assert f"self.{name}" in source, name
    assert "self._requests.append(\n            (correlation_id, request_struct, fut)" in (
        inspect.getsource(AIOKafkaConnection)
    )
    assert SaslAuthenticateResponse_v1.SCHEMA.names[-1] == "session_lifetime_ms"


@pytest.mark.parametrize("name", ["id", None])
def test_requests_of_batches_are_the_bytes_that_aiokafka_makes(name) -> None:
    topics = [("t", [(0, b"first"), (7, b"")]), ("another", [(1, bytes(range(256)))])]
    asked = (name, -1, 1000, topics)
    versions = [kind for kind in ProduceRequest._CLASSES if kind.API_VERSION >= 3]
    assert [kind.API_VERSION for kind in versions] == [3, 4, 5, 6, 7]
    for kind in versions:
        ours = private_writing.Produce(*asked).build(kind)
        assert "encode" in vars(ours), "aiokafka's requests have another form: mend ours"
        assert ours.encode() == ProduceRequest(*asked).build(kind).encode()


async def test_answers_of_every_version_say_the_same() -> None:

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

        found = await private.fetch(
            Client(),
            7,
            {TopicPartition("t", 0): 5},
            {},
            wait_ms=1,
            bytes_max=1,
            partition_bytes_max=100,
        )
        assert found == [
            private.Fetched("t", 0, 0, 8, [(1, 2)], b"data"),
            private.Fetched("t", 1, 6, -1, (), b""),
        ]


async def test_topics_are_fetched_by_id_where_brokers_know_ids() -> None:
    mine = bytes(range(16))

    class Client:
        async def send(self, node, asked):
            old = asked.prepare({1: (4, 12)})
            assert (node, old.API_VERSION, old.topics[0][0]) == (7, 11, "t")
            sent = asked.prepare({1: (4, 17)})
            again = type(sent).decode(sent.encode())
            ((topic_id, ((number, _, offset, _, _, size, _),), _),) = again.topics
            assert (topic_id, number, offset, size) == (mine, 0, 5, 100)
            parts = [
                (0, 0, 9, 8, 7, [(1, 2, {})], -1, b"data", {}),
                (1, 6, -1, -1, -1, None, -1, None, {}),
            ]
            answer = sent.RESPONSE_TYPE(0, 0, 0, [(mine, parts, {})], {})
            return sent.RESPONSE_TYPE.decode(answer.encode())

    found = await private.fetch(
        Client(),
        7,
        {TopicPartition("t", 0): 5},
        {"t": mine},
        wait_ms=1,
        bytes_max=1,
        partition_bytes_max=100,
    )
    assert found == [
        private.Fetched("t", 0, 0, 8, [(1, 2)], b"data"),
        private.Fetched("t", 1, 6, -1, [], b""),
    ]


def test_ids_come_with_metadata_which_aiokafka_takes_as_its_own() -> None:
    mine = bytes(range(16))
    asked = private_topics.metadata_with_ids(["t"])
    assert type(asked).decode(asked.encode()).topics == [(bytes(16), "t", {})]
    parts = [(0, 3, 1, 9, [1, 2], [1], [2], {})]
    answer = asked.RESPONSE_TYPE(
        *(0, [(1, "h", 9092, None, {})], "c", 1),
        *([(0, "t", mine, False, parts, -1, {}), (3, "u", bytes(16), False, [], -1, {})], -1, {}),
    )
    older, ids = private_topics.ids_of(asked.RESPONSE_TYPE.decode(answer.encode()))
    assert ids == {"t": mine}
    cluster = ClusterMetadata()
    cluster.update_metadata(older)
    assert cluster.leader_for_partition(KafkaPartition("t", 3)) == 1
    assert private_topics.ids_of(older) == (older, {})


def _versions(request) -> list:
    import aiokafka.protocol.fetch as module

    return [getattr(module, f"FetchRequest_v{number}") for number in range(12)]
