"""The reading part of the broker port, over its own connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ripple.connectors.kafka.client import KafkaClient
from ripple.connectors.kafka.consumer import KafkaConsumer
from ripple.connectors.kafka.memory import keep_freed

if TYPE_CHECKING:
    from ripple.connectors.kafka.settings import Security
    from ripple.world.broker import TopicPartition


class KafkaReader:
    """Topics as readers see them; the methods of Broker that they need."""

    def __init__(
        self,
        brokers: str,
        security: Security,
        *,
        keeps_ids: bool = True,
        headers: bool = False,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """keeps_ids: see KafkaClient. headers: whether records come with theirs."""
        self._client = KafkaClient(brokers, security, keeps_ids=keeps_ids)
        self._warn = warn
        self._headers = headers

    async def open(self) -> None:
        """Connect. Raises BrokerError."""
        keep_freed()
        await self._client.open()

    async def close(self) -> None:
        """Let go of the connections; closing twice is allowed."""
        await self._client.close()

    async def partitions(self, topic: str) -> int:
        """Return how many a topic has. Raises NoTopicError."""
        return await self._client.partitions(topic)

    async def cluster_id(self) -> str:
        """Return the cluster's id."""
        return await self._client.cluster_id()

    async def is_compacted(self, topic: str) -> bool:
        """Return whether a topic's replaced records are removed."""
        return await self._client.is_compacted(topic)

    def topic_id(self, topic: str) -> str:
        """Return the lasting id of a topic, "" where that is not known."""
        return self._client.topic_id(topic)

    async def earliest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset that may still be there, by partition."""
        return await self._client.earliest(places)

    async def since(
        self, places: Sequence[TopicPartition], time_ms: int
    ) -> dict[TopicPartition, int]:
        """Return the first offset that was written at a time or later, -1 for none."""
        return await self._client.since(places, time_ms)

    async def ends(
        self, places: Sequence[TopicPartition], *, committed: bool = True
    ) -> dict[TopicPartition, int]:
        """Return, by partition, the offset before which a reader sees everything; see Broker."""
        return await self._client.ends(places, committed=committed)

    def consumer(self, *, ahead: bool = True) -> KafkaConsumer:
        """Return a reader, which refuses unreadable records one by one; see Broker."""
        return KafkaConsumer(
            self._client, headers=self._headers, refuses=True, ahead=ahead, warn=self._warn
        )
