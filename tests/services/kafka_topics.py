"""Changes of a real broker's topics for tests, one record at a time, through aiokafka alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from ripple.world.broker import Record, Records, TopicPartition
from tests.patience import PAUSE_S


class Topics:
    """Makes topics, and writes to them without transactions and with them.

    ``prefix`` is put before the names of topics, so that tests share a broker.
    """

    def __init__(self, bootstrap: str, prefix: str = "", **security: Any) -> None:
        self._prefix = prefix
        self._given = {"bootstrap_servers": bootstrap, **security}
        self._producers: list[AIOKafkaProducer] = []
        self._plain: AIOKafkaProducer | None = None
        self._consumer: AIOKafkaConsumer | None = None

    async def __aenter__(self) -> Self:
        self._admin = AIOKafkaAdminClient(**self._given)
        await self._admin.start()
        return self

    async def __aexit__(
        self, *_: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        for producer in self._producers:
            await producer.stop()
        if self._consumer is not None:
            await self._consumer.stop()
        await self._admin.close()

    async def create(self, topic: str, partitions: int, copies: int = 1, **configs: str) -> None:
        """Make a topic that nobody has used."""
        named = NewTopic(self._prefix + topic, partitions, copies, topic_configs=configs)
        answer = await self._admin.create_topics([named])
        assert not answer.topic_errors[0][1], answer
        # A broker answers before it has applied the configuration.
        while not configs.items() <= (await self._configs(topic)).items():
            await asyncio.sleep(PAUSE_S)

    async def _configs(self, topic: str) -> dict[str, str]:
        named = ConfigResource(ConfigResourceType.TOPIC, self._prefix + topic)
        [answer] = await self._admin.describe_configs([named])
        return {entry[0]: entry[1] for *_, entries in answer.resources for entry in entries}

    async def described(self, *topics: str) -> list[int]:
        """Return how many partitions topics have."""
        found = await self._admin.describe_topics([self._prefix + topic for topic in topics])
        return [len(one["partitions"]) for one in found]

    async def delete(self, topic: str) -> None:
        """Remove a topic."""
        await self._admin.delete_topics([self._prefix + topic])

    async def append(self, place: TopicPartition, records: Sequence[Record], **how: Any) -> None:
        """Write without a transaction. how: AIOKafkaProducer's."""
        producer = self._plain
        if producer is None or how:
            producer = await self._started(**how)
            self._plain = None if how else producer
        await self._send(producer, place, records)

    async def remove_before(self, place: TopicPartition, offset: int) -> None:
        """Remove what retention would."""
        at = KafkaPartition(self._prefix + place.topic, place.partition)
        await self._admin.delete_records({at: RecordsToDelete(offset)})

    async def written(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where partitions end, with what is of no committed transaction."""
        if self._consumer is None:
            self._consumer = AIOKafkaConsumer(**self._given)
            await self._consumer.start()
        full = [KafkaPartition(self._prefix + one.topic, one.partition) for one in places]
        found = await self._consumer.end_offsets(full)
        return {place: found[one] for place, one in zip(places, full, strict=True)}

    async def producer(self, name: str) -> SlowProducer:
        """Return a producer of transactions."""
        started = await self._started(transactional_id=self._prefix + name)
        return SlowProducer(self, started)

    async def _started(self, **how: Any) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(**self._given, **how)
        await producer.start()
        self._producers.append(producer)
        return producer

    async def _send(
        self, producer: AIOKafkaProducer, place: TopicPartition, records: Sequence[Record]
    ) -> None:
        sent = [
            await producer.send(
                self._prefix + place.topic,
                record.value,
                record.key,
                partition=place.partition,
                timestamp_ms=record.timestamp_ms or None,
                headers=list(record.headers),
            )
            for record in records
        ]
        await producer.flush()
        for each in sent:
            await each


class SlowProducer:
    """Transactions, one record after the other; of the port's promises only what readers need."""

    def __init__(self, topics: Topics, producer: AIOKafkaProducer) -> None:
        self._topics = topics
        self._producer = producer
        self._is_begun = False
        self._places: dict[TopicPartition, None] = {}

    def begin(self) -> None:
        self._is_begun = False
        self._places.clear()

    async def send(self, place: TopicPartition, records: Records) -> None:
        if not self._is_begun:
            await self._producer.begin_transaction()
            self._is_begun = True
        await self._topics._send(self._producer, place, list(records))
        self._places[place] = None

    async def commit(self) -> None:
        await self._end(self._producer.commit_transaction)

    async def abort(self) -> None:
        await self._end(self._producer.abort_transaction)

    async def close(self) -> None:
        await self._producer.stop()

    async def _end(self, end: Callable[[], Awaitable[None]]) -> None:
        if self._is_begun:
            places = list(self._places)
            await marked(end, lambda: self._topics.written(places))


async def marked(
    end: Callable[[], Awaitable[None]],
    written: Callable[[], Awaitable[Mapping[TopicPartition, int]]],
) -> None:
    """End a transaction, and wait until it is marked in the logs that it has written to.

    The broker says that it has ended, and marks it then. written: where these logs end.
    """
    before = await written()
    await end()
    while any(now == before[place] for place, now in (await written()).items()):
        await asyncio.sleep(PAUSE_S)
