"""The publisher's side of state edges and live outputs: subscribers, credit, and offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ripple.core import cut as cuts
from ripple.core.tracing import CONTEXTS_MAX
from ripple.exchange.edges import Stream, cost_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ripple.core.cut import Cut
    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.exchange.edges import Edge
    from ripple.exchange.limits import ExchangeLimits
    from ripple.exchange.peer_channel import PeerChannel
    from ripple.exchange.wire.edge_messages import Follow


class Published(Protocol):
    """The source of a publication: a partition, for another stage, or an output, for clients."""

    @property
    def cut(self) -> Cut:
        """The cut that it has reached."""

    @property
    def watermark_ns(self) -> int:
        """The watermark there."""

    def given_to(self, target: int) -> Cut | None:
        """Return the cut of a target's last changes; None if the table is due."""

    def outgoing_to(self, targets: Collection[int]) -> Mapping[int, EdgeChanges]:
        """Return the changes for some targets, each since its last ones."""

    def table_for(self, target: int) -> EdgeChanges:
        """Return a target's table at the present cut."""

    def restart(self, target: int) -> None:
        """Send a target the whole table next, and retain no changes until then."""

    def release(self, target: int, watermark_ns: int) -> None:
        """Discard final rows for a target."""


@dataclass(slots=True, eq=False)
class _Subscriber:
    """A subscriber to a target's stream: the target's owner, or its successor.

    asked: its Follow, with the cut that it has. credit_rows: below 0 when a batch exceeded the
    credit. is_flowing: it was sent all changes taken from the engine for the target; else the table
    is due, unless it has the same already. is_missing: it could not be sent the last offer.
    """

    channel: PeerChannel
    asked: Follow
    cut: Cut
    credit_rows: int
    is_flowing: bool = False
    is_missing: bool = False


class Publication:
    """The streams of one partition to its subscribers, under one epoch.

    Only committed changes are sent, except over an uncommitted edge. Invariant: a flowing
    subscriber has been sent, or will be by the next ``give``, all changes taken from the engine for
    its target, so that the next changes apply to its table.
    """

    def __init__(
        self,
        edge: Edge,
        number: int,
        epoch: int,
        *,
        targets: int,
        limits: ExchangeLimits,
        wake: Callable[[], None],
    ) -> None:
        """Publish partition ``number`` over ``edge``.

        wake: called when an offer is wanted, or is due: a subscriber that had to wait at the last
        offer can get changes now, so one is made even without a new commit.
        """
        self.edge = edge
        self.number = number
        self.epoch = epoch
        self.is_wanted = self.is_owed = False
        self.superseded_by: int | None = None
        self._limits = limits
        self._wake = wake
        self._subscribers: list[list[_Subscriber]] = [[] for _ in range(targets)]
        self._absent = [limits.absent_offers] * targets
        self._released: dict[int, int] = {}
        self._given_ns: list[int | None] = [None] * targets  # of the last changes
        self._taken: list[tuple[int, _Subscriber, EdgeChanges]] = []
        self._traces: dict[int, tuple[str, ...]] = {}  # of changes not yet sent, by target

    def stream(self, target: int) -> Stream:
        """Return the stream to a target."""
        return Stream(self.edge.name, self.number, target)

    @property
    def targets(self) -> int:
        """The number of partitions that it is for."""
        return len(self._subscribers)

    def follow(self, channel: PeerChannel, asked: Follow) -> None:
        """Begin a stream to a subscriber, or restart it."""
        if asked.epoch is not None and asked.epoch > self.epoch:
            # Nothing from this epoch, but perhaps from the next one here.
            self.superseded_by = max(self.superseded_by or 0, asked.epoch)
        self.unfollow(channel, asked.target)
        subscriber = _Subscriber(channel, asked, dict(asked.cut or ()), asked.rows)
        self._subscribers[asked.target].append(subscriber)
        if asked.released_ns is not None:
            self.release(asked.target, asked.released_ns)
        self._want()

    def unfollow(self, channel: PeerChannel, target: int) -> None:
        """End a stream."""
        channel.drop(self.stream(target))
        self._subscribers[target] = [
            one for one in self._subscribers[target] if one.channel is not channel
        ]

    def end(self) -> list[tuple[PeerChannel, Follow]]:
        """End all streams; return the requests, for the next owner here."""
        self._taken.clear()
        asked = [(one.channel, one.asked) for each in self._subscribers for one in each]
        for channel, follow in asked:
            self.unfollow(channel, follow.target)
        return asked

    def gone(self, channel: PeerChannel) -> None:
        """End all streams of a channel."""
        for target in range(self.targets):
            self.unfollow(channel, target)

    def granted(self, channel: PeerChannel, target: int, turn: int, rows: int) -> None:
        """Take credit back."""
        for one in self._subscribers[target]:
            if one.channel is channel and one.asked.turn == turn:
                one.credit_rows += rows
                self._request_offer(one)

    def _request_offer(self, one: _Subscriber) -> None:
        if one.is_missing and one.credit_rows > 0:
            self.is_owed = True
            self._wake()

    def room(self) -> None:
        """Note that a channel has room again, for which tables and changes may wait."""
        for one in (one for subscribers in self._subscribers for one in subscribers):
            self._request_offer(one)
        if any(not one.is_flowing for subscribers in self._subscribers for one in subscribers):
            self._want()

    def release(self, target: int, watermark_ns: int) -> None:
        """Note the watermark up to which final rows are durable at a target."""
        before = self._released.get(target, watermark_ns)
        self._released[target] = max(watermark_ns, before)

    @property
    def is_idle(self) -> bool:
        """Whether there are no subscribers, no changes retained for lost ones, and no offer due.

        One that is wanted stays so until it is made, even if its subscriber has left since.
        """
        return not self.is_wanted and all(
            not subscribers and absent > self._limits.absent_offers
            for subscribers, absent in zip(self._subscribers, self._absent, strict=True)
        )

    def _want(self) -> None:
        self.is_wanted = True
        self._wake()

    def trace(self, contexts: tuple[str, ...]) -> None:
        """Set the trace contexts of the next offer."""
        for target, subscribers in enumerate(self._subscribers):
            if subscribers:
                self._traces[target] = (self._traces.get(target, ()) + contexts)[-CONTEXTS_MAX:]

    def offer(self, partition: Published) -> None:
        """Send the partition's present state to all subscribers that may get it."""
        self.take(partition)
        self.give()

    def give(self) -> None:
        """Send the taken changes, except to subscribers that left or restarted since."""
        taken, self._taken = self._taken, []
        for target, one, what in taken:
            if one in self._subscribers[target]:
                one.channel.send_changes(self.stream(target), one.asked.turn, self.epoch, what)

    def take(self, partition: Published) -> None:
        """Take the changes for all subscribers that may get them, to be sent by ``give``.

        They are of the present state; later changes do not alter them.
        """
        assert not self._taken, "the changes taken before were not sent"
        self.is_wanted = self.is_owed = False
        for target, watermark_ns in self._released.items():
            partition.release(target, watermark_ns)
        self._released.clear()
        turns = {}
        for target, subscribers in enumerate(self._subscribers):
            self._keep(target, partition)
            chosen = [one for one in subscribers if self._may_get(target, one, partition)]
            flowing = [one for one in subscribers if one.is_flowing]
            for one in flowing:
                one.is_missing = one not in chosen and not self._has_all(target, partition)
            if flowing and self._has_all(target, partition):
                self._begin(target, chosen, partition)
            # An up-to-date subscriber must not miss changes because another one begins. External
            # clients do not wait for a slow one, which gets the table instead.
            elif chosen and (self.edge.output or not flowing or any(o.is_flowing for o in chosen)):
                turns[target] = chosen
        if turns:
            self._give(turns, partition)

    def _keep(self, target: int, partition: Published) -> None:
        """Let the engine retain nothing for a target without subscribers."""
        if self._subscribers[target]:
            self._absent[target] = 0
            return
        if self._absent[target] == self._limits.absent_offers:
            partition.restart(target)
        self._absent[target] += 1

    def _may_get(self, target: int, one: _Subscriber, partition: Published) -> bool:
        if one.credit_rows <= 0 or not one.channel.has_room or one.channel.has(self.stream(target)):
            return False
        if one.asked.epoch is not None and one.asked.epoch > self.epoch:
            return False
        if one.is_flowing:
            return not self._has_all(target, partition)
        # A subscriber that is ahead, from a previous owner, waits until this partition has caught
        # up; except for uncommitted rows, which may never come again as they were.
        return self.edge.is_uncommitted or cuts.is_within(one.cut, partition.cut)

    def _has_all(self, target: int, partition: Published) -> bool:
        """Return whether a target was sent everything up to the present state."""
        given = dict(partition.given_to(target) or {})
        return given == partition.cut and self._given_ns[target] == partition.watermark_ns

    def _begin(self, target: int, chosen: Sequence[_Subscriber], partition: Published) -> None:
        """Let subscribers begin at the state of the up-to-date ones."""
        for one in chosen:
            one.is_flowing = True
            is_there = one.asked.cut is not None and one.cut == partition.cut
            if is_there and one.asked.epoch == self.epoch:
                continue  # a reconnect, with nothing lost
            table = partition.table_for(target)
            one.credit_rows -= cost_of(table)
            self._taken.append((target, one, table))

    def _give(self, turns: Mapping[int, list[_Subscriber]], partition: Published) -> None:
        for target in turns:
            given = partition.given_to(target)
            for one in turns[target]:
                # A reconnect, with nothing lost.
                has_all = given is not None and one.asked.cut is not None and one.cut == dict(given)
                one.is_flowing = one.is_flowing or (has_all and one.asked.epoch == self.epoch)
        for target, changes in partition.outgoing_to(turns).items():
            self._given_ns[target] = changes.watermark_ns
            traces = self._traces.pop(target, ()) if self._traces else ()
            for one in self._subscribers[target]:
                if one not in turns[target]:
                    one.is_flowing = False
                    continue
                what = changes
                if not one.is_flowing and changes.since is not None:
                    what = partition.table_for(target)
                if traces and what.rows.num_rows:
                    what = what.traced(traces)
                one.is_flowing = True
                one.credit_rows -= cost_of(what)
                self._taken.append((target, one, what))
