"""The transactional producer; see Producer of the broker port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ripple.connectors.kafka import private_writing as private
from ripple.connectors.kafka.batches import ProducerId, batches
from ripple.connectors.kafka.error_mapping import TWICE, refusal, words
from ripple.core.extras import needed
from ripple.world.broker import (
    BrokerError,
    FencedError,
    Records,
    TopicPartition,
    UnknownOutcomeError,
)
from ripple.world.producer_state import ProducerState
from ripple.world.together import together

with needed("kafka", "a kafka: URI"):
    from aiokafka import errors

if TYPE_CHECKING:
    from ripple.connectors.kafka.batches import Compression
    from ripple.connectors.kafka.broker import KafkaBroker

REQUEST_BYTES_MAX = 16 << 20


class KafkaProducer:
    """A producer of transactions, or without an id of records that count at once.

    Invariant: no request that ends a transaction is sent twice.
    """

    def __init__(
        self, broker: KafkaBroker, name: str | None, who: ProducerId, compression: Compression
    ) -> None:
        self._broker = broker
        self._name = name
        self._who = who
        self._compression: Compression = compression
        self._state = ProducerState(name)
        self._added: set[TopicPartition] = set()
        self._has_group = False
        self._sequences: dict[TopicPartition, int] = {}

    @property
    def epoch(self) -> int:
        """A number that grows with each producer of this id."""
        return self._who.number << 16 | self._who.epoch

    def begin(self) -> None:
        """Begin a transaction; see Producer."""
        self._state.begin()
        self._added.clear()
        self._has_group = False

    async def send(self, place: TopicPartition, records: Records) -> None:
        """Write records to a partition; see Producer. The broker has them when it returns."""
        await self.send_all({place: records})

    async def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Note how far a group has read; see Producer."""
        await self.send_all({}, (group, offsets))

    async def send_all(
        self,
        parts: Mapping[TopicPartition, Records],
        offsets: tuple[str, Mapping[TopicPartition, int]] | None = None,
    ) -> Mapping[TopicPartition, int]:
        """Write records to partitions at once, and then offsets; see Producer.

        A broker asks the coordinator about each request of a transaction. Of two concurrent ones
        it rejects one, so offsets are written afterwards. Records come first: with offsets first
        the wait for the transaction before would be longer.
        """
        self._state.begin_send()
        places = ", ".join(map(str, parts)) or "no partition"
        async with _Sure(self._state, f"{self._name}: cannot write to {places:.200}"):
            if self._name is not None:
                await self._add([place for place in parts if place not in self._added])
            found = await self._write(parts)
            if offsets is not None:
                await self._write_offsets(*offsets)
        self._state.sent()
        return found

    async def commit(self) -> None:
        """Let everything be read, or nothing; see Producer."""
        self._state.check_whole()
        await self._end(commits=True)

    async def abort(self) -> None:
        """Let nothing of it ever be read; see Producer."""
        self._state.check(is_open=True)
        await self._end(commits=False)

    async def close(self) -> None:
        """Accept no more writes; the next producer ends an open transaction."""
        self._state.close()

    @property
    def _named(self) -> str:
        if self._name is None:
            raise RuntimeError("a producer without an id has no transactions")
        return self._name

    async def _add(self, places: Sequence[TopicPartition]) -> None:
        name, broker = self._named, self._broker
        if not places:
            return

        async def add() -> int:
            node = await broker.coordinator(private.TRANSACTIONS, name)
            return await private.add_partitions(broker.open_client, node, name, self._who, places)

        for place in places:
            await self._broker.learn_place(place)
        await self._broker.until_done(f"transaction of {name!r}", add)
        self._added.update(places)

    async def _write(self, parts: Mapping[TopicPartition, Records]) -> dict[TopicPartition, int]:
        """Write records in rounds of requests, each with a batch of many partitions."""
        found: dict[TopicPartition, int] = {}
        left = {
            place: batches(
                records, place, await self._broker.batch_bytes_max(place.topic), self._compression
            )
            for place, records in parts.items()
        }
        while left:
            round_: dict[TopicPartition, bytes] = {}
            size = 0
            for place, rest in list(left.items()):
                batch = next(rest, None)
                if batch is None:
                    del left[place]
                    continue
                count, body, head = batch
                sequence = self._sequences.get(place, 0)
                round_[place] = head.with_body(
                    body, self._who, sequence, is_transactional=self._name is not None
                )
                self._sequences[place] = (sequence + count) & 0x7FFFFFFF
                size += len(body)
                if size > REQUEST_BYTES_MAX:
                    break
            found = await self._write_round(round_) | found
        return found

    async def _write_round(self, round_: dict[TopicPartition, bytes]) -> dict[TopicPartition, int]:
        """Write batches to their leaders; sequence numbers make repetitions idempotent."""
        found: dict[TopicPartition, int] = {}

        async def write() -> int:
            led: dict[int, dict[TopicPartition, bytes]] = {}
            for place, batch in round_.items():
                led.setdefault(await self._broker.leader(place), {})[place] = batch
            client = self._broker.open_client
            asked = [private.write(client, node, self._name, some) for node, some in led.items()]
            refused = 0
            for answers in await together(*asked):
                for place, (code, offset) in answers.items():
                    if code and code != TWICE:
                        refused = refused or code
                    else:
                        found[place] = -1 if code else offset
                        del round_[place]
            return refused

        places = ", ".join(map(str, round_))
        if round_:
            await self._broker.until_done(f"{places:.200}", write)
        return found

    async def _write_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        name, who, broker = self._named, self._who, self._broker
        topics = ", ".join(sorted({place.topic for place in offsets}))

        async def add() -> int:
            node = await broker.coordinator(private.TRANSACTIONS, name)
            return await private.add_group(broker.open_client, node, name, who, group)

        async def write() -> int:
            node = await broker.coordinator(private.GROUPS, group)
            return await private.write_offsets(
                broker.open_client, node, name, who, (group, offsets)
            )

        await self._broker.until_done(f"transaction of {name!r}", add)
        self._has_group = True
        await self._broker.until_done(
            f"topic {topics:.200}, of which group {group!r} notes how far it was read", write
        )

    async def _end(self, *, commits: bool) -> None:
        """Send the one request that ends the transaction, with a known outcome or an error."""
        name, broker, state = self._named, self._broker, self._state
        if self._added or self._has_group:
            unknown = UnknownOutcomeError(
                f"{name}: it is unknown whether the transaction was "
                f"{'committed' if commits else 'aborted'}"
            )
            before, state.over = state.over, unknown
            try:
                node = await broker.coordinator(private.TRANSACTIONS, name)
                code = await private.end(broker.open_client, node, name, self._who, commits=commits)
            except errors.KafkaError as error:
                broker.forget()
                raise unknown from error
            if code:
                refused = refusal(code, name)
                broker.forget()
                if isinstance(refused, FencedError):
                    state.over = refused
                    raise refused
                raise unknown from refused
            state.over = before
        state.ended()


class _Sure:
    """While a request is under way its producer is over; it is again in use when that is known."""

    def __init__(self, state: ProducerState, what: str) -> None:
        self._state = state
        self._unknown = UnknownOutcomeError(what)

    async def __aenter__(self) -> None:
        self._state.over = self._unknown

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if error is None or (isinstance(error, BrokerError) and error.done is not None):
            self._state.over = error if isinstance(error, FencedError) else None
        elif isinstance(error, errors.KafkaError | BrokerError):
            raise UnknownOutcomeError(f"{self._unknown}: {words(error)}") from error
