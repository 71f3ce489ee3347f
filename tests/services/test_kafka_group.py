"""The named faults of transactions, provoked against a real broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiokafka import errors
from aiokafka.protocol.metadata import MetadataRequest

from ripple.connectors.connector import Part
from ripple.connectors.kafka import private_writing as private
from ripple.connectors.kafka.broker import KafkaBroker
from ripple.connectors.kafka.client import KafkaClient
from ripple.connectors.kafka.group import KafkaGroup
from ripple.connectors.kafka.group_partition import GroupPartition
from ripple.connectors.kafka.producer import KafkaProducer
from ripple.connectors.kafka.settings import Security
from ripple.storage.fenced import FencedError
from ripple.world.broker import BrokerError, NoTopicError, TopicPartition, UnknownOutcomeError
from tests.services.kafka import Broker
from tests.services.kafka_numbers import commit_rows, group_of, opened
from tests.services.kafka_reader import read

pytestmark = pytest.mark.services


class Owners:
    """Owners of one partition, each over connections of its own."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self._brokers: list[KafkaBroker] = []

    async def open(self, epoch: int) -> tuple[KafkaGroup, int]:
        """Return the owner of an epoch, and what it has found committed: so many records."""
        broker = KafkaBroker(self.bootstrap, Security())
        self._brokers.append(broker)
        group = group_of(broker, GroupPartition(self.topic, Part(0, 1)), self.topic)
        return group, await opened(group, epoch)

    async def seen(self) -> list[int]:
        """Return which rows a reader of committed records sees."""
        found = await read(self.bootstrap, self.topic)
        rows = [one.value for part in found.values() for one in part]
        return [json.loads(row)["x"] for row in rows if row]

    async def close(self) -> None:
        for broker in self._brokers:
            await broker.close()


async def commit(group: KafkaGroup, number: int) -> None:
    """Write row ``number``, and commit with it that so many records were read."""
    await commit_rows(group, number, range(number, number + 1))


@pytest.fixture
async def owners(broker: Broker, topic: str) -> AsyncIterator[Owners]:
    made = Owners(broker.bootstrap, topic[-60:])
    yield made
    await made.close()


def once(monkeypatch: pytest.MonkeyPatch, error: Exception, *, before: bool) -> None:
    """Let the next commit fail, before it was sent or when it was done."""
    real = KafkaProducer.commit

    async def failing(self: KafkaProducer) -> None:
        monkeypatch.setattr(KafkaProducer, "commit", real)
        if not before:
            await real(self)
        raise error

    monkeypatch.setattr(KafkaProducer, "commit", failing)


async def test_crash_after_send_before_txn_commit(
    owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = await owners.open(1)
    await commit(first, 1)
    once(monkeypatch, RuntimeError("killed"), before=True)
    with pytest.raises(RuntimeError, match="killed"):
        await commit(first, 2)
    second, reached = await owners.open(2)
    assert reached == 1
    await commit(second, 2)
    assert await owners.seen() == [1, 2]


async def test_crash_after_commit_before_checkpoint(
    owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = await owners.open(1)
    once(monkeypatch, RuntimeError("killed"), before=False)
    with pytest.raises(RuntimeError, match="killed"):
        await commit(first, 1)
    second, reached = await owners.open(2)
    assert reached == 1
    await commit(second, 2)
    assert await owners.seen() == [1, 2]


@pytest.mark.parametrize("is_before", [True, False])
async def test_txn_abort_then_reemit(
    owners: Owners, monkeypatch: pytest.MonkeyPatch, is_before: bool
) -> None:
    owner, _ = await owners.open(1)
    await commit(owner, 1)
    error = BrokerError("gone", done=False) if is_before else UnknownOutcomeError("lost")
    once(monkeypatch, error, before=is_before)
    await commit(owner, 2)
    await commit(owner, 3)
    assert await owners.seen() == [1, 2, 3]


async def test_superseded_owner_cannot_refence_producer(owners: Owners) -> None:
    """Also test_zombie_producer_fenced: its producer is, and what it then tries is refused."""

    first, _ = await owners.open(1)
    await commit(first, 1)
    second, _ = await owners.open(2)
    with pytest.raises(FencedError, match="it was replaced"):
        await commit(first, 2)
    await commit(second, 2)
    with pytest.raises(FencedError, match="it was replaced"):
        await owners.open(1)
    await commit(second, 3)
    assert await owners.seen() == [1, 2, 3]


async def test_delayed_end_txn_cannot_tear(owners: Owners, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a fenced producer's transaction comes while the next one's is half written."""

    first, _ = await owners.open(1)
    old = first._producer
    assert isinstance(old, KafkaProducer)
    second, _ = await owners.open(2)
    real, codes = KafkaProducer.commit, []

    async def late(self: KafkaProducer) -> None:
        name = self._named
        node = await self._broker.coordinator(private.TRANSACTIONS, name)
        client = self._broker.open_client
        for commits in (True, False):
            asked = private.end(client, node, name, old._who, commits=commits)
            codes.append(await asked)
        assert await owners.seen() == []
        await real(self)

    monkeypatch.setattr(KafkaProducer, "commit", late)
    await commit(second, 1)
    assert all(codes)
    assert await owners.seen() == [1]


async def test_a_source_that_was_removed_is_named_where_its_offsets_are_noted(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = KafkaBroker(broker.bootstrap, Security())
    try:
        await owner.make(topic, 1)
        producer = await owner.producer(topic)
        producer.begin()
        await producer.send_offsets("g", {TopicPartition(topic, 0): 1})
        monkeypatch.setattr("ripple.connectors.kafka.broker.PATIENCE_S", 0.5)
        with pytest.raises(NoTopicError, match=f"no topic gone-{topic}, of which group 'g'"):
            await producer.send_offsets("g", {TopicPartition(f"gone-{topic}", 0): 1})
    finally:
        await owner.close()


async def test_a_connection_that_the_broker_has_ended_is_closed_before_another_is_made(
    broker: Broker,
) -> None:
    """Its end is read some time before anything acts on it."""

    client = KafkaClient(broker.bootstrap, Security())
    await client.open()
    try:
        node = client.open_client.get_random_node()
        held = await client.open_client._get_conn(node)
        asked = asyncio.ensure_future(held.send(MetadataRequest([])))
        socket = held._writer
        held._reader.feed_eof()
        del held  # nobody but the client knows it
        await client.open_client._get_conn(node)
        assert socket.is_closing()
        with pytest.raises(errors.KafkaConnectionError):
            await asked
    finally:
        await client.close()


async def test_brokers_that_are_gone_are_an_error_of_the_port_at_each_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another error would end the partition, which waits for these."""
    with Broker(tmp_path) as server:
        broker = KafkaBroker(server.bootstrap, Security())
        try:
            await broker.make("there", 1)
            server.kill()
            monkeypatch.setattr("ripple.connectors.kafka.broker.PATIENCE_S", 0.5)
            monkeypatch.setattr("ripple.connectors.kafka.client.PATIENCE_S", 0.5)
            asked: list[Callable[[], Awaitable[object]]] = [
                lambda: broker.make("there", 1),
                lambda: broker.batch_bytes_max("new"),
                lambda: broker.producer("name"),
                lambda: broker.prepare("name", "group"),
                lambda: broker.read_by("group"),
                lambda: broker.remove_before({TopicPartition("there", 0): 1}),
            ]
            for ask in asked:
                with pytest.raises(BrokerError):
                    await ask()
        finally:
            await broker.close()
