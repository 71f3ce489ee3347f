"""The subscriber's side of a state edge: one downstream partition, all upstream ones."""

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
    """The receipt for data that take room on a connection until they are applied."""

    def done(self) -> None:
        """Return the room."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Changes from a sender, by its number. turn, receipt: for returning its credit."""

    sender: int
    epoch: int
    changes: EdgeChanges = field(repr=False)
    turn: int = 0
    receipt: CreditReceipt | None = field(default=None, repr=False)


@dataclass(slots=True)
class _Source:
    """One sender. epoch, cut: of the last applied changes; floor: the least accepted epoch."""

    channel: PeerChannel | None = None
    turn: int = 0
    epoch: int | None = None
    cut: Cut | None = None
    floor: int = 0
    parts: list[pa.RecordBatch] = field(default_factory=list)
    parts_rows: int = 0
    parts_bytes: int = 0

    def clear(self) -> None:
        """Discard partly arrived changes."""
        self.parts, self.parts_rows, self.parts_bytes = [], 0, 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Buffer a part until the others arrive."""
        self.parts.append(rows)
        self.parts_rows += rows.num_rows
        self.parts_bytes += rows.nbytes


class Subscription:
    """The incoming streams of one partition.

    The task takes arrivals, and reports each as applied, refused or dropped. Invariant: the queue
    holds arrivals of their senders' present turns only.
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
        """Subscribe over ``edge`` as partition ``target``.

        turns: each larger than those before. wake: called when something has arrived. refresh:
        looks all routes up again.
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

    # --- called by the partition ---

    def begin(self, sender: int, epoch: int | None, cut: Cut | None) -> None:
        """Set the restored state of a sender, before ``start``."""
        source = self._sources[sender]
        source.epoch, source.cut = epoch, cut

    async def find(self) -> None:
        """Do nothing: senders report it."""

    def start(self) -> None:
        """Subscribe to all senders."""
        self._is_started = True
        self._refresh()

    def reached_before(self, sender: int) -> Cut | None:  # noqa: ARG002 - the contract of an upstream intake
        """Return None: a sender has committed all changes that previous tasks had of it."""
        return None

    def take(self) -> Sequence[Arrival]:
        """Return the arrivals, in order for each sender."""
        taken = list(self._queue)
        self._queue.clear()
        return taken

    async def sync(self) -> None:
        """Do nothing: copies are soft."""

    def applied(self, arrival: Arrival) -> None:
        """Report that the partition has applied it."""
        source = self._sources[arrival.sender]
        source.epoch, source.cut = arrival.epoch, arrival.changes.cut
        self._give_back(arrival)

    def refused(self, arrival: Arrival) -> None:
        """Report that it does not continue the applied state: the stream is restarted."""
        self._give_back(arrival)
        if arrival.turn == self._sources[arrival.sender].turn:
            self._ask(arrival.sender)

    def dropped(self, arrival: Arrival) -> None:
        """Report that it is obsolete: from a replaced owner."""
        self._give_back(arrival)

    def release(self, watermark_ns: int) -> None:
        """Report that the state is stored, with all final rows up to a watermark."""
        self._released_ns = watermark_ns
        for sender, source in enumerate(self._sources):
            if source.channel is not None:
                release = Release(self.edge.name, sender, self.target, watermark_ns)
                source.channel.send(release)

    # --- called by the exchange ---

    def route(self, sender: int, channel: PeerChannel | None, floor: int) -> None:
        """Use this channel to a sender from now on, and accept no epoch below ``floor``."""
        source = self._sources[sender]
        source.floor = max(floor, source.floor)
        if channel is source.channel or not self._is_started:
            return
        if source.channel is not None:
            source.channel.send(Unfollow(self.edge.name, sender, self.target))
        source.channel = channel
        self._ask(sender)

    def lost(self, channel: PeerChannel) -> None:
        """Note that a channel has ended."""
        for sender, source in enumerate(self._sources):
            if source.channel is channel:
                source.channel = None
                self._forget(sender)

    def end(self) -> None:
        """End the subscription."""
        for sender in range(len(self._sources)):
            self.route(sender, None, 0)

    def arrived(
        self, channel: PeerChannel, sender: int, turn: int, epoch: int, changes: EdgeChanges,
        *, start: int, more: bool, receipt: CreditReceipt | None,
    ) -> None:  # fmt: skip
        """Handle a sender's changes, or a part of them. Raises RemoteProtocolError."""
        source = self._sources[sender]
        if source.channel is not channel or source.turn != turn or epoch < source.floor:
            if receipt is not None:
                receipt.done()
            return
        if start == 0:
            source.clear()  # unfinished changes of a previous owner
        if not more and start == 0:
            self._queue.append(Arrival(sender, epoch, changes, turn, receipt))
            self._wake()
            return
        if start != source.parts_rows:
            raise RemoteProtocolError(
                f"{Stream(self.edge.name, sender, self.target)} continues at row {start}, after "
                f"{source.parts_rows} rows"
            )
        source.add(changes.rows)
        # A part's room is returned at once, or a table larger than the window would never arrive.
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
        """Begin a stream, or restart it, from the applied state."""
        self._forget(sender)
        source = self._sources[sender]
        source.turn = self._turns()
        if source.channel is not None:
            source.channel.send(
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
        """Drop a sender's arrivals that were not taken."""
        self._sources[sender].clear()
        for arrival in self._queue:
            if arrival.sender == sender and arrival.receipt is not None:
                arrival.receipt.done()
        self._queue = deque(one for one in self._queue if one.sender != sender)

    def _give_back(self, arrival: Arrival) -> None:
        if arrival.receipt is not None:
            arrival.receipt.done()
        source = self._sources[arrival.sender]
        if source.channel is not None and source.turn == arrival.turn:
            stream = Stream(self.edge.name, arrival.sender, self.target)
            source.channel.return_credit(stream, arrival.turn, cost_of(arrival.changes))
