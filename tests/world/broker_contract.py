"""The contract of brokers; each form of the broker runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import pytest

from ripple.connectors.kafka.single_writer import end_what_hangs
from ripple.world.broker import (
    Broker,
    BrokerError,
    Consumer,
    FencedError,
    NoTopicError,
    OffsetError,
    Record,
    Records,
    TopicPartition,
)
from tests.patience import PATIENCE_S
from tests.run_by import run_by


class Topics(Protocol):
    """What somebody else does to the broker."""

    async def create(self, topic: str, partitions: int) -> None:
        """Make a topic that nobody has used."""
        ...

    async def append(self, place: TopicPartition, records: Sequence[Record]) -> None:
        """Write without a transaction."""
        ...

    async def remove_before(self, place: TopicPartition, offset: int) -> None:
        """Remove what retention would."""
        ...


Main = Callable[[Broker, Topics], Awaitable[Any]]
A, B, OTHER = TopicPartition("in", 0), TopicPartition("in", 1), TopicPartition("out", 0)

in_its_world = run_by(lambda contract, main: contract.run(main), "broker", "topics")


class BrokerContract:
    """Subclasses say how ``main`` runs, with a broker that has no topics ``in`` and ``out``."""

    def run(self, main: Main) -> None:
        raise NotImplementedError

    @in_its_world
    async def test_committed_records_are_read_in_order_and_as_they_are(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 2)
        records = [
            Record(b"k", b"v", 1_700_000_000_000),
            Record(None, b"", 5),
            Record(b"", None, 6),
            Record(b"\x00\xff", b"x" * 10_000, 7, (("h", b"1"), ("h", b""))),
        ]
        producer = await broker.producer("p")
        producer.begin()
        await producer.send(A, Records.of(records[:3]))
        await producer.send(A, Records.of(records[3:]))
        await producer.commit()
        offsets, read = await read_all(broker, A)
        assert read == records
        assert offsets == sorted(offsets)
        # The end lies behind the marker: the next record leaves a hole.
        producer.begin()
        await producer.send(A, Records.of([Record(None, b"next")]))
        await producer.commit()
        offsets, _ = await read_all(broker, A)
        assert offsets[-1] > offsets[-2] + 1

    @in_its_world
    async def test_records_are_read_all_at_once_after_their_commit(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 2)
        await topics.create("out", 1)
        producer = await broker.producer("p")
        producer.begin()
        for place in (A, B, OTHER):
            await producer.send(place, Records.of([Record(None, b"x")]))
        consumer = broker.consumer()
        consumer.assign(dict.fromkeys((A, B, OTHER), 0))
        assert await consumer.read(records_max=10, wait_s=0.5) == {}
        await producer.commit()
        seen = await read_until(consumer, 3)
        assert sorted(seen) == [A, B, OTHER]
        assert {tuple(values) for values in seen.values()} == {(b"x",)}
        await consumer.close()

    @in_its_world
    async def test_aborted_records_are_never_read_and_passed_over(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 1)
        producer = await broker.producer("p")
        for value, ends in ((b"1", True), (b"no", False), (b"2", True), (b"no", False)):
            producer.begin()
            await producer.send(A, Records.of([Record(None, value)] * 2))
            await (producer.commit() if ends else producer.abort())
        _, records = await read_all(broker, A)
        assert [record.value for record in records] == [b"1", b"1", b"2", b"2"]
        consumer = broker.consumer()
        (end,) = (await broker.ends([A])).values()
        position = 0
        consumer.assign({A: 0})
        while position < end:
            position = (await consumer.read(records_max=1, wait_s=PATIENCE_S))[A].next_offset
        assert position == end
        await consumer.close()

    @in_its_world
    async def test_open_transaction_holds_back_what_comes_after_it(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 1)
        await topics.append(A, [Record(None, b"before")])
        slow, quick = await broker.producer("slow"), await broker.producer("quick")
        slow.begin()
        await slow.send(A, Records.of([Record(None, b"slow")]))
        quick.begin()
        await quick.send(A, Records.of([Record(None, b"quick")]))
        await quick.commit()
        await topics.append(A, [Record(None, b"plain")])
        (end,) = (await broker.ends([A])).values()
        assert end == 1
        assert await values(broker, A) == [b"before"]
        await slow.commit()
        assert await values(broker, A) == [b"before", b"slow", b"quick", b"plain"]

    @in_its_world
    async def test_new_producer_fences_those_before_and_ends_what_they_left_open(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 1)
        old = await broker.producer("p")
        beside = await broker.producer("other")
        old.begin()
        await old.send(A, Records.of([Record(None, b"old")]))
        new = await broker.producer("p")
        assert new.epoch > old.epoch
        with pytest.raises(FencedError):
            await old.send(A, Records.of([Record(None, b"old")]))
        with pytest.raises(FencedError):
            await old.commit()
        with pytest.raises(FencedError):
            old.begin()
        for producer in (new, beside):
            producer.begin()
            await producer.send(A, Records.of([Record(None, b"new")]))
            await producer.commit()
        assert await values(broker, A) == [b"new", b"new"]

    @in_its_world
    async def test_prepare_fences_no_producer(self, broker: Broker, topics: Topics) -> None:
        await topics.create("in", 1)
        await broker.prepare("p", None)
        producer = await broker.producer("p")
        producer.begin()
        await producer.send(A, Records.of([Record(None, b"x")]))
        await broker.prepare("p", "readers")
        await producer.commit()
        assert await values(broker, A) == [b"x"]

    @in_its_world
    async def test_fenced_producer_learns_it_at_its_commit(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 1)
        old = await broker.producer("p")
        old.begin()
        await old.send(A, Records.of([Record(None, b"old")]))
        await broker.producer("p")
        with pytest.raises(FencedError):
            await old.commit()
        assert await values(broker, A) == []

    @in_its_world
    async def test_open_transaction_is_decided_by_the_next_producer(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 1)
        for _ in range(3):
            producer = await broker.producer("p")
            (end,) = (await broker.ends([A])).values()
            await topics.append(A, [Record(None, b"seen")])
            (after,) = (await broker.ends([A])).values()
            assert after > end
            producer.begin()
            await producer.send(A, Records.of([Record(None, b"left open")]))
            await producer.close()
        await broker.producer("p")
        assert await values(broker, A) == [b"seen"] * 3

    @in_its_world
    async def test_end_of_all_that_was_written_is_where_the_next_record_lies(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 1)
        producer = await broker.producer("p")
        for turn in range(2):
            written = await broker.ends([A], committed=False)
            assert written == await broker.ends([A])
            producer.begin()
            found = await producer.send_all({A: Records.of([Record(None, b"x")] * 3)})
            assert found == written
            assert await broker.ends([A]) == written
            assert await broker.ends([A], committed=False) == {A: written[A] + 3}
            await producer.abort()
            producer = await broker.producer("p")
            assert await broker.ends([A]) == {A: 4 * (turn + 1)}

    @in_its_world
    async def test_open_transactions_of_another_id_survive_the_end_of_a_hanging_one(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 1)
        other, producer = await broker.producer("other"), await broker.producer("p")
        other.begin()
        await other.send(A, Records.of([Record(None, b"x")]))
        with pytest.raises(BrokerError, match="a transaction is open there"):
            await end_what_hangs(broker, producer, A, [])
        await broker.producer("other")
        end = await end_what_hangs(broker, producer, A, [])
        producer.begin()
        assert await producer.send_all({A: Records.of([Record(None, b"y")])}) == {A: end}

    @in_its_world
    async def test_transaction_without_records_commits_and_aborts(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 1)
        producer = await broker.producer("p")
        producer.begin()
        await producer.commit()
        producer.begin()
        await producer.abort()
        producer.begin()
        await producer.send(A, Records.of([Record(None, b"x")]))
        await producer.commit()
        assert await values(broker, A) == [b"x"]

    @in_its_world
    async def test_transactions_are_begun_and_ended_one_after_the_other(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 1)
        producer = await broker.producer("p")
        for ending in (producer.commit, producer.abort):
            with pytest.raises(RuntimeError):
                await ending()
        with pytest.raises(RuntimeError):
            await producer.send(A, Records.of([Record(None, b"x")]))
        producer.begin()
        with pytest.raises(RuntimeError):
            producer.begin()
        await producer.abort()

    @in_its_world
    async def test_reader_begins_where_it_is_told_and_goes_on_from_there(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 2)
        await topics.append(A, [Record(None, b"a%d" % number) for number in range(10)])
        await topics.append(B, [Record(None, b"b%d" % number) for number in range(10)])
        consumer = broker.consumer()
        consumer.assign({A: 7})
        assert await read_until(consumer, 3) == {A: [b"a7", b"a8", b"a9"]}
        consumer.assign({A: 9, B: 8})
        assert await read_until(consumer, 3) == {A: [b"a9"], B: [b"b8", b"b9"]}
        consumer.assign({B: 0})
        read = await consumer.read(records_max=4, wait_s=PATIENCE_S)
        assert list(read) == [B]
        assert len(read[B].records) <= 4
        assert read[B].next_offset == read[B].offsets[-1] + 1
        consumer.assign({})
        assert await consumer.read(records_max=4, wait_s=0.2) == {}
        await consumer.close()

    @in_its_world
    async def test_reader_is_woken_by_what_comes(self, broker: Broker, topics: Topics) -> None:
        await topics.create("in", 1)
        consumer = broker.consumer()
        consumer.assign({A: 0})
        reading = asyncio.ensure_future(consumer.read(records_max=10, wait_s=2 * PATIENCE_S))
        await asyncio.sleep(0.3)
        assert not reading.done()
        await topics.append(A, [Record(None, b"x")])
        read = await asyncio.wait_for(reading, PATIENCE_S)
        assert [record.value for record in read[A].records] == [b"x"]
        await consumer.close()

    @in_its_world
    async def test_cancelled_read_loses_nothing(self, broker: Broker, topics: Topics) -> None:
        await topics.create("in", 1)
        consumer = broker.consumer()
        consumer.assign({A: 0})
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(consumer.read(records_max=10, wait_s=30), 0.3)
        await topics.append(A, [Record(None, b"x")])
        assert await read_until(consumer, 1) == {A: [b"x"]}
        await consumer.close()

    @in_its_world
    async def test_removed_records_are_an_error_that_tells_where_to_go_on(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 1)
        await topics.append(A, [Record(None, b"%d" % number) for number in range(10)])
        await topics.remove_before(A, 6)
        assert await broker.earliest([A]) == {A: 6}
        assert await broker.ends([A]) == {A: 10}
        consumer = broker.consumer()
        consumer.assign({A: 2})
        with pytest.raises(OffsetError) as caught:
            await consumer.read(records_max=10, wait_s=PATIENCE_S)
        assert caught.value.earliest == 6
        consumer.assign({A: 6})
        assert await read_until(consumer, 4) == {A: [b"6", b"7", b"8", b"9"]}
        await consumer.close()

    @in_its_world
    async def test_offsets_that_a_group_has_read_count_with_the_transaction(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 2)
        await topics.create("out", 1)
        producer = await broker.producer("p")
        assert await broker.read_by("g") == {}
        for offset, ends in ((3, True), (5, False)):
            producer.begin()
            await producer.send(OTHER, Records.of([Record(None, b"x")]))
            await producer.send_offsets("g", {A: offset, B: 0})
            await (producer.commit() if ends else producer.abort())
        assert await broker.read_by("g") == {A: 3, B: 0}
        assert await broker.read_by("other") == {}

    @in_its_world
    async def test_topic_is_made_once(self, broker: Broker) -> None:
        await broker.make("in", 2)
        producer = await broker.producer("p")
        producer.begin()
        await producer.send(B, Records.of([Record(b"k", b"x")]))
        await producer.commit()
        await broker.make("in", 3)
        assert await broker.partitions("in") == 2
        assert await values(broker, B) == [b"x"]

    @in_its_world
    async def test_topics_have_partitions_or_are_not_there(
        self, broker: Broker, topics: Topics
    ) -> None:
        await topics.create("in", 3)
        assert await broker.partitions("in") == 3
        assert await broker.ends([A, B]) == {A: 0, B: 0}
        assert await broker.earliest([A, B]) == {A: 0, B: 0}
        with pytest.raises(NoTopicError):
            await broker.partitions("out")
        producer = await broker.producer("p")
        producer.begin()
        with pytest.raises(NoTopicError):
            await producer.send(OTHER, Records.of([Record(None, b"x")]))
        await producer.abort()


async def read_all(broker: Broker, place: TopicPartition) -> tuple[list[int], list[Record]]:
    """Return offsets and records of all that can be read now."""
    end = (await broker.ends([place]))[place]
    position = (await broker.earliest([place]))[place]
    offsets: list[int] = []
    records: list[Record] = []
    consumer = broker.consumer()
    consumer.assign({place: position})
    while position < end:
        read = (await consumer.read(records_max=3, wait_s=PATIENCE_S))[place]
        offsets += read.offsets.tolist()
        records += read.records
        position = read.next_offset
    await consumer.close()
    return offsets, records


async def values(broker: Broker, place: TopicPartition) -> list[bytes | None]:
    return [record.value for record in (await read_all(broker, place))[1]]


async def read_until(consumer: Consumer, count: int) -> dict[TopicPartition, list[bytes | None]]:
    """Return the values of the next ``count`` records, by partition."""
    seen: dict[TopicPartition, list[bytes | None]] = {}
    while sum(map(len, seen.values())) < count:
        found = await consumer.read(records_max=10, wait_s=PATIENCE_S)
        assert found, f"only {seen}"
        for place, read in found.items():
            seen.setdefault(place, []).extend(record.value for record in read.records)
    return {place: values for place, values in seen.items() if values}
