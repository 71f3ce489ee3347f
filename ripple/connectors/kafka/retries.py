"""Retries of dead letters from Kafka: their records are written to a topic again, each once.

Finished retries are recorded in a compacted topic of the pipeline, ``PIPELINE.retries``, in the
very transaction that writes the records: both are stored or neither, after any crash.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import numpy as np

from ripple.connectors.background import Background
from ripple.connectors.kafka.broker import KafkaBroker
from ripple.connectors.kafka.cuts import committed
from ripple.connectors.kafka.originals import at_rows, kept_of
from ripple.connectors.kafka.rows import joined
from ripple.connectors.kafka.settings import security_given
from ripple.connectors.kafka.single_writer import check_right_behind, end_what_hangs
from ripple.connectors.kafka.uri import PREFIX, KafkaUri
from ripple.connectors.retries import Outcome
from ripple.core.errors import InputError
from ripple.core.hashing import xxh64_of
from ripple.core.setting import SettingsError
from ripple.world.broker import (
    BrokerError,
    FencedError,
    Record,
    Records,
    TooLargeError,
    TopicPartition,
)
from ripple.world.live import LiveClock

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping
    from typing import Any

    from ripple.connectors.kafka.producer import KafkaProducer
    from ripple.connectors.letter import Letter
    from ripple.world.ports import Clock

T = TypeVar("T")

# Of one transaction.
LETTERS_MAX = 1000
BYTES_MAX = 4 << 20
# A broker that goes away meanwhile is asked for another producer so often.
ATTEMPTS_MAX = 5
PAUSE_S = 0.5


def topic_of(pipeline: str) -> str:
    """Return the topic of a pipeline's retries."""
    return f"{pipeline}.retries"


class _One(NamedTuple):
    """A record to be written. key: its unique identity, also after its topic was recreated."""

    key: bytes
    partition: int
    records: Records
    length_bytes: int


class KafkaRetries:
    """A topic that takes records of a pipeline's letters again; one process at a time may.

    Each goes to the partition of its number that it came from, with the key, the headers and the
    value that it had; its time is that of the retry.
    """

    def __init__(self, place: KafkaUri, pipeline: str, clock: Clock) -> None:
        """Connect, and fence other retries of the pipeline's dead letters. Raises InputError."""
        self.name = str(place)
        self._topic = place.topic
        self._id = f"ripple.{pipeline}.retries"
        self._journal = TopicPartition(topic_of(pipeline), 0)
        self._clock = clock
        self._background = Background()
        try:
            self._broker = KafkaBroker(place.brokers, security_given())
            self._call(self._open())
        except SettingsError as error:
            self._background.close()
            raise InputError(f"cannot write {self.name}: {error}") from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the connections."""
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._background.call(self._broker.close())
        self._background.close()

    def send(self, letters: Iterable[Letter], outcome: Outcome) -> None:
        """Write the records of dead letters that were never retried; report in ``outcome``.

        Raises InputError; the next retry resumes from there.
        """
        left: dict[bytes, _One] = {}
        for letter in letters:
            try:
                one = self._one(letter)
            except InputError as error:
                outcome.refused.append((letter, str(error)))
                continue
            if one.key in self._done or one.key in left:
                outcome.before += 1
            else:
                left[one.key] = one
        self._call(self._send(left, outcome))

    def _call(self, asked: Coroutine[Any, Any, T]) -> T:
        try:
            return self._background.call(asked)
        except FencedError as error:
            raise InputError(
                f"{self.name}: another process has begun to retry dead letters of this pipeline"
            ) from error
        except BrokerError as error:
            raise InputError(f"cannot write {self.name}: {error}") from error

    async def _open(self) -> None:
        self._partitions = await self._broker.partitions(self._topic)
        self._bytes_max = await self._broker.batch_bytes_max(self._topic)
        await self._broker.make(self._journal.topic, 1, is_compacted=True)
        await self._begin()

    async def _begin(self) -> None:
        """Get a producer, and then read the finished retries: others are fenced."""
        self._producer: KafkaProducer = await self._broker.producer(self._id)
        written = [TopicPartition(self._topic, number) for number in range(self._partitions)]
        end = await end_what_hangs(self._broker, self._producer, self._journal, written)
        self._end: int | None = end  # until a record is written after it
        first = (await self._broker.earliest([self._journal]))[self._journal]
        self._done = {
            record.key
            async for read in committed(self._broker, self._journal, first, end)
            for record in read.records
        }

    def _one(self, letter: Letter) -> _One:
        original = letter.original()
        place, records = kept_of(original)
        if records.values.null_count:
            raise InputError("it is a deletion, and would delete later records")
        if place.partition >= self._partitions:
            raise InputError(
                f"it is of partition {place.partition}, and {self._topic} has {self._partitions}"
            )
        length_bytes = len(original.data)
        if length_bytes > self._bytes_max:
            raise InputError(
                f"its {length_bytes} bytes exceed the topic's limit, {self._bytes_max}"
            )
        name = [letter.input, letter.offset, xxh64_of(original.data)]
        return _One(json.dumps(name).encode(), place.partition, records, length_bytes)

    async def _send(self, left: dict[bytes, _One], outcome: Outcome) -> None:
        attempts = 0
        while left:
            load = looked = _load(left)
            try:
                await self._deliver(load)
                self._done.update(load)
            except (FencedError, TooLargeError):
                raise
            except BrokerError as error:
                attempts += 1
                if attempts == ATTEMPTS_MAX:
                    raise
                await asyncio.sleep(PAUSE_S)
                await self._begin()  # which finds out its outcome
                looked = left
                if error.done is False:
                    load = {}  # the records there are older
            for key in [key for key in looked if key in self._done]:
                del left[key]
                if key in load:
                    outcome.sent += 1
                else:  # the first broker did not know it
                    outcome.before += 1

    async def _deliver(self, load: Mapping[bytes, _One]) -> None:
        now_ms = self._clock.now_ns() // 1_000_000
        times = np.array([now_ms], np.int64)
        groups: dict[TopicPartition, list[Records]] = {}
        for one in load.values():
            records = at_rows(one.records, slice(None), times)
            groups.setdefault(TopicPartition(self._topic, one.partition), []).append(records)
        noted = [
            Record(
                key, json.dumps({"topic": self._topic, "partition": one.partition}).encode(), now_ms
            )
            for key, one in load.items()
        ]
        self._producer.begin()
        parts = {place: joined(found) for place, found in groups.items()}
        found = await self._producer.send_all({**parts, self._journal: Records.of(noted)})
        end, self._end = self._end, None
        if end is not None:
            check_right_behind(self._journal, end, found[self._journal])
        await self._producer.commit()


def _load(left: Mapping[bytes, _One]) -> dict[bytes, _One]:
    """Return the first that go together."""
    found: dict[bytes, _One] = {}
    length_bytes = 0
    for key, one in left.items():
        length_bytes += one.length_bytes
        if found and (len(found) == LETTERS_MAX or length_bytes > BYTES_MAX):
            break
        found[key] = one
    return found


def open_retries(path: str, pipeline: str) -> KafkaRetries:
    """Return the topic at a place, as a target of retried letters. Raises InputError."""
    try:
        place = KafkaUri.parse(path)
    except SettingsError as error:
        raise InputError(f"cannot write {PREFIX}{path}: {error}") from error
    return KafkaRetries(place, pipeline, LiveClock())
