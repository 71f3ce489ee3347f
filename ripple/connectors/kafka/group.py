"""A partition's outputs in topics of one Kafka, committed by transactions.

Rows of all outputs, the cut record and the input offsets go into one transaction. An uncertain
outcome is never guessed: any failure ends the producer, a new one fences it and ends its open
transaction, and then the cut record says whether that counts. See ``docs/kafka.md``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.connectors.commit_group import OutputStatus
from ripple.connectors.kafka.cuts import Cuts, Held, Reached, newest
from ripple.connectors.kafka.reading_back import ReadingBack
from ripple.connectors.kafka.retry_policy import RetryPolicy
from ripple.connectors.kafka.rows import divided, joined
from ripple.connectors.kafka.single_writer import check_right_behind, end_what_hangs
from ripple.connectors.kafka.uri import KafkaUri
from ripple.core.errors import OutputError
from ripple.core.events import EventListener, no_listener
from ripple.core.tracing import FIELD
from ripple.storage.fenced import FencedError
from ripple.world import broker as brokers
from ripple.world.broker import BrokerError, NoTopicError, Records, TopicPartition, make_lanes
from ripple.world.ports import all_guards
from ripple.world.together import together

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
    from typing import Any

    from ripple.connectors.connector import Carried
    from ripple.connectors.contract import Commit
    from ripple.connectors.kafka.group_partition import GroupPartition
    from ripple.connectors.kafka.topic_target import TopicTarget
    from ripple.world.broker import Broker, Producer
    from ripple.world.ports import Clock, Guards

OPEN_PATIENCE_S = 15.0  # an address may be wrong
# How long an owner that was fenced lets the other one begin, and how often it looks meanwhile.
WAY_S, WAY_S_MAX, LOOK_S = 3.0, 12.0, 0.05


async def _nothing() -> None:
    pass


class KafkaGroup:
    """A ReadableGroup in topics of one Kafka.

    Invariants: from ``open`` on ``_last`` is the newest cut record, unless a transaction is under
    way; ``_waiting`` holds the rows written since the last commit began, which holds earlier ones
    until they are certain to be in the log; a producer in ``_producer`` has no transaction with an
    unknown outcome. ``_way_s`` is 0 unless this owner was fenced since its last commit.
    ``_end`` is the end of the cut records when they were read, None once more was written: a
    replaced leader that is not aware of it may have answered, and then the next record has another
    offset.
    """

    commits_beside = True

    def __init__(
        self,
        broker: Broker,
        partition: GroupPartition,
        outputs: Mapping[str, TopicTarget],
        *,
        clock: Clock,
        where: str = "kafka",
        offsets: Callable[[Mapping[str, int]], Mapping[TopicPartition, int]] = lambda _: {},
        carried: Carried | None = None,
        waits: bool = True,
        guards: Guards = all_guards,
    ) -> None:
        """Take the outputs and their topics; no broker is asked before ``open``.

        carried: lanes to the next stage, at these brokers. where: the brokers, for people. offsets:
        from the cut of an input, by name, to its topic partition, for those at this Kafka.
        waits: whether to wait for unavailable brokers. guards: which safeguards are on, for tests
        of the tests.
        """
        self._broker = broker
        self._partition = partition
        self._outputs = dict(outputs)
        self._carried = carried
        self._lanes: dict[str, TopicPartition] = {}
        if carried is not None:
            topic = KafkaUri.parse(carried.place).topic
            self._lanes = {
                name: TopicPartition(topic, lane) for name, lane in carried.numbers.items()
            }
        self._clock = clock
        self._where = where
        self._offsets = offsets
        self._guards = guards
        self._producer: Producer | None = None
        self._epoch = 0
        self._way_s = 0.0
        self._last = Cuts(0, 0)
        self._end: int | None = None
        self._topics: dict[str, Held] = {}
        self._partitions: dict[str, int] = {}
        self._waiting: dict[TopicPartition, list[Records]] = {}
        self._is_marked = self._is_prepared = False
        self._context: str | None = None
        self._patience = RetryPolicy(clock, where, self._failed, waits=waits)
        self._back = ReadingBack(broker, partition, self._outputs, where)

    async def look(self) -> int:
        """Return the epoch of the newest owner; raise as ``open`` does. See ProbingGroup."""
        newest_epoch = 0

        async def act() -> None:
            nonlocal newest_epoch
            try:
                await self._check_count()
            except NoTopicError:
                return
            found = await newest(self._broker, self._partition.place)
            if found is not None:
                counts = {one.topic: await self._count(one.topic) for one in self._outputs.values()}
                self._topics_of(found, counts)
                newest_epoch = found.epoch

        await self._patience.surely("look at", act, OPEN_PATIENCE_S)
        return newest_epoch

    async def prepare(self) -> None:
        """Connect, and prepare the first transactions; see PreparedGroup."""
        await self._patience.surely("begin to write to", self._prepare, OPEN_PATIENCE_S)

    async def open(
        self, epoch: int | None, emit: EventListener = no_listener
    ) -> Mapping[str, OutputStatus]:
        """Fence all earlier writers, read the cuts, and record the new owner.

        Raises FencedError if an owner of a higher epoch has begun, OutputError.
        """
        if epoch is None:
            raise OutputError(f"{self._where} is written in transactions by an owner alone")
        self._epoch, self._patience.emit = epoch, emit

        async def begin() -> None:
            if not self._is_prepared:
                await self._prepare()
            self._is_prepared = False  # where this fails, something has changed
            last = await self._take_over(self._look_for_ends)
            self._topics = self._topics_of(last, self._partitions)
            # A row stays in its partition: partitions that were added since are not written to.
            self._partitions = {name: held.partitions for name, held in self._topics.items()}
            self._last = last
            mine = Cuts(epoch, last.number + 1, last.outputs, last.watermarks_ns, self._topics)
            await self._transact(mine, {})
            self._last, self._way_s = mine, 0.0

        await self._patience.surely("begin to write to", begin, OPEN_PATIENCE_S)
        return {
            output: OutputStatus(
                self._named(output),
                True,
                self._commit_of(output),
                unfinished=None,
                is_shared=self._partition.is_shared(output),
                holder=self._holder(output),
            )
            for output in (*self._outputs, *self._lanes)
        }

    def write(self, output: str, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002
        """Keep the changes until the commit, as they will be sent."""
        now_ms = self._clock.now_ns() // 1_000_000
        if output in self._lanes:
            sent = Records(
                pa.nulls(len(changes), pa.binary()),
                changes.column(0),
                np.full(len(changes), now_ms, np.int64),
            )
            self._waiting.setdefault(self._lanes[output], []).append(sent)
            return
        written = self._outputs[output]
        records = written.rows.of(changes, now_ms)
        if self._context is not None:
            headers = ((FIELD, self._context.encode()),)
            records = replace(records, headers=(headers,) * len(records))
        count, writer = self._partitions[written.topic], self._partition.part.number
        for number, part in divided(records, count, writer):
            self._waiting.setdefault(TopicPartition(written.topic, number), []).append(part)

    def trace(self, context: str | None) -> None:
        """Set the context, a header of the records written from now on."""
        self._context = context

    def commit(self, reached: Mapping[str, Commit]) -> Coroutine[Any, Any, None]:
        """Return the commit of the rows written by now, with their cuts, in one transaction.

        It raises FencedError when another owner has the partition, OutputError.
        """
        outputs = dict(self._last.outputs)
        outputs |= {
            name: Reached(self._topic(name), one._replace(watermarks_ns=None))
            for name, one in reached.items()
        }
        watermarks_ns = next((one.watermarks_ns for one in reached.values()), None)
        number = self._last.number + 1
        wanted = Cuts(self._epoch, number, outputs, watermarks_ns or {}, self._topics)
        # Later writes are of the next commit.
        waiting = self._waiting
        if self._guards("rows_of_the_cut"):
            self._waiting = {}
        return self._commit(wanted, waiting)

    async def _commit(self, wanted: Cuts, waiting: Mapping[TopicPartition, list[Records]]) -> None:
        if not waiting and wanted.outputs == self._last.outputs:
            return
        rows = {place: joined(parts) for place, parts in waiting.items()}

        async def settle() -> None:
            if self._producer is None:
                if self._guards("gives_way"):
                    await self._give_way(wanted)
                found = await self._take_over()
                if found == wanted:
                    return
                if found != self._last:
                    raise OutputError(
                        f"{self._partition.place} of {self._where} has a cut record that this "
                        "owner has not written: no other process may write there"
                    )
            await self._transact(wanted, rows)

        count = sum(len(records) for records in rows.values())
        await self._patience.surely("commit to", settle, rows=count)
        self._last, self._way_s = wanted, 0.0
        if not self._guards("rows_of_the_cut"):
            self._waiting = {}
        if self._is_marked:
            self._is_marked = False
            await self._patience.surely("look at", self._look_for_ends)

    async def close(self) -> None:
        """Release the connections; a transaction that is open is ended by the next owner."""
        await self._drop()
        await self._broker.close()

    # --- reading back ---

    def mark(self, output: str) -> str:
        """Return an output's end at a commit; later records were written after it, or seen."""
        self._is_marked = True
        return self._back.mark(output)

    def written_since(self, output: str, mark: str | None) -> AsyncIterator[pa.RecordBatch]:
        """Yield the keys of this partition's rows after a mark, with ``op``; see ReadableSink."""
        return self._back.written_since(output, mark)

    def shown_keys(
        self,
        output: str,
        key: Sequence[str],  # noqa: ARG002 - records have their whole key
    ) -> AsyncIterator[pa.RecordBatch]:
        """Yield the keys of this partition's rows, with ``op``; see KnowingSink."""
        return self._back.written_since(output, None)

    def supersede(self, output: str) -> None:
        """Do nothing: a transaction is there as a whole, or not at all."""

    # --- requests to the broker ---

    async def _prepare(self) -> None:
        await self._make_topics()
        found = await newest(self._broker, self._partition.place)
        reads = found is not None and bool(self._read_by(found))
        await self._broker.prepare(
            self._partition.name, self._partition.pipeline if reads else None
        )
        self._is_prepared = True

    async def _make_topics(self) -> None:
        of, place = self._partition.part.of, self._partition.place
        await self._broker.make(place.topic, of, is_compacted=True)
        await self._check_count()
        if self._carried is not None:
            topic, lanes = next(iter(self._lanes.values())).topic, self._carried.lanes
            await make_lanes(self._broker, topic, lanes)
        for written in self._outputs.values():
            await self._broker.make(written.topic, of, has_keys=written.rows.has_keys)
            self._partitions[written.topic] = await self._broker.partitions(written.topic)

    async def _check_count(self) -> None:
        """Raise OutputError unless each partition has one of the cuts topic, NoTopicError."""
        of, topic = self._partition.part.of, self._partition.place.topic
        found = await self._broker.partitions(topic)
        if found != of:
            raise OutputError(
                f"topic {topic} of {self._where} has {found} partitions, and the pipeline has "
                f"{of}: it needs one for each. Give the pipeline another name, or remove the "
                "topic and the checkpoints to start over"
            )

    async def _take_over(self, beside: Callable[[], Coroutine[Any, Any, None]] = _nothing) -> Cuts:
        """Fence all earlier writers; then nothing changes any more, and the records are read.

        beside: other partitions to check. Raises FencedError for an owner of a higher epoch.
        """
        place = self._partition.place
        await self._drop()
        self._end = None
        early = None if self._guards("fence_first") else await newest(self._broker, place)
        producer = await self._broker.producer(self._partition.name)
        self._producer = producer
        latest, *_ = await together(newest(self._broker, place), self._find_end(producer), beside())
        found = early if early is not None else latest
        if found is None:
            return Cuts(0, 0)
        self._check_epoch(found)
        return found

    async def _find_end(self, producer: Producer) -> None:
        """Learn where the cut records end, once no transaction is open there."""
        if not self._guards("ends_what_hangs"):
            return
        written = [place for topic in self._partitions for place in self._places(topic)]
        others = [*written, *self._lanes.values()]
        self._end = await end_what_hangs(self._broker, producer, self._partition.place, others)

    async def _give_way(self, wanted: Cuts) -> None:
        """Let the owner that fenced this one write its record first, if it is the next one.

        Opening takes several answers of brokers, and must not be fenced meanwhile. An owner that
        came back at once would, and the other one it, for as long as both want to write. A
        superseded one ends by itself. Raises FencedError when the next owner has begun.
        """
        until_ns = self._clock.monotonic_ns() + int(self._way_s * 1e9)
        while self._clock.monotonic_ns() < until_ns:
            found = await newest(self._broker, self._partition.place)
            if found == wanted:
                return
            if found is not None:
                self._check_epoch(found)
            await self._clock.sleep(LOOK_S)

    def _check_epoch(self, found: Cuts) -> None:
        if found.epoch > self._epoch and self._guards("epoch_check"):
            raise FencedError(
                f"partition {self._partition.part.number} of {self._partition.pipeline} is written "
                f"to {self._where} by an owner of epoch {found.epoch}, and this one has "
                f"{self._epoch}: it was replaced"
            )

    async def _transact(self, wanted: Cuts, waiting: Mapping[TopicPartition, Records]) -> None:
        """Write all of it, or nothing."""
        producer, own = self._producer, self._partition
        assert producer is not None
        record = wanted.record(own.part.number, self._clock.now_ns() // 1_000_000)
        producer.begin()
        parts = dict(waiting)
        if not self._guards("one_transaction"):
            await producer.send_all(parts)
            await producer.commit()
            producer.begin()
            parts.clear()
        parts[own.place] = Records.of([record])
        # A new owner has read no further than the one before.
        offsets = {} if wanted.outputs == self._last.outputs else self._read_by(wanted)
        found = await producer.send_all(parts, (own.pipeline, offsets) if offsets else None)
        end, self._end = self._end, None
        if end is not None and self._guards("right_behind"):
            check_right_behind(own.place, end, found[own.place])
        await producer.commit()

    def _read_by(self, cuts: Cuts) -> dict[TopicPartition, int]:
        """Return the offsets up to which topics of this Kafka were read for cuts."""
        offsets: dict[TopicPartition, int] = {}
        for reached in cuts.outputs.values():
            for place, offset in self._offsets(reached.commit.cut).items():
                offsets[place] = min(offset, offsets.get(place, offset))
        return offsets

    async def _look_for_ends(self) -> None:
        await self._back.look_for_ends({topic: self._places(topic) for topic in self._partitions})

    def _places(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in range(self._partitions[topic])]

    async def _failed(self, error: BrokerError | TimeoutError) -> None:
        """Begin with a new producer the next time."""
        await self._drop()
        if isinstance(error, brokers.FencedError):
            self._way_s = min(2 * self._way_s, WAY_S_MAX) or WAY_S

    async def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.close()

    # --- words ---

    def _commit_of(self, output: str) -> Commit | None:
        reached = self._last.outputs.get(output)
        return None if reached is None else reached.commit

    def _holder(self, output: str) -> str:
        return "" if output in self._lanes else self._topics[self._outputs[output].topic].id

    def _topic(self, output: str) -> str:
        lane = self._lanes.get(output)
        return self._outputs[output].topic if lane is None else lane.topic

    def _named(self, output: str) -> str:
        lane = self._lanes.get(output)
        return f"kafka:{self._where}/{self._outputs[output].topic if lane is None else lane}"

    def _topics_of(self, found: Cuts, counts: Mapping[str, int]) -> dict[str, Held]:
        """Return the topics of outputs, by a cut record and their partitions, 0: none.

        Raises OutputError for an output that has begun elsewhere, or has no longer the topic of its
        committed records, and for a new one in the topic of another.
        """
        topics = {}
        for output, written in self._outputs.items():
            reached = found.outputs.get(output)
            if reached is not None and reached.topic != written.topic:
                raise OutputError(
                    f"output {output!r} of pipeline {self._partition.pipeline!r} was written to "
                    f"topic {reached.topic}, and now it is {written.topic}: continue with that, or "
                    "give the pipeline another name"
                )
            others = [name for name, one in found.outputs.items() if one.topic == written.topic]
            if reached is None and others:
                raise OutputError(
                    f"topic {written.topic} holds what output {others[0]!r} of pipeline "
                    f"{self._partition.pipeline!r} wrote, not output {output!r}: name another topic"
                )
            known = None if reached is None else found.topics.get(written.topic)
            count = counts[written.topic]
            topics[written.topic] = self._held(output, written.topic, count, known)
        return topics

    async def _count(self, topic: str) -> int:
        """Return how many partitions a topic has, 0 if there is none."""
        try:
            return await self._broker.partitions(topic)
        except NoTopicError:
            return 0

    def _held(self, output: str, topic: str, count: int, known: Held | None) -> Held:
        """Return the identity of a topic. known: the one of before, None without records there."""
        if known is not None and not count:
            raise self._lost(output, topic, "is not there any more")
        topic_id = getattr(self._broker, "topic_id", lambda _: "")(topic)  # of live ones
        if known is None:
            return Held(topic_id, count)
        if (known.id and topic_id and known.id != topic_id) or count < known.partitions:
            raise self._lost(output, topic, "was recreated since")
        return Held(known.id or topic_id, known.partitions)

    def _lost(self, output: str, topic: str, how: str) -> OutputError:
        return OutputError(
            f"output {output!r} of pipeline {self._partition.pipeline!r} was committed to topic "
            f"{topic} of {self._where}, which {how}: its records are gone. To write it again from "
            f"the first record, remove the topic {self._partition.place.topic} and the "
            "checkpoints; or give the pipeline another name"
        )
