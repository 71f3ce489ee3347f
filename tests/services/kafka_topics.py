"""What tests do to the topics of a real broker, one record at a time, through aiokafka alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete

from ripple.world.broker import Place, Record, Records

MARKED_S = 0.3  # the broker says that a transaction has ended, and then marks it in the logs


class Topics:
    """Makes topics, and writes to them without transactions and with them.

    ``prefix`` is put before the names of topics, so that tests share a broker.
    """

    def __init__(self, bootstrap: str, prefix: str = "", **security: Any) -> None:
        self._prefix = prefix
        self._given = {"bootstrap_servers": bootstrap, **security}
        self._producers: list[AIOKafkaProducer] = []
        self._plain: AIOKafkaProducer | None = None

    async def __aenter__(self) -> Self:
        self._admin = AIOKafkaAdminClient(**self._given)
        await self._admin.start()
        return self

    async def __aexit__(
        self, *_: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        for producer in self._producers:
            await producer.stop()
        await self._admin.close()

    async def create(self, topic: str, partitions: int, copies: int = 1, **configs: str) -> None:
        """Make a topic that nobody has used."""
        named = NewTopic(self._prefix + topic, partitions, copies, topic_configs=configs)
        answer = await self._admin.create_topics([named])
        assert not answer.topic_errors[0][1], answer

    async def described(self, *topics: str) -> list[int]:
        """Return how many partitions topics have."""
        found = await self._admin.describe_topics([self._prefix + topic for topic in topics])
        return [len(one["partitions"]) for one in found]

    async def delete(self, topic: str) -> None:
        """Remove a topic."""
        await self._admin.delete_topics([self._prefix + topic])

    async def append(self, place: Place, records: Sequence[Record], **how: Any) -> None:
        """Write without a transaction. how: AIOKafkaProducer's."""
        producer = self._plain
        if producer is None or how:
            producer = await self._started(**how)
            self._plain = None if how else producer
        await self._send(producer, place, records)

    async def remove_before(self, place: Place, offset: int) -> None:
        """Remove what retention would."""
        at = TopicPartition(self._prefix + place.topic, place.partition)
        await self._admin.delete_records({at: RecordsToDelete(offset)})

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
        self, producer: AIOKafkaProducer, place: Place, records: Sequence[Record]
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

    def begin(self) -> None:
        self._is_begun = False

    async def send(self, place: Place, records: Records) -> None:
        if not self._is_begun:
            await self._producer.begin_transaction()
            self._is_begun = True
        await self._topics._send(self._producer, place, list(records))

    async def commit(self) -> None:
        if self._is_begun:
            await self._producer.commit_transaction()
            await asyncio.sleep(MARKED_S)

    async def abort(self) -> None:
        if self._is_begun:
            await self._producer.abort_transaction()
            await asyncio.sleep(MARKED_S)

    async def close(self) -> None:
        await self._producer.stop()
