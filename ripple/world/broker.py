"""The broker port: a log of many partitions, with transactions that one producer at a time can end.

Its forms are simulated (``ripple.testing``) and Kafka (``ripple.connectors.kafka``). It promises no
more than Kafka does to a client of the first version of its transaction protocol:

- offsets have holes: transactions leave markers, aborted records are skipped, compaction and
  retention remove records;
- readers see committed records only, up to the first record of the oldest transaction that is
  still open;
- a new producer of an id fences all those before it, and aborts their open transactions;
- a commit may have an unknown outcome. Then the producer is over, because a late request of its own
  could end its next transaction: the outcome is read from the log, once a new producer has fenced
  it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ripple.core.errors import OutputError, RippleError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt


class BrokerError(RippleError):
    """The broker did not answer as it should.

    ``done`` is False when nothing was changed, None when that is unknown.
    """

    def __init__(self, message: str, *, done: bool | None) -> None:
        self.done = done
        super().__init__(message)


class FencedError(BrokerError):
    """A newer producer of the same id exists, or the broker has ended this one's transaction."""

    def __init__(self, message: str) -> None:
        super().__init__(message, done=False)


class UnknownOutcomeError(BrokerError):
    """A transaction's outcome is unknown; this producer is over."""

    def __init__(self, message: str) -> None:
        super().__init__(message, done=None)


class NoTopicError(BrokerError):
    """There is no such topic, or no such partition of it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, done=False)


class AnotherTopicError(BrokerError):
    """There is a topic of this name, and it is another one than there was."""

    def __init__(self, message: str) -> None:
        super().__init__(message, done=False)


class TooLargeError(BrokerError):
    """A record is larger than its topic takes."""

    def __init__(self, message: str) -> None:
        super().__init__(message, done=False)


class OffsetError(BrokerError):
    """There is nothing at this offset: it was removed, or was never there.

    ``earliest`` is the first offset that may be there.
    """

    def __init__(self, place: TopicPartition, offset: int, earliest: int, end: int) -> None:
        self.earliest = earliest
        super().__init__(
            f"{place}: there is no offset {offset}, the log has {earliest} to {end}", done=False
        )


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


Headers = tuple[tuple[str, bytes], ...]


class Record(NamedTuple):
    """A record to write; ``timestamp_ms`` since 1970 UTC."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0
    headers: Headers = ()


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Records in columns of one length.

    keys: binary, null where a record has none. values: binary, null of a tombstone. timestamps_ms:
    since 1970 UTC. headers: of each record; None where none has any.
    """

    keys: pa.Array
    values: pa.Array
    timestamps_ms: npt.NDArray[np.int64]
    headers: Sequence[Headers] | None = None

    @classmethod
    def of(cls, records: Iterable[Record]) -> Records:
        """Return a few records as columns."""
        rows = list(records)
        return cls(
            pa.array([row.key for row in rows], pa.binary()),
            pa.array([row.value for row in rows], pa.binary()),
            np.array([row.timestamp_ms for row in rows], np.int64),
            tuple(row.headers for row in rows) if any(row.headers for row in rows) else None,
        )

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.keys)

    def __iter__(self) -> Iterator[Record]:
        """Yield one record after the other, which is slow: for tests, and for a few."""
        headers = self.headers or ((),) * len(self)
        times = self.timestamps_ms.tolist()
        rows = zip(self.keys.to_pylist(), self.values.to_pylist(), times, headers, strict=True)
        return (Record(*row) for row in rows)


class Refusal(NamedTuple):
    """A record of a batch that cannot be read; reason: one of a few phrases. raw: its bytes."""

    offset: int
    reason: str
    raw: bytes


class Read(NamedTuple):
    """Records with their offsets, and the next offset to read.

    ``next_offset`` is past records that readers never see, so it may be far after the last record,
    and advance without any. ``refused`` has other offsets than the records.
    """

    offsets: npt.NDArray[np.int64]
    records: Records
    next_offset: int
    refused: Sequence[Refusal] = ()


class Producer(Protocol):
    """The only producer that may write transactions under its id, until there is a newer one.

    One caller at a time. After FencedError, UnknownOutcomeError, ``close`` and a call that was
    cancelled it takes nothing.
    """

    @property
    def epoch(self) -> int:
        """A number that grows with each producer of this id."""
        ...

    def begin(self) -> None:
        """Begin a transaction. Raises RuntimeError if there is one, and why this one is over."""
        ...

    async def send(self, place: TopicPartition, records: Records) -> None:
        """Write records to a partition, in this order, as part of the transaction.

        Raises BrokerError: the transaction can only be aborted; of these TooLargeError, which
        nothing but a smaller record helps; FencedError; UnknownOutcomeError.
        """
        ...

    async def send_all(
        self,
        parts: Mapping[TopicPartition, Records],
        offsets: tuple[str, Mapping[TopicPartition, int]] | None = None,
    ) -> Mapping[TopicPartition, int]:
        """Write records to partitions, and how far a group has read, at once; raises as ``send``.

        It may be any of them that is there already when it fails. Returns the offset of the first
        record by partition, -1 where the broker does not say.
        """
        ...

    async def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Note, as part of the transaction, how far a group has read; raises as ``send``.

        After all records: as the first request it waits longer for the transaction before.
        """
        ...

    async def commit(self) -> None:
        """Let everything be read, in all partitions, or nothing.

        Raises FencedError: it was not committed; UnknownOutcomeError.
        """
        ...

    async def abort(self) -> None:
        """Let nothing of it ever be read. Raises FencedError and UnknownOutcomeError."""
        ...

    async def close(self) -> None:
        """Take no more; an open transaction is ended by the next producer, or after a while."""
        ...


class Consumer(Protocol):
    """Reads partitions from given offsets; knows no groups and remembers nothing outside."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets, and no others any more."""
        ...

    async def read(self, *, records_max: int, wait_s: float) -> dict[TopicPartition, Read]:
        """Return the next records of some partitions, at most ``records_max`` in all.

        Waits up to ``wait_s`` for something to be there; empty if there was nothing. Raises
        BrokerError, of which OffsetError for an offset that is not there, and
        NoTopicError; positions are as before then, and also where this is cancelled.
        """
        ...

    async def close(self) -> None:
        """Read no more."""
        ...


class Broker(Protocol):
    """Topics, each of some partitions."""

    async def partitions(self, topic: str) -> int:
        """Return how many a topic has. Raises NoTopicError."""
        ...

    async def make(
        self,
        topic: str,
        partitions: int,
        *,
        is_compacted: bool = False,
        is_kept: bool = False,
        has_keys: bool = True,
    ) -> None:
        """Make a topic, unless there is one of this name, with however many partitions.

        is_kept: no retention by age or size; records go only by ``remove_before``. has_keys:
        whether the records that will be written have keys; raises OutputError for a topic that
        takes no others.
        """
        ...

    async def remove_before(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Remove the records before these offsets, for ever. Raises BrokerError."""
        ...

    async def read_by(self, group: str) -> dict[TopicPartition, int]:
        """Return the offsets of a group, by committed transactions; empty if none are known."""
        ...

    async def earliest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset that may still be there, by partition."""
        ...

    async def ends(
        self, places: Sequence[TopicPartition], *, committed: bool = True
    ) -> dict[TopicPartition, int]:
        """Return, by partition, the offset before which a reader sees everything now.

        Not ``committed``: the offset after all written records.
        """
        ...

    async def prepare(self, name: str, group: str | None) -> None:
        """Do early the part of the next producer's start that takes time, before one is fenced.

        group: the one for which it will write offsets, None for none.
        """
        ...

    async def producer(self, name: str) -> Producer:
        """Return a producer of this id; earlier ones are fenced, their open transactions aborted.

        A transaction that was being committed is committed when this returns.
        """
        ...

    def consumer(self, *, ahead: bool = True) -> Consumer:
        """Return a reader.

        ahead: whether it reads ahead, up to the end, and waits there for more. Not for a bounded
        read: later requests would queue after it.
        """
        ...

    async def close(self) -> None:
        """Release connections; producers and readers are closed before."""
        ...


async def make_lanes(broker: Broker, topic: str, lanes: int) -> None:
    """Make a topic that is lanes between stages, or find one of as many.

    Raises OutputError where there is one of other counts, and BrokerError.
    """
    await broker.make(topic, lanes, is_kept=True)
    found = await broker.partitions(topic)
    if found != lanes:
        raise OutputError(
            f"the repartition topic {topic} has {found} partitions, and the pipeline needs {lanes},"
            " one for each pair of a sender and a receiver: give the pipeline another name, or "
            "remove the topic, the checkpoints and the outputs to begin anew"
        )
