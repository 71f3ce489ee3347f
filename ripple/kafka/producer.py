"""The one that writes transactions under its id; see Producer of the broker port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from ripple.extras import needed
from ripple.kafka import private_writing as private
from ripple.kafka.batches import ProducerId, batches
from ripple.kafka.refusals import refusal
from ripple.world.broker import (
    BrokerError,
    FencedError,
    Place,
    Records,
    UnknownOutcomeError,
)

with needed("kafka", "a kafka: place"):
    from aiokafka import errors

if TYPE_CHECKING:
    from ripple.kafka.batches import Compression
    from ripple.kafka.writing import Writing

T = TypeVar("T")


class KafkaProducer:
    """A producer of transactions, or without an id of records that count at once.

    Invariants: no request that ends a transaction is sent twice; ``_over`` is why it takes no more,
    and is set while a request is under way whose sender may be cancelled.
    """

    def __init__(
        self, writing: Writing, name: str | None, who: ProducerId, compression: Compression
    ) -> None:
        self._writing = writing
        self._name = name
        self._who = who
        self._compression: Compression = compression
        self._over: BrokerError | None = None
        self._is_open = name is None
        self._is_broken = False
        self._added: set[Place] = set()
        self._has_group = False
        self._sequences: dict[Place, int] = {}

    @property
    def epoch(self) -> int:
        """A number that grows with each producer of this id."""
        return self._who.number << 16 | self._who.epoch

    def begin(self) -> None:
        """Begin a transaction; see Producer."""
        self._check(is_open=False)
        self._is_open, self._is_broken = True, False
        self._added.clear()
        self._has_group = False

    async def send(self, place: Place, records: Records) -> None:
        """Write records to a partition; see Producer. The broker has them when it returns."""
        self._check(is_open=True)
        self._check_whole()
        self._is_broken = True
        async with _Sure(self, f"write to {place}"):
            bytes_max = await self._writing.batch_bytes_max(place.topic)
            if self._name is not None and place not in self._added:
                await self._add(place)
            for count, body, head in batches(records, place, bytes_max, self._compression):
                sequence = self._sequences.get(place, 0)
                batch = head.with_body(
                    body, self._who, sequence, is_transactional=self._name is not None
                )
                await self._write(place, batch)
                self._sequences[place] = (sequence + count) & 0x7FFFFFFF
        self._is_broken = False

    async def send_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Note how far a group has read; see Producer."""
        self._check(is_open=True)
        self._check_whole()
        self._is_broken = True
        name, who, writing = self._named, self._who, self._writing

        async def add() -> int:
            node = await writing.coordinator(private.TRANSACTIONS, name)
            return await private.add_group(writing.open_client, node, name, who, group)

        async def write() -> int:
            node = await writing.coordinator(private.GROUPS, group)
            return await private.write_offsets(
                writing.open_client, node, name, who, (group, offsets)
            )

        async with _Sure(self, f"write offsets of group {group!r}"):
            await self._writing.until_done(f"transaction of {name!r}", add)
            self._has_group = True
            await self._writing.until_done(f"offsets of group {group!r}", write)
        self._is_broken = False

    async def commit(self) -> None:
        """Let everything be read, or nothing; see Producer."""
        self._check(is_open=True)
        self._check_whole()
        await self._end(commits=True)

    async def abort(self) -> None:
        """Let nothing of it ever be read; see Producer."""
        self._check(is_open=True)
        await self._end(commits=False)

    async def close(self) -> None:
        """Take no more; the next producer ends what is open."""
        if self._over is None:
            self._over = BrokerError(f"{self._name}: this producer is closed", done=False)

    @property
    def _named(self) -> str:
        if self._name is None:
            raise RuntimeError("a producer without an id has no transactions")
        return self._name

    async def _add(self, place: Place) -> None:
        name, writing = self._named, self._writing

        async def add() -> int:
            node = await writing.coordinator(private.TRANSACTIONS, name)
            return await private.add_partition(writing.open_client, node, name, self._who, place)

        await self._writing.learn_place(place)
        await self._writing.until_done(f"transaction of {name!r}", add)
        self._added.add(place)

    async def _write(self, place: Place, batch: bytes) -> None:
        """Write a batch where its leader is; what is sent again is there once, by its number."""

        async def write() -> int:
            node = await self._writing.leader(place)
            client = self._writing.open_client
            return await private.write(client, node, self._name, place, batch)

        await self._writing.until_done(str(place), write)

    async def _end(self, *, commits: bool) -> None:
        """Send the one request that ends it. Whoever has sent it knows, or is over."""
        name, writing = self._named, self._writing
        if self._added or self._has_group:
            unknown = UnknownOutcomeError(
                f"{name}: nobody knows whether the transaction was "
                f"{'committed' if commits else 'aborted'}"
            )
            before, self._over = self._over, unknown
            try:
                node = await writing.coordinator(private.TRANSACTIONS, name)
                code = await private.end(
                    writing.open_client, node, name, self._who, commits=commits
                )
            except errors.KafkaError as error:
                writing.forget()
                raise unknown from error
            if code:
                refused = refusal(code, name)
                writing.forget()
                if isinstance(refused, FencedError):
                    self._over = refused
                    raise refused
                raise unknown from refused
            self._over = before
        self._is_open = False

    def _check_whole(self) -> None:
        if self._is_broken and self._name is not None:
            raise BrokerError(f"{self._name}: a send has failed: only abort", done=False)

    def _check(self, *, is_open: bool) -> None:
        if isinstance(self._over, FencedError | UnknownOutcomeError):
            raise type(self._over)(str(self._over))
        if self._over is not None:
            raise BrokerError(str(self._over), done=self._over.done)
        if self._is_open != is_open:
            there = "no" if is_open else "already a"
            raise RuntimeError(f"{self._name}: there is {there} transaction")


class _Sure:
    """While a request is under way its producer is over; it is again in use when that is known."""

    def __init__(self, producer: KafkaProducer, what: str) -> None:
        self._producer = producer
        self._unknown = UnknownOutcomeError(f"{producer._name}: cannot {what}")

    async def __aenter__(self) -> None:
        self._producer._over = self._unknown

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        producer = self._producer
        if error is None or (isinstance(error, BrokerError) and error.done is not None):
            producer._over = error if isinstance(error, FencedError) else None
        elif isinstance(error, errors.KafkaError | BrokerError):
            raise UnknownOutcomeError(f"{self._unknown}: {_told(error)}") from error


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__
