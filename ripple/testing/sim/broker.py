"""A broker in memory, with Kafka's first version of transactions and its faults."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ripple.testing.sim.broker_log import BrokerLog
from ripple.world.broker import BrokerError, FencedError, NoTopicError, Record, TopicPartition

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

    from ripple.testing.sim.loop import SimLoop

TRANSACTION_SECONDS_MAX = 60.0


@dataclass(slots=True)
class Transactions:
    """The transactions of one id. ``ended``: whether the last one was committed, if there was one.

    They have no numbers: a late request looks like one for the transaction that is open now, which
    is the flaw of the protocol's first version.
    """

    epoch: int = -1
    timer: asyncio.TimerHandle | None = None
    open: dict[TopicPartition, BrokerLog] = field(default_factory=dict)
    is_open: bool = False
    ended: bool | None = None
    sent: dict[TopicPartition, int] = field(default_factory=dict)
    read: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)


class SimBroker:
    """Topics and transactions, which outlive every process. A scenario makes and prunes topics."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._topics: dict[str, list[BrokerLog]] = {}
        self._ids: dict[str, Transactions] = {}
        self._read: dict[tuple[str, TopicPartition], int] = {}
        self._waiting: dict[object, Callable[[], None]] = {}

    # What a scenario does.

    def create(self, topic: str, partitions: int) -> None:
        """Make a topic, or give one more partitions."""
        logs = self._topics.setdefault(topic, [])
        logs += [
            BrokerLog(TopicPartition(topic, number)) for number in range(len(logs), partitions)
        ]

    def make(self, topic: str, partitions: int) -> None:
        """Make a topic, unless there is one of this name."""
        if topic not in self._topics:
            self.create(topic, partitions)

    def delete(self, topic: str) -> None:
        """Remove a topic with all its records."""
        del self._topics[topic]
        self._changed()

    def read_by(self, group: str) -> dict[TopicPartition, int]:
        """Return the committed offsets of a group."""
        return {place: offset for (of, place), offset in self._read.items() if of == group}

    def append(self, place: TopicPartition, records: Sequence[Record]) -> None:
        """Write without a transaction, as others do."""
        self.log(place).append("", tuple(records))
        self._changed()

    def remove_before(self, place: TopicPartition, offset: int) -> None:
        """Let retention remove the records before an offset."""
        self.log(place).remove_before(offset)

    def compact(self, place: TopicPartition) -> None:
        """Let compaction leave the last record of each key."""
        self.log(place).compact()

    def committed(self, place: TopicPartition) -> list[Record]:
        """Return all visible records: an onlooker's view."""
        log = self.log(place)
        return list(log.read(log.start, log.end + 1).records)

    # Requests.

    def partitions(self, topic: str) -> int:
        """Return how many a topic has. Raises NoTopicError."""
        if topic not in self._topics:
            raise NoTopicError(f"there is no topic {topic}")
        return len(self._topics[topic])

    def log(self, place: TopicPartition) -> BrokerLog:
        """Return a partition. Raises NoTopicError."""
        if not 0 <= place.partition < self.partitions(place.topic):
            raise NoTopicError(f"there is no partition {place}")
        return self._topics[place.topic][place.partition]

    def seen(self, place: TopicPartition) -> BrokerLog:
        """Return a partition as readers see it. Raises NoTopicError."""
        return self.log(place)

    def begin_producer(self, name: str) -> int:
        """Fence an id's producers, abort their open transactions; return the new epoch."""
        transactions = self._ids.setdefault(name, Transactions())
        if transactions.is_open:
            self._end(name, transactions, commits=False)
        transactions.epoch += 1
        transactions.sent.clear()
        transactions.ended = None
        return transactions.epoch

    def send(
        self,
        name: str,
        epoch: int,
        place: TopicPartition,
        sequence: int,
        records: tuple[Record, ...],
    ) -> int:
        """Add records to the open transaction, or begin one; records sent again are there once.

        Returns the offset of the first, -1 for records sent again. Raises FencedError.
        """
        transactions = self._of(name, epoch)
        log = self.log(place)
        if sequence < transactions.sent.get(place, 0):
            return -1
        transactions.sent[place] = sequence + 1
        self._open(name, transactions)
        transactions.open[place] = log
        first = log.end
        log.append(name, records)
        return first

    def send_offsets(
        self, name: str, epoch: int, group: str, offsets: Mapping[TopicPartition, int]
    ) -> None:
        """Note in the open transaction, or begin one, how far a group has read."""
        transactions = self._of(name, epoch)
        self._open(name, transactions)
        transactions.read.update(((group, place), offset) for place, offset in offsets.items())

    def end(self, name: str, epoch: int, *, commits: bool) -> None:
        """End the open transaction, even if the request was meant for another one.

        Repeating the last request is no error, asking for the contrary is. Raises BrokerError.
        """
        transactions = self._of(name, epoch)
        if transactions.is_open:
            self._end(name, transactions, commits=commits)
        elif transactions.ended is not None and transactions.ended != commits:
            done = "committed" if transactions.ended else "aborted"
            raise BrokerError(f"{name}: the transaction was {done}", done=False)

    def when_changed(self, reader: object, notify: Callable[[], None]) -> None:
        """Call ``notify`` of a reader once, when more can be read somewhere."""
        self._waiting[reader] = notify

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Call ``act`` when a late request arrives; its sender has given up."""

        def arrive() -> None:
            with suppress(BrokerError):
                act()

        self._loop.call_later(seconds, arrive)

    def _open(self, name: str, transactions: Transactions) -> None:
        if not transactions.is_open:
            transactions.is_open = True
            transactions.timer = self._loop.call_later(
                TRANSACTION_SECONDS_MAX, self._expire, name, transactions
            )

    def _of(self, name: str, epoch: int) -> Transactions:
        transactions = self._ids[name]
        if epoch != transactions.epoch:
            raise FencedError(f"{name}: epoch {epoch} was fenced by {transactions.epoch}")
        return transactions

    def _end(self, name: str, transactions: Transactions, *, commits: bool) -> None:
        for log in transactions.open.values():
            log.decide(name, commits=commits)
        assert transactions.timer is not None
        transactions.timer.cancel()
        transactions.open.clear()
        if commits:
            self._read.update(transactions.read)
        transactions.read.clear()
        transactions.is_open = False
        transactions.ended = commits
        self._changed()

    def _expire(self, name: str, transactions: Transactions) -> None:
        """End a transaction that takes too long, and fence its producer."""
        self._end(name, transactions, commits=False)
        transactions.epoch += 1

    def _changed(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for notify in waiting.values():
            notify()
