"""A partition that others follow: who they are, and when they are given what."""

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
    """What is followed: a partition, by the next stage, or one of its outputs, by those outside."""

    @property
    def cut(self) -> Cut:
        """How far it has come."""

    @property
    def watermark_ns(self) -> int:
        """The watermark there."""

    def given_to(self, target: int) -> Cut | None:
        """Return the cut of what a target was given last; None if the table is due."""

    def outgoing_to(self, targets: Collection[int]) -> Mapping[int, EdgeChanges]:
        """Return what changed for some targets since each was last given something."""

    def table_for(self, target: int) -> EdgeChanges:
        """Return all that a target needs to begin."""

    def restart(self, target: int) -> None:
        """Give a target the whole table next, and keep nothing for it until then."""

    def release(self, target: int, watermark_ns: int) -> None:
        """Forget final rows for a target."""


@dataclass(slots=True, eq=False)
class _Follower:
    """One that follows a target's stream: its owner, or whoever is about to be.

    asked: what it said it has. credit_rows: less than 0 when more was taken than there was credit
    for. is_flowing: it was put all that the engine has given for the target; else the table is due,
    unless it has the same already. is_missing: it could not be given what there was at the last
    offer.
    """

    way: PeerChannel
    asked: Follow
    cut: Cut
    credit_rows: int
    is_flowing: bool = False
    is_missing: bool = False


class Publication:
    """The sender's side of all streams of one partition, under one epoch.

    Only what is committed is given, but over an uncommitted edge. Invariant: whoever is flowing
    has been put, or will be with what was taken, all that the engine has given for its target, so
    that changes fit what it has.
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
        """Send from partition ``number`` over ``edge``.

        wake: called when an offer is wanted, or is owed: somebody may get now what they could not
        at the last one, so where no other comes by itself one is made.
        """
        self.edge = edge
        self.number = number
        self.epoch = epoch
        self.is_wanted = self.is_owed = False
        self.superseded_by: int | None = None
        self._limits = limits
        self._wake = wake
        self._followers: list[list[_Follower]] = [[] for _ in range(targets)]
        self._absent = [limits.absent_offers] * targets
        self._released: dict[int, int] = {}
        self._given_ns: list[int | None] = [None] * targets  # the watermark of what was given
        self._taken: list[tuple[int, _Follower, EdgeChanges]] = []
        self._traces: dict[int, tuple[str, ...]] = {}  # of what was not given yet, by target

    def stream(self, target: int) -> Stream:
        """Return the stream to a target."""
        return Stream(self.edge.name, self.number, target)

    @property
    def targets(self) -> int:
        """How many partitions the next stage has."""
        return len(self._followers)

    def follow(self, way: PeerChannel, asked: Follow) -> None:
        """Let somebody begin a stream, or begin it again."""
        if asked.epoch is not None and asked.epoch > self.epoch:
            # It gets nothing of this one, but may of the next one here.
            self.superseded_by = max(self.superseded_by or 0, asked.epoch)
        self.unfollow(way, asked.target)
        follower = _Follower(way, asked, dict(asked.cut or ()), asked.rows)
        self._followers[asked.target].append(follower)
        if asked.released_ns is not None:
            self.release(asked.target, asked.released_ns)
        self._want()

    def unfollow(self, way: PeerChannel, target: int) -> None:
        """Let a stream end."""
        way.drop(self.stream(target))
        self._followers[target] = [one for one in self._followers[target] if one.way is not way]

    def end(self) -> list[tuple[PeerChannel, Follow]]:
        """Let all streams end; return what was asked, for whoever comes next."""
        self._taken.clear()
        asked = [(one.way, one.asked) for each in self._followers for one in each]
        for way, follow in asked:
            self.unfollow(way, follow.target)
        return asked

    def gone(self, way: PeerChannel) -> None:
        """Let all streams along a way end."""
        for target in range(self.targets):
            self.unfollow(way, target)

    def granted(self, way: PeerChannel, target: int, turn: int, rows: int) -> None:
        """Take credit back."""
        for one in self._followers[target]:
            if one.way is way and one.asked.turn == turn:
                one.credit_rows += rows
                self._owe(one)

    def _owe(self, one: _Follower) -> None:
        if one.is_missing and one.credit_rows > 0:
            self.is_owed = True
            self._wake()

    def room(self) -> None:
        """Take notice that a way has room again: tables may wait for that, and changes."""
        for one in (one for followers in self._followers for one in followers):
            self._owe(one)
        if any(not one.is_flowing for followers in self._followers for one in followers):
            self._want()

    def release(self, target: int, watermark_ns: int) -> None:
        """Note up to where final rows are durable at a target."""
        before = self._released.get(target, watermark_ns)
        self._released[target] = max(watermark_ns, before)

    @property
    def is_idle(self) -> bool:
        """Whether nobody follows, and nothing is kept for who has left."""
        return all(
            not followers and absent > self._limits.absent_offers
            for followers, absent in zip(self._followers, self._absent, strict=True)
        )

    def _want(self) -> None:
        self.is_wanted = True
        self._wake()

    def trace(self, contexts: tuple[str, ...]) -> None:
        """Take the traces that what is offered next belongs to."""
        for target, followers in enumerate(self._followers):
            if followers:
                self._traces[target] = (self._traces.get(target, ()) + contexts)[-CONTEXTS_MAX:]

    def offer(self, partition: Published) -> None:
        """Let those who may get more of what the partition shows get it."""
        self.take(partition)
        self.give()

    def give(self) -> None:
        """Let them get what was taken; who has left since, or begun anew, gets nothing of it."""
        taken, self._taken = self._taken, []
        for target, one, what in taken:
            if one in self._followers[target]:
                one.way.put(self.stream(target), one.asked.turn, self.epoch, what)

    def take(self, partition: Published) -> None:
        """Take what those may get, by what the partition shows now, for ``give``.

        It may change in between; what was taken does not.
        """
        assert not self._taken, "what was taken before was not given"
        self.is_wanted = self.is_owed = False
        for target, watermark_ns in self._released.items():
            partition.release(target, watermark_ns)
        self._released.clear()
        turns = {}
        for target, followers in enumerate(self._followers):
            self._keep(target, partition)
            chosen = [one for one in followers if self._may_get(target, one, partition)]
            flowing = [one for one in followers if one.is_flowing]
            for one in flowing:
                one.is_missing = one not in chosen and not self._has_all(target, partition)
            if flowing and self._has_all(target, partition):
                self._begin(target, chosen, partition)
            # Who has all there is must not miss anything because somebody else begins. Of those
            # outside none waits for a slow one, which gets the table instead.
            elif chosen and (self.edge.output or not flowing or any(o.is_flowing for o in chosen)):
                turns[target] = chosen
        if turns:
            self._give(turns, partition)

    def _keep(self, target: int, partition: Published) -> None:
        """Let the engine keep nothing for a target that nobody follows any more."""
        if self._followers[target]:
            self._absent[target] = 0
            return
        if self._absent[target] == self._limits.absent_offers:
            partition.restart(target)
        self._absent[target] += 1

    def _may_get(self, target: int, one: _Follower, partition: Published) -> bool:
        if one.credit_rows <= 0 or not one.way.has_room or one.way.has(self.stream(target)):
            return False
        if one.asked.epoch is not None and one.asked.epoch > self.epoch:
            return False
        if one.is_flowing:
            return not self._has_all(target, partition)
        # One that has come further, from an owner before, waits until this partition has, too; but
        # for what no sink had committed, which may never come again as it was.
        return self.edge.is_uncommitted or cuts.is_within(one.cut, partition.cut)

    def _has_all(self, target: int, partition: Published) -> bool:
        """Return whether what was given last is all there is."""
        given = dict(partition.given_to(target) or {})
        return given == partition.cut and self._given_ns[target] == partition.watermark_ns

    def _begin(self, target: int, chosen: Sequence[_Follower], partition: Published) -> None:
        """Let some begin where those are who have all there is already."""
        for one in chosen:
            one.is_flowing = True
            is_there = one.asked.cut is not None and one.cut == partition.cut
            if is_there and one.asked.epoch == self.epoch:
                continue  # a connection broke, and nothing was lost
            table = partition.table_for(target)
            one.credit_rows -= cost_of(table)
            self._taken.append((target, one, table))

    def _give(self, turns: Mapping[int, list[_Follower]], partition: Published) -> None:
        for target in turns:
            given = partition.given_to(target)
            for one in turns[target]:
                # A connection broke, and nothing was lost.
                has_all = given is not None and one.asked.cut is not None and one.cut == dict(given)
                one.is_flowing = one.is_flowing or (has_all and one.asked.epoch == self.epoch)
        for target, changes in partition.outgoing_to(turns).items():
            self._given_ns[target] = changes.watermark_ns
            traces = self._traces.pop(target, ()) if self._traces else ()
            for one in self._followers[target]:
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
