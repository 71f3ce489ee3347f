"""Reading from a real broker fulfils the contract of the port."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ripple.connectors.kafka.client import KafkaClient
from ripple.connectors.kafka.consumer import KafkaConsumer
from ripple.connectors.kafka.settings import Security
from ripple.world.broker import TopicPartition
from tests.patience import PATIENCE_S
from tests.services.kafka import Broker
from tests.services.kafka_topics import SlowProducer, Topics
from tests.world.broker_contract import BrokerContract, Main

pytestmark = pytest.mark.services


class Reading:
    """A broker whose topics have a prefix, so that tests share it; written by others."""

    def __init__(self, client: KafkaClient, topics: Topics, prefix: str) -> None:
        self._client, self._topics, self._prefix = client, topics, prefix

    async def partitions(self, topic: str) -> int:
        return await self._client.partitions(self._prefix + topic)

    async def earliest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return self._bare(await self._client.earliest(self._full(places)))

    async def ends(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return self._bare(await self._client.ends(self._full(places)))

    async def producer(self, name: str) -> SlowProducer:
        return await self._topics.producer(name)

    def consumer(self, *, ahead: bool = True) -> PrefixedConsumer:
        return PrefixedConsumer(KafkaConsumer(self._client, headers=True, ahead=ahead), self)

    def _full(self, places):
        return [TopicPartition(self._prefix + place.topic, place.partition) for place in places]

    def _bare(self, found):
        cut = len(self._prefix)
        return {
            TopicPartition(place.topic[cut:], place.partition): each
            for place, each in found.items()
        }


class PrefixedConsumer:
    def __init__(self, consumer: KafkaConsumer, broker: Reading) -> None:
        self._consumer, self._broker = consumer, broker

    def assign(self, positions) -> None:
        places = self._broker._full(positions)
        self._consumer.assign(dict(zip(places, positions.values(), strict=True)))

    async def read(self, *, records_max: int, wait_s: float):
        return self._broker._bare(await self._consumer.read(records_max=records_max, wait_s=wait_s))

    async def close(self) -> None:
        await self._consumer.close()


class TestReading:
    """Those of the port's promises that readers rest on."""

    @pytest.fixture(autouse=True)
    def _shared(self, broker: Broker, topic: str) -> None:
        self.bootstrap, self.prefix = broker.bootstrap, f"{topic}-"

    def run(self, main: Main) -> None:
        async def story() -> None:
            client = KafkaClient(self.bootstrap, Security())
            await client.open()
            try:
                async with Topics(self.bootstrap, self.prefix) as topics:
                    await main(Reading(client, topics, self.prefix), topics)
            finally:
                await client.close()

        asyncio.run(asyncio.wait_for(story(), PATIENCE_S))

    test_as_they_are = BrokerContract.test_committed_records_are_read_in_order_and_as_they_are
    test_committed = BrokerContract.test_records_are_read_all_at_once_after_their_commit
    test_aborted = BrokerContract.test_aborted_records_are_never_read_and_passed_over
    test_open = BrokerContract.test_open_transaction_holds_back_what_comes_after_it
    test_begins = BrokerContract.test_reader_begins_where_it_is_told_and_goes_on_from_there
    test_woken = BrokerContract.test_reader_is_woken_by_what_comes
    test_cancelled = BrokerContract.test_cancelled_read_loses_nothing
    test_removed = BrokerContract.test_removed_records_are_an_error_that_tells_where_to_go_on
