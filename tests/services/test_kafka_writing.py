"""The live broker keeps the port's contract, and transactions go as the rules say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ripple.connectors.kafka.broker import KafkaBroker
from ripple.connectors.kafka.producer import KafkaProducer
from ripple.connectors.kafka.settings import Security
from ripple.core.errors import OutputError
from ripple.world.broker import Record, Records, TooLargeError, TopicPartition
from tests.patience import PATIENCE_S, PAUSE_S
from tests.services.kafka import Broker
from tests.services.kafka_topics import Topics, marked
from tests.task.repartition.lane_contract import LaneContract
from tests.world.broker_contract import A, BrokerContract, Main, in_its_world, read_all

pytestmark = pytest.mark.services


class Prefixed:
    """A live broker whose topics, ids and groups have a prefix, so that tests share it."""

    def __init__(self, broker: KafkaBroker, prefix: str) -> None:
        self._broker, self._prefix = broker, prefix

    async def partitions(self, topic: str) -> int:
        return await self._broker.partitions(self._prefix + topic)

    async def make(self, topic: str, partitions: int, **how: bool) -> None:
        await self._broker.make(self._prefix + topic, partitions, **how)

    async def remove_before(self, offsets: Mapping[TopicPartition, int]) -> None:
        full = {self.full(place): offset for place, offset in offsets.items()}
        await self._broker.remove_before(full)

    async def prepare(self, name: str, group: str | None) -> None:
        await self._broker.prepare(self._prefix + name, group and self._prefix + group)

    async def read_by(self, group: str) -> dict[TopicPartition, int]:
        return self.bare(await self._broker.read_by(self._prefix + group))

    async def earliest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return self.bare(await self._broker.earliest([self.full(place) for place in places]))

    async def ends(
        self, places: Sequence[TopicPartition], *, committed: bool = True
    ) -> dict[TopicPartition, int]:
        full = [self.full(place) for place in places]
        return self.bare(await self._broker.ends(full, committed=committed))

    async def producer(self, name: str) -> PrefixedProducer:
        return PrefixedProducer(await self._broker.producer(self._prefix + name), self)

    def consumer(self, *, ahead: bool = True) -> PrefixedConsumer:
        return PrefixedConsumer(self._broker.consumer(ahead=ahead), self)

    async def close(self) -> None:
        await self._broker.close()

    def full(self, place: TopicPartition) -> TopicPartition:
        return TopicPartition(self._prefix + place.topic, place.partition)

    def bare(self, found: Mapping[TopicPartition, Any]) -> dict[TopicPartition, Any]:
        cut = len(self._prefix)
        return {
            TopicPartition(place.topic[cut:], place.partition): each
            for place, each in found.items()
        }

    def named(self, group: str) -> str:
        return self._prefix + group


class PrefixedProducer:
    def __init__(self, producer: KafkaProducer, broker: Prefixed) -> None:
        self._producer, self._broker = producer, broker
        self.close, self.epoch = producer.close, producer.epoch
        self._places: set[TopicPartition] = set()
        self._read: dict[str, Mapping[TopicPartition, int]] = {}

    def begin(self) -> None:
        self._producer.begin()
        self._places.clear()
        self._read.clear()

    async def commit(self) -> None:
        await marked(self._producer.commit, self._written)
        for group, offsets in self._read.items():
            while not offsets.items() <= (await self._broker.read_by(group)).items():
                await asyncio.sleep(PAUSE_S)

    async def abort(self) -> None:
        await marked(self._producer.abort, self._written)

    async def _written(self) -> dict[TopicPartition, int]:
        return await self._broker.ends(list(self._places), committed=False)

    async def send(self, place: TopicPartition, records: Records) -> None:
        await self.send_all({place: records})

    async def send_all(
        self,
        parts: Mapping[TopicPartition, Records],
        offsets: tuple[str, Mapping[TopicPartition, int]] | None = None,
    ) -> dict[TopicPartition, int]:
        full = {self._broker.full(place): records for place, records in parts.items()}
        if offsets is not None:
            group, at = offsets
            self._read[group] = at
            read = {self._broker.full(place): offset for place, offset in at.items()}
            offsets = self._broker.named(group), read
        found = await self._producer.send_all(full, offsets)
        self._places |= parts.keys()
        return self._broker.bare(found)

    async def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        await self.send_all({}, (group, offsets))


class PrefixedConsumer:
    def __init__(self, consumer: Any, broker: Prefixed) -> None:
        self._consumer, self._broker = consumer, broker
        self.close = consumer.close

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self._consumer.assign({self._broker.full(one): at for one, at in positions.items()})

    async def read(self, *, records_max: int, wait_s: float) -> dict[TopicPartition, Any]:
        found = await self._consumer.read(records_max=records_max, wait_s=wait_s)
        return self._broker.bare(found)


class Stories:
    @pytest.fixture(autouse=True)
    def _shared(self, broker: Broker, topic: str) -> None:
        self.bootstrap, self.prefix = broker.bootstrap, f"{topic}-"

    compression: Any = "none"

    def run(self, main: Main) -> None:
        async def story() -> None:
            live = KafkaBroker(self.bootstrap, Security(), compression=self.compression)
            try:
                await live.connected()
                async with Topics(self.bootstrap, self.prefix) as topics:
                    await main(Prefixed(live, self.prefix), topics)
            finally:
                await live.close()

        asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


class TestLiveBroker(Stories, BrokerContract):
    @in_its_world
    async def test_topic_that_somebody_made_and_that_forgets_is_refused(
        self, broker: Any, topics: Topics
    ) -> None:
        await topics.create("in", 2)
        with pytest.raises(OutputError, match=r"policy=delete, so that .*=compact"):
            await broker.make("in", 2, is_compacted=True)
        await topics.create("lanes", 2, **{"retention.ms": "86400000"})
        with pytest.raises(OutputError, match=r"ms=86400000, so that .*ms=-1"):
            await broker.make("lanes", 2, is_kept=True)
        await topics.create("cuts", 2, **{"cleanup.policy": "compact"})
        await broker.make("cuts", 2, is_compacted=True)


class TestLiveLanes(Stories, LaneContract):
    def run_lanes(self, main: Any) -> None:
        async def alone(broker: Any, _: Topics) -> None:
            await main(broker)

        self.run(alone)


class TestWriting(Stories):
    @pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
    def test_more_than_fits_in_a_batch_goes_in_several(self, compression: str) -> None:
        self.compression = compression
        sent = Records.of([Record(b"%d" % n, b"%07d" % n * 40, n) for n in range(20_000)])

        async def main(broker: Any, topics: Topics) -> None:
            await topics.create("in", 1, **{"max.message.bytes": "100000"})
            producer = await broker.producer("p")
            producer.begin()
            await producer.send(A, sent)
            await producer.commit()
            read: list[Record] = []
            consumer = broker.consumer()
            consumer.assign({A: 0})
            while len(read) < len(sent):
                read += (await consumer.read(records_max=50_000, wait_s=PATIENCE_S))[A].records
            await consumer.close()
            assert read == list(sent)

        self.run(main)

    @in_its_world
    async def test_record_that_no_batch_takes_is_named(self, broker: Any, topics: Topics) -> None:
        await topics.create("in", 1, **{"max.message.bytes": "1000"})
        producer = await broker.producer("p")
        producer.begin()
        with pytest.raises(TooLargeError, match=r"key b'k' takes 20\d\d bytes.* up to 1000 "):
            await producer.send(A, Records.of([Record(b"k", b"x" * 2000)]))
        await producer.abort()
        assert (await read_all(broker, A))[0] == []

    @in_its_world
    async def test_plain_producer_writes_without_transactions(
        self, broker: Any, topics: Topics
    ) -> None:
        await topics.create("in", 1)
        producer = await broker._broker.plain_producer()
        for value in (b"a", b"b"):
            await producer.send(broker.full(A), Records.of([Record(b"k", value)]))
        assert [r.value for r in (await read_all(broker, A))[1]] == [b"a", b"b"]
