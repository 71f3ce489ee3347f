"""A partition that follows all of the stage before: what has arrived, and what is asked again."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.exchange.edges import Stream, cost_of
from ripple.exchange.wire.edge_messages import Follow, Release, Unfollow
from ripple.exchange.wire.errors import RemoteProtocolError
from ripple.exchange.wire.messages import cut_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ripple.core.cut import Cut
    from ripple.exchange.edges import Edge
    from ripple.exchange.limits import ExchangeLimits
    from ripple.exchange.peer_channel import PeerChannel


class CreditReceipt(Protocol):
    """Of a part of something that takes room on a connection until it is done with."""

    def done(self) -> None:
        """Give the room back."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came from a sender, by its number. turn, receipt: to give its room back with."""

    sender: int
    epoch: int
    changes: EdgeChanges = field(repr=False)
    turn: int = 0
    receipt: CreditReceipt | None = field(default=None, repr=False)


@dataclass(slots=True)
class _Source:
    """One sender. epoch, cut: what was applied of it; floor: the least epoch that is believed."""

    way: PeerChannel | None = None
    turn: int = 0
    epoch: int | None = None
    cut: Cut | None = None
    floor: int = 0
    parts: list[pa.RecordBatch] = field(default_factory=list)
    parts_rows: int = 0
    parts_bytes: int = 0

    def clear(self) -> None:
        """Forget what has arrived in part."""
        self.parts, self.parts_rows, self.parts_bytes = [], 0, 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Keep a part until the others are there."""
        self.parts.append(rows)
        self.parts_rows += rows.num_rows
        self.parts_bytes += rows.nbytes


class Subscription:
    """The receiver's side of all streams of one partition.

    Whoever applies what arrives takes it, and says of each what became of it. Invariant: all in
    the queue is of the present turn of its sender.
    """

    def __init__(
        self,
        edge: Edge,
        target: int,
        senders: int,
        *,
        limits: ExchangeLimits,
        turns: Callable[[], int],
        wake: Callable[[], None],
        refresh: Callable[[], None],
    ) -> None:
        """Follow over ``edge`` as partition ``target``; turns: each larger than those before.

        wake: called when something has arrived. refresh: lets all be routed again.
        """
        self.edge = edge
        self.target = target
        self._limits = limits
        self._turns = turns
        self._wake = wake
        self._refresh = refresh
        self._is_started = False
        self._sources = [_Source() for _ in range(senders)]
        self._queue: deque[Arrival] = deque()
        self._released_ns: int | None = None

    # --- what the partition asks ---

    def begin(self, sender: int, epoch: int | None, cut: Cut | None) -> None:
        """Say what was restored of a sender, before ``start``."""
        source = self._sources[sender]
        source.epoch, source.cut = epoch, cut

    async def find(self) -> None:
        """Do nothing: senders find it."""

    def start(self) -> None:
        """Follow all senders from now on."""
        self._is_started = True
        self._refresh()

    def reached_before(self, sender: int) -> Cut | None:  # noqa: ARG002 - of Follows
        """Return None: a sender has committed what lives before had of it."""
        return None

    def take(self) -> Sequence[Arrival]:
        """Return what has arrived, in an order that keeps that of each sender."""
        taken = list(self._queue)
        self._queue.clear()
        return taken

    async def sync(self) -> None:
        """Do nothing: copies are soft."""

    def applied(self, arrival: Arrival) -> None:
        """Say that the partition has taken it in."""
        source = self._sources[arrival.sender]
        source.epoch, source.cut = arrival.epoch, arrival.changes.cut
        self._give_back(arrival)

    def refused(self, arrival: Arrival) -> None:
        """Say that it does not fit what was taken in before: the stream begins again."""
        self._give_back(arrival)
        if arrival.turn == self._sources[arrival.sender].turn:
            self._ask(arrival.sender)

    def dropped(self, arrival: Arrival) -> None:
        """Say that it means nothing: of an owner that is none any more."""
        self._give_back(arrival)

    def release(self, watermark_ns: int) -> None:
        """Say that the state is stored, with all final rows up to a watermark."""
        self._released_ns = watermark_ns
        for sender, source in enumerate(self._sources):
            if source.way is not None:
                release = Release(self.edge.name, sender, self.target, watermark_ns)
                source.way.say(release)

    # --- what the network says ---

    def route(self, sender: int, way: PeerChannel | None, floor: int) -> None:
        """Follow a sender along ``way`` from now on, and believe no epoch below ``floor``."""
        source = self._sources[sender]
        source.floor = max(floor, source.floor)
        if way is source.way or not self._is_started:
            return
        if source.way is not None:
            source.way.say(Unfollow(self.edge.name, sender, self.target))
        source.way = way
        self._ask(sender)

    def lost(self, way: PeerChannel) -> None:
        """Note that a way has ended."""
        for sender, source in enumerate(self._sources):
            if source.way is way:
                source.way = None
                self._forget(sender)

    def end(self) -> None:
        """Follow nobody any more."""
        for sender in range(len(self._sources)):
            self.route(sender, None, 0)

    def arrived(
        self, way: PeerChannel, sender: int, turn: int, epoch: int, changes: EdgeChanges, *, start:
        int,
        more: bool, receipt: CreditReceipt | None,
    ) -> None:  # fmt: skip
        """Take what a sender has sent, or a part of it. Raises RemoteProtocolError."""
        source = self._sources[sender]
        if source.way is not way or source.turn != turn or epoch < source.floor:
            if receipt is not None:
                receipt.done()
            return
        if start == 0:
            source.clear()  # of an owner before that has not ended what it began
        if not more and start == 0:
            self._queue.append(Arrival(sender, epoch, changes, turn, receipt))
            self._wake()
            return
        if start != source.parts_rows:
            raise RemoteProtocolError(
                f"{Stream(self.edge.name, sender, self.target)} goes on at row {start}, after "
                f"{source.parts_rows} rows"
            )
        source.add(changes.rows)
        # A part's room is given back at once, or a table larger than it would never arrive.
        if receipt is not None:
            receipt.done()
        if source.parts_bytes > self._limits.table_bytes_max:
            raise RemoteProtocolError(
                f"{Stream(self.edge.name, sender, self.target)} has sent {source.parts_bytes} "
                f"bytes of one table; table_bytes_max is {self._limits.table_bytes_max}"
            )
        if not more:
            rows = pa.concat_batches(source.parts)
            source.clear()
            whole = EdgeChanges(
                changes.since, changes.cut, changes.watermark_ns, rows, changes.traces
            )
            self._queue.append(Arrival(sender, epoch, whole, turn))
            self._wake()

    def _ask(self, sender: int) -> None:
        """Begin a stream, or begin it again, from what was applied."""
        self._forget(sender)
        source = self._sources[sender]
        source.turn = self._turns()
        if source.way is not None:
            source.way.say(
                Follow(
                    self.edge.name,
                    sender,
                    self.target,
                    source.turn,
                    source.epoch,
                    None if source.cut is None else cut_of(source.cut),
                    self._limits.credit_rows,
                    self._released_ns,
                )
            )

    def _forget(self, sender: int) -> None:
        """Drop what has arrived of a sender and was not taken."""
        self._sources[sender].clear()
        for arrival in self._queue:
            if arrival.sender == sender and arrival.receipt is not None:
                arrival.receipt.done()
        self._queue = deque(one for one in self._queue if one.sender != sender)

    def _give_back(self, arrival: Arrival) -> None:
        if arrival.receipt is not None:
            arrival.receipt.done()
        source = self._sources[arrival.sender]
        if source.way is not None and source.turn == arrival.turn:
            stream = Stream(self.edge.name, arrival.sender, self.target)
            source.way.grant(stream, arrival.turn, cost_of(arrival.changes))
