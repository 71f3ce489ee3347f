"""The simulated broker keeps the contract, and goes wrong as Kafka does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from ripple.testing import (
    Faults,
    SimCluster,
    SimulationError,
    SimWorld,
    explore,
    on_cluster,
    repeat,
)
from ripple.testing.sim.broker import TRANSACTION_SECONDS_MAX, SimBroker
from ripple.world.broker import (
    BrokerError,
    FencedError,
    Record,
    Records,
    TopicPartition,
    UnknownOutcomeError,
)
from tests.examples import EXAMPLES, THINNED
from tests.world.broker_contract import A, B, BrokerContract, Main, read_all, values
from tests.world.clusters import idle, on, simulate, simulated


class SimTopics:
    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker

    async def create(self, topic: str, partitions: int) -> None:
        self._broker.create(topic, partitions)

    async def append(self, place: TopicPartition, records: Sequence[Record]) -> None:
        self._broker.append(place, records)

    async def remove_before(self, place: TopicPartition, offset: int) -> None:
        self._broker.remove_before(place, offset)


class TestSimBroker(BrokerContract):
    def run(self, main: Main) -> None:
        @on_cluster
        async def scenario(cluster: SimCluster, seed: int) -> None:
            async def live(world: SimWorld) -> None:
                await main(world.broker, SimTopics(cluster.broker))

            cluster.host("here").start(live)
            await cluster.host("here").ended()

        for seed in range(5):
            error = repeat(scenario, seed=seed).error
            if error is not None:
                raise error


X = Records.of([Record(None, b"x")])


def test_producer_of_unknown_outcome_is_over_and_the_log_knows() -> None:
    known: set[int] = set()

    async def scenario(kind: str, cluster: SimCluster, seed: int) -> None:
        cluster.broker.create("in", 1)

        async def main(world: SimWorld) -> None:
            producer = await world.broker.producer("p")
            producer.begin()
            await producer.send(A, X)
            with pytest.raises(UnknownOutcomeError):
                await producer.commit()
            for again in (producer.commit, producer.abort, partial(producer.send, A, X)):
                with pytest.raises(UnknownOutcomeError):
                    await again()
            with pytest.raises(UnknownOutcomeError):
                producer.begin()
            await world.broker.producer("p")
            known.add(len((await read_all(world.broker, A))[1]))

        cluster.host("a").start(main)
        await cluster.host("a").ended()

    for kind in ("broker_lost_reply", "broker_unsent"):
        simulate(partial(scenario, kind), plan=f"0.3:{kind}:0")
    assert known == {0, 1}


@simulated
async def test_cancelled_commit_ends_a_producer(cluster: SimCluster) -> None:
    cluster.broker.create("in", 1)

    async def main(world: SimWorld) -> None:
        producer = await world.broker.producer("p")
        producer.begin()
        await producer.send(A, X)
        committing = asyncio.ensure_future(producer.commit())
        await asyncio.sleep(0.0001)
        committing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await committing
        with pytest.raises(UnknownOutcomeError):
            producer.begin()

    cluster.host("a").start(main)
    await cluster.host("a").ended()


def test_send_that_is_refused_leaves_only_to_abort() -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        cluster.broker.create("in", 1)

        async def main(world: SimWorld) -> None:
            producer = await world.broker.producer("p")
            producer.begin()
            await producer.send(A, X)
            with pytest.raises(BrokerError, match="refused"):
                await producer.send(A, X)
            for again in (producer.commit, partial(producer.send, A, X)):
                with pytest.raises(BrokerError, match="only abort"):
                    await again()
            await producer.abort()
            producer.begin()
            await producer.send(A, Records.of([Record(None, b"again")]))
            await producer.commit()
            assert await values(world.broker, A) == [b"again"]

        cluster.host("a").start(main)
        await cluster.host("a").ended()

    simulate(scenario, plan="0.3:broker_refused:0")


@simulated
async def test_late_end_of_one_transaction_ends_the_next_one(cluster: SimCluster) -> None:
    """The flaw itself, of a client that asks again and goes on."""
    broker = cluster.broker
    broker.create("in", 2)
    epoch = broker.begin_producer("p")
    broker.send("p", epoch, A, 0, tuple(X))
    broker.end("p", epoch, commits=True)
    broker.send("p", epoch, A, 1, tuple(X))
    broker.later(1, lambda: broker.end("p", epoch, commits=True))
    await asyncio.sleep(2)
    broker.send("p", epoch, B, 0, tuple(X))
    broker.end("p", epoch, commits=False)
    assert len(broker.committed(A)) == 2
    assert broker.committed(B) == []
    # Fenced, it changes nothing any more.
    broker.send("p", epoch, A, 2, tuple(X))
    broker.later(1, lambda: broker.end("p", epoch, commits=True))
    broker.begin_producer("p")
    await asyncio.sleep(2)
    assert len(broker.committed(A)) == 2


@simulated
async def test_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(
    cluster: SimCluster,
) -> None:
    cluster.broker.create("in", 1)
    a = cluster.host("a")
    broker = a.start(idle).broker
    producer = await on(a, broker.producer("p"))
    producer.begin()
    await on(a, producer.send(A, X))
    a.pause()
    await asyncio.sleep(TRANSACTION_SECONDS_MAX + 1)
    assert cluster.broker.log(A).stable_end == cluster.broker.log(A).end
    a.resume()
    with pytest.raises(FencedError):
        await on(a, producer.commit())
    assert cluster.broker.committed(A) == []


@simulated
async def test_transaction_of_a_dead_process_holds_readers_back_until_it_is_decided(
    cluster: SimCluster,
) -> None:
    cluster.broker.create("in", 1)
    a, b = cluster.host("a"), cluster.host("b")
    producer = await on(a, a.start(idle).broker.producer("p"))
    producer.begin()
    await on(a, producer.send(A, X))
    a.kill()
    cluster.broker.append(A, [Record(None, b"after")])
    broker = b.start(idle).broker
    assert await on(b, broker.ends([A])) == {A: 0}
    await on(b, broker.producer("p"))
    assert await on(b, values(broker, A)) == [b"after"]


@simulated
async def test_broker_out_of_reach_leaves_a_commit_unknown_and_reads_without_effect(
    cluster: SimCluster,
) -> None:
    cluster.broker.create("in", 1)
    a = cluster.host("a")
    broker = a.start(idle).broker
    producer = await on(a, broker.producer("p"))
    producer.begin()
    await on(a, producer.send(A, X))
    cluster.network.cut_one_way("broker", "a")
    with pytest.raises(UnknownOutcomeError):
        await on(a, producer.commit())
    assert len(cluster.broker.committed(A)) == 1
    with pytest.raises(BrokerError) as caught:
        await on(a, broker.ends([A]))
    assert caught.value.done is False
    cluster.heal()
    assert await on(a, values(broker, A)) == [b"x"]


@simulated
async def test_compaction_leaves_holes(cluster: SimCluster) -> None:
    cluster.broker.create("in", 1)
    cluster.broker.append(A, [Record(b"%d" % (n % 3), b"%d" % n) for n in range(10)])
    cluster.broker.compact(A)
    a = cluster.host("a")
    broker = a.start(idle).broker
    offsets, _ = await on(a, read_all(broker, A))
    assert offsets == [7, 8, 9]


LAST = 15
NUMBERS, CUTS = TopicPartition("numbers", 0), TopicPartition("cuts", 0)


async def count(world: SimWorld) -> None:
    """Write each number, and how far it is, in one transaction; go on where others were."""
    while True:
        producer = await world.broker.producer("counter")
        known = await values(world.broker, CUTS)
        number = int(known[-1] or b"") if known else 0
        try:
            while number < LAST:
                number += 1
                producer.begin()
                for place in (NUMBERS, CUTS):
                    await producer.send(place, Records.of([Record(b"k", b"%d" % number)]))
                    await world.clock.sleep(1)
                await producer.commit()
            return
        except UnknownOutcomeError:
            continue
        except FencedError:
            return


@on_cluster
async def counting_through_a_broker(cluster: SimCluster, seed: int) -> None:
    """One or two processes count, under any faults: readers see each number once, in order."""
    broker = cluster.broker
    for place in (NUMBERS, CUTS):
        broker.create(place.topic, 1)

    def look() -> None:
        seen = [int(record.value or b"") for record in broker.committed(NUMBERS)]
        assert seen == list(range(1, len(seen) + 1)), f"readers see {seen}"
        assert len(broker.committed(CUTS)) == len(seen), "torn: a cut without its number"

    cluster.always(look)
    for second in range(3600):
        # Two who fence each other for ever get nowhere: in the end one is left alone.
        for name in "ab" if seed % 2 and second < 100 else "a":
            if not cluster.host(name).is_running and len(broker.committed(NUMBERS)) < LAST:
                cluster.host(name).start(count)
        await asyncio.sleep(1 + (seed + second) % 7)
        if second == 100:
            cluster.heal()
            cluster.host("b").kill()
        if second > 100 and len(broker.committed(NUMBERS)) == LAST:
            return
    raise AssertionError("not counted without faults")


def test_transactions_survive_every_fault() -> None:
    report = explore(counting_through_a_broker, seeds=range(12 * EXAMPLES // THINNED))
    for kind in ("broker_late", "broker_lost_reply", "broker_unsent", "broker_refused"):
        assert report.landed[kind], kind


@pytest.mark.usefixtures("unshrunk")
def test_producer_that_goes_on_after_an_unknown_outcome_is_found_out() -> None:
    late = Faults(kinds=("broker_late",))
    explore(counting_through_a_broker, seeds=range(5), faults=late)
    with pytest.raises(SimulationError, match=r"torn|readers see"):
        explore(
            counting_through_a_broker, seeds=range(200), faults=late, without=("producer_drop",)
        )
