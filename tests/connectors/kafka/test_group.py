"""A task that commits its outputs by transactions, under all faults."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ripple.connectors.contract import Commit
from ripple.connectors.kafka.cuts import Cuts, Held, Looks, Reached, newest
from ripple.core.errors import OutputError
from ripple.storage.fenced import FencedError
from ripple.testing import (
    Faults,
    SimCluster,
    SimWorld,
    explore,
    on_cluster,
    repeat,
)
from ripple.testing.sim.broker import SimBroker
from ripple.testing.sim.broker_log import BrokerLog
from ripple.testing.sim.service import NoReplyError
from ripple.world.broker import Record, TopicPartition
from ripple.world.ports import all_guards
from tests.connectors.kafka.owners import (
    INPUT,
    PARTITIONS,
    PLAN,
    SOURCE,
    WHOSE,
    Readers,
    group_of,
    live,
    make_topics,
    topic_of,
    undisturbed,
)
from tests.examples import EXAMPLES

READS_OF_AN_OWNER = 5
KINDS = (
    "broker_late",
    "broker_lost_reply",
    "broker_unsent",
    "broker_refused",
)


@pytest.fixture(scope="module")
def readers() -> Readers:
    found = undisturbed()
    assert all(len(by_cut) > 3 for by_cut in found.known.values())
    return found


def one_owner_after_the_other(
    readers: Readers, provoke: Callable[[SimBroker], None] = lambda _: None
) -> Any:
    """A life, and another one whenever it has died, until the input is done.

    provoke: makes the broker do what it may, and seldom does.
    """

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        make_topics(cluster)
        provoke(cluster.broker)
        cluster.always(lambda: readers.look(cluster))
        done: list[bool] = []
        for turn in range(60):
            if done:
                return

            async def main(world: SimWorld, epoch: int = 1024 * (turn + 1)) -> None:
                life = await live(world, epoch)
                assert life.engine.cut == SOURCE.end
                done.append(True)

            if turn == 20:
                cluster.heal()
            cluster.host("a").start(main)
            await cluster.host("a").ended()
            await asyncio.sleep(1)
        raise AssertionError("not done in 60 lives")

    return scenario


def let_ends_arrive(broker: SimBroker) -> None:
    """Let the request that commits a transaction come just before a new producer ends it."""
    begin_producer = broker.begin_producer

    def begin(name: str) -> int:
        before = broker._ids.get(name)
        if before is not None and before.is_open:
            broker.end(name, before.epoch, commits=True)
        return begin_producer(name)

    broker.begin_producer = begin  # type: ignore[method-assign]


def lose_markers(broker: SimBroker) -> None:
    """Let transactions end without a marker now and then, by a broker that then does not answer.

    So does Kafka where partitions have no leader as their transaction ends (KAFKA-20734).
    """
    end, begin_producer, turns = broker.end, broker.begin_producer, itertools.count()

    def lose(name: str) -> bool:
        before = broker._ids.get(name)
        if before is None or not before.is_open or next(turns) % 3 != 1:
            return False
        before.open.clear()
        return True

    def ended(name: str, epoch: int, *, commits: bool) -> None:
        is_lost = lose(name)
        end(name, epoch, commits=commits)
        if is_lost:
            raise NoReplyError

    def begin(name: str) -> int:
        lose(name)
        return begin_producer(name)

    broker.end = ended  # type: ignore[method-assign]
    broker.begin_producer = begin  # type: ignore[method-assign]


def answer_from_the_past(broker: SimBroker) -> None:
    """Let a leader that was replaced answer now and then what it knew before the last commit."""
    send, begin_producer, turns = broker.send, broker.begin_producer, itertools.count()
    before: dict[TopicPartition, BrokerLog] = {}
    left = 0

    def sent(
        name: str, epoch: int, place: TopicPartition, sequence: int, records: tuple[Record, ...]
    ) -> int:
        if place == WHOSE.place:
            before[place] = copy.deepcopy(broker.log(place))
        return send(name, epoch, place, sequence, records)

    def begin(name: str) -> int:
        nonlocal left
        left = READS_OF_AN_OWNER if next(turns) % 2 else 0
        return begin_producer(name)

    def seen(place: TopicPartition) -> BrokerLog:
        nonlocal left
        if place in before and left:
            left -= 1
            return before[place]
        return broker.log(place)

    broker.send = sent  # type: ignore[method-assign]
    broker.begin_producer = begin  # type: ignore[method-assign]
    broker.seen = seen  # type: ignore[method-assign]


def two_owners(readers: Readers) -> Any:
    """An owner, and its successor while it is still there: paused, cut off, or just slow."""

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        cluster.disturb()  # who is replaced ends with an error
        make_topics(cluster)
        cluster.always(lambda: readers.look(cluster))
        done: list[str] = []
        epoch = 0

        def owner(name: str, epoch: int):  # type: ignore[no-untyped-def]
            async def main(world: SimWorld) -> None:
                life = await live(world, epoch)
                assert life.engine.cut == SOURCE.end
                done.append(name)

            return main

        for turn in range(200):
            if turn == 40:
                cluster.heal()
                cluster.host("a").kill()
            if done:
                return
            name = "ab"[turn % 2] if turn < 40 else "b"
            if not cluster.host(name).is_running:
                epoch += 1024
                cluster.host(name).start(owner(name, epoch))
            other = cluster.host("ba"[turn % 2])
            await asyncio.sleep((1 + (seed + turn) % 7) / 100)
            if turn < 40 and other.is_running:
                other.pause()
                await asyncio.sleep((seed % 5) / 10)
                other.resume()
            if turn >= 40:
                await asyncio.sleep(10)
        raise AssertionError("not done without faults")

    return scenario


def at_each(scenario: Any, effect: str, kinds: Iterable[str], without: tuple[str, ...] = ()) -> int:
    """Let faults strike each effect of a name, one in a run; return how many did."""
    clean = repeat(scenario, seed=0, without=without)
    assert clean.error is None, clean.error
    places = [n for n, name in enumerate(clean.effects[0], 1) if name == effect]
    count = 0
    for kind in kinds:
        for place in places[:: max(1, (5 if without else 9) // EXAMPLES)]:
            done = repeat(scenario, seed=0, plan=f"0.{place}:{kind}:0", without=without)
            assert done.error is None, f"{done.faults}: {done.error!r}"
            count += len(done.faults)
    return count


def test_crash_after_send_before_txn_commit(readers: Readers) -> None:
    scenario = one_owner_after_the_other(readers)
    assert at_each(scenario, "broker_send", ("kill_before", "kill_after"))
    assert at_each(scenario, "broker_end", ("kill_before",))


def test_crash_after_commit_before_checkpoint(readers: Readers) -> None:
    assert at_each(one_owner_after_the_other(readers), "broker_end", ("kill_after",))


def test_delayed_end_txn_cannot_tear(readers: Readers) -> None:
    scenario = one_owner_after_the_other(readers)
    assert at_each(scenario, "broker_end", ("broker_late", "broker_lost_reply", "broker_unsent"))


def test_end_that_arrives_just_before_the_next_producer_is_not_missed(readers: Readers) -> None:
    scenario = one_owner_after_the_other(readers, let_ends_arrive)
    assert at_each(scenario, "broker_end", ("broker_unsent",))


def test_open_transaction_is_aborted_before_the_next_marker_decides_it(
    readers: Readers,
) -> None:
    scenario = one_owner_after_the_other(readers, lose_markers)
    assert at_each(scenario, "broker_end", ("kill_after", "broker_lost_reply"))


def test_readers_see_a_hanging_transaction_unless_it_is_aborted(readers: Readers) -> None:
    scenario = one_owner_after_the_other(readers, lose_markers)
    found = next(errors_of(scenario, range(3), "ends_what_hangs"))
    assert "cut records" in found or "torn" in found


def test_answer_of_a_replaced_leader_is_detected(readers: Readers) -> None:
    scenario = one_owner_after_the_other(readers, answer_from_the_past)
    assert at_each(scenario, "broker_end", ("kill_after", "broker_lost_reply"))


def test_without_the_check_a_replaced_leaders_answer_repeats_rows(
    readers: Readers,
) -> None:
    scenario = one_owner_after_the_other(readers, answer_from_the_past)
    with pytest.raises(AssertionError, match=r"torn|went back|cut records"):
        at_each(scenario, "broker_end", ("broker_lost_reply",), without=("right_behind",))


@pytest.mark.parametrize("kind", KINDS)
def test_txn_abort_then_reemit(readers: Readers, kind: str) -> None:
    scenario = one_owner_after_the_other(readers)
    report = explore(scenario, seeds=range(2 * EXAMPLES), faults=Faults(kinds=(kind,)))
    assert report.landed[kind], report


def test_zombie_producer_fenced(readers: Readers) -> None:
    report = explore(
        two_owners(readers), seeds=range(100, 100 + 2 * EXAMPLES), faults=Faults(kinds=())
    )
    assert report.lives


def test_superseded_owner_cannot_refence_producer(readers: Readers) -> None:
    """It fences once, finds the higher epoch, and ends; who was fenced comes back and goes on."""
    report = explore(two_owners(readers), seeds=range(3 * EXAMPLES), faults=Faults(kinds=KINDS))
    assert report.landed.total()


def test_missing_fence_before_reading_is_found_out(readers: Readers) -> None:
    scenario = one_owner_after_the_other(readers, let_ends_arrive)
    with pytest.raises(AssertionError, match=r"torn|went back|cut records"):
        at_each(scenario, "broker_end", ("broker_unsent",), without=("fence_first",))


def errors_of(scenario: Any, seeds: Iterable[int], safeguard: str) -> Iterator[str]:
    """Yield what goes wrong without a safeguard, and no fault besides."""
    for seed in seeds:
        error = repeat(scenario, seed=seed, without=(safeguard,)).error
        if error is not None:
            yield str(error)


def test_cut_record_in_a_transaction_of_its_own_is_found_out(readers: Readers) -> None:
    scenario = one_owner_after_the_other(readers)
    assert "torn" in next(errors_of(scenario, range(1), "one_transaction"))


def test_rows_that_come_during_a_commit_are_of_the_next_one(readers: Readers) -> None:
    scenario = one_owner_after_the_other(readers)
    assert "torn" in next(errors_of(scenario, range(1), "rows_of_the_cut"))


def test_missing_check_of_the_epoch_is_found_out(readers: Readers) -> None:
    assert "cut records" in next(errors_of(two_owners(readers), range(10, 40), "epoch_check"))


class Slow:
    """A broker that takes a while to answer, and counts who has become a producer."""

    def __init__(self, broker: Any, clock: Any) -> None:
        self._broker, self._clock = broker, clock
        self.begun = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    async def ends(self, places: Any, **given: Any) -> Any:
        await self._clock.sleep(0.5)
        return await self._broker.ends(places, **given)

    async def producer(self, name: str) -> Any:
        self.begun += 1
        await self._clock.sleep(0.1)
        return await self._broker.producer(name)


def hand_over(without: tuple[str, ...]) -> tuple[BaseException | None, int]:
    """Let an owner keep on committing while the next one begins.

    Returns what went wrong, and how many producers there were: each fences the one before.
    """
    begun = []

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        make_topics(cluster)

        async def main(world: SimWorld) -> None:
            slow = Slow(world.broker, world.clock)
            begun.append(slow)
            owner, following = (group_of(replace(world, broker=slow)) for _ in range(2))
            await owner.open(1024)

            async def commit() -> None:
                for number in range(1, 10_000):
                    reached = Commit({PLAN.source.name: number}, "")
                    await owner.commit({output.name: reached for output in PLAN.outputs})

            committing = asyncio.create_task(commit())
            await world.clock.sleep(1)
            await following.open(2048)
            with pytest.raises(FencedError, match="it was replaced"):
                await committing

        cluster.host("a").start(main)
        await cluster.host("a").ended()

    error = repeat(scenario, seed=0, without=without).error
    return error, begun[0].begun


def test_an_owner_that_is_fenced_lets_the_next_one_begin() -> None:
    assert hand_over(()) == (None, 2)


def test_preparing_disturbs_no_owner_and_saves_requests() -> None:
    asked: list[str] = []

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        make_topics(cluster)

        async def main(world: SimWorld) -> None:
            owner, following = group_of(world), group_of(world)

            async def commit(group: Any, offset: int) -> None:
                reached = Commit({PLAN.source.name: offset}, "")
                await group.commit({output.name: reached for output in PLAN.outputs})

            await owner.open(1024)
            await commit(owner, 1)
            await following.prepare()
            await commit(owner, 2)
            assert cluster.broker.read_by(PLAN.name) == {INPUT: 2}
            before = len(cluster.effects.names)
            await following.open(2048)
            asked[:] = cluster.effects.names[before:]
            assert cluster.broker.read_by(PLAN.name) == {INPUT: 2}
            with pytest.raises(FencedError, match="it was replaced"):
                await commit(owner, 3)
            await commit(following, 3)
            assert cluster.broker.read_by(PLAN.name) == {INPUT: 3}

        cluster.host("a").start(main)
        await cluster.host("a").ended()

    assert repeat(scenario, seed=0).error is None
    # The fence, where cut records and rows begin and end, whether a transaction hangs there, the
    # newest record, and one of its own.
    reads = ["broker_read"] * (5 + len(PLAN.outputs))
    assert asked == ["broker_init", *reads, "broker_send", "broker_end"]


def test_polling_asks_only_for_the_end_until_more_has_come() -> None:
    asked: list[list[str]] = []

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        make_topics(cluster)

        async def main(world: SimWorld) -> None:
            owner, looks = group_of(world), Looks()

            async def look() -> Cuts:
                before = len(cluster.effects.names)
                found = await looks.newest(world.broker, WHOSE.place)
                asked.append(cluster.effects.names[before:])
                assert found == await newest(world.broker, WHOSE.place)
                assert found is not None
                return found

            await owner.open(1024)
            assert await look() == await look()
            reached = Commit({PLAN.source.name: 1}, "")
            await owner.commit({output.name: reached for output in PLAN.outputs})
            assert (await look()).outputs[PLAN.outputs[0].name].commit.cut == reached.cut
            await look()

        cluster.host("a").start(main)
        await cluster.host("a").ended()

    assert repeat(scenario, seed=0).error is None
    assert list(map(len, asked)) == [4, 1, 4, 1]


def test_owners_that_give_no_way_fence_each_other_again_and_again() -> None:
    error, producers = hand_over(("gives_way",))
    assert "cannot begin to write" in str(error)
    assert producers > 10


class Chosen:
    """A tracer that gives each batch a trace of its number."""

    def __init__(self) -> None:
        self.ended: list[int] = []

    def begin(self, contexts: Any, **about: Any) -> Any:
        number = len(self.ended)

        class Span:
            contexts = (f"trace {number}",)

            def end(span, rows: int) -> None:  # noqa: N805
                self.ended.append(rows)

        return Span()


def test_a_trace_is_in_headers_and_nowhere_else(readers: Readers) -> None:
    """Keys, values and cut records are byte for byte those of a run that nobody follows."""
    tracer, headers = Chosen(), []

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        make_topics(cluster)

        async def main(world: SimWorld) -> None:
            await live(world, 1024, tracer=tracer)

        cluster.host("a").start(main)
        await cluster.host("a").ended()
        readers.look(cluster)
        for output in PLAN.outputs:
            for number in range(PARTITIONS):
                records = cluster.broker.committed(TopicPartition(topic_of(output.name), number))
                headers.extend(record.headers for record in records)

    error = repeat(scenario, seed=1).error
    if error is not None:
        raise error
    assert sum(tracer.ended) == len(headers) >= 10
    assert {name for one in headers for name, _ in one} == {"traceparent"}
    assert {value for one in headers for _, value in one} <= {
        b"trace %d" % number for number in range(len(tracer.ended))
    }
    assert len(set(headers)) == 7


TICKS_TOPIC = topic_of(PLAN.outputs[0].name)


def topics_of(
    known: Held, topic_id: str, count: int, of: str = PLAN.outputs[0].name
) -> Mapping[str, Held]:
    """What a group takes its topics for, where a cut record knows one, written by ``of``."""
    broker = SimpleNamespace(topic_id=lambda _: topic_id)
    world: Any = SimpleNamespace(broker=broker, clock=None, guards=all_guards)
    reached = {of: Reached(TICKS_TOPIC, Commit({"ticks": 7}, "d"))}
    record = Cuts(1, 2, reached, {}, {TICKS_TOPIC: known}).record(0, 0)
    counts = {topic_of(output.name): count for output in PLAN.outputs}
    return group_of(world)._topics_of(Cuts.of(record, WHOSE.place), counts)


def test_rows_stay_where_they_are_when_a_topic_gets_more_partitions() -> None:
    assert topics_of(Held("a", 3), "a", 5)[TICKS_TOPIC] == Held("a", 3)
    assert topics_of(Held("", 3), "a", 3)[TICKS_TOPIC] == Held("a", 3)


def test_missing_topic_with_committed_records_is_detected() -> None:
    with pytest.raises(OutputError, match=r"not there any more.*remove the topic .*cuts"):
        topics_of(Held("a", 3), "", 0)
    with pytest.raises(OutputError, match="recreated since"):
        topics_of(Held("a", 3), "b", 3)
    with pytest.raises(OutputError, match="recreated since"):
        topics_of(Held("", 3), "", 2)


def test_cut_records_that_were_removed_are_missed_before_anything_is_claimed() -> None:
    """They are not taken for those of a pipeline that begins: all would be written again."""

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        make_topics(cluster)

        async def main(world: SimWorld) -> None:
            await live(world, 1024)
            place = WHOSE.place
            end = (await world.broker.ends([place]))[place]
            cluster.broker.remove_before(place, end)
            for asked in (group_of(world).look(), group_of(world).open(2048)):
                with pytest.raises(OutputError, match="holds no cut record"):
                    await asked
            assert (await world.broker.ends([place]))[place] == end

        cluster.host("a").start(main)
        await cluster.host("a").ended()

    error = repeat(scenario, seed=1).error
    if error is not None:
        raise error


def test_a_topic_of_another_output_is_refused() -> None:
    with pytest.raises(OutputError, match=r"output 'renamed' .*name another topic"):
        topics_of(Held("a", 3), "a", 3, of="renamed")
