"""The exchange of one process: its partitions, the ways to others, and who is followed where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from ripple.core.errors import InputError
from ripple.exchange.edges import Stream, edge_name, edges_of, shown_of
from ripple.exchange.limits import ExchangeLimits
from ripple.exchange.publication import Publication
from ripple.exchange.publications import Publications
from ripple.exchange.session import Session, Traffic
from ripple.exchange.singles import Singles, singles_of
from ripple.exchange.subscription import Subscription
from ripple.exchange.wire.edge_messages import Follow, Release, Unfollow
from ripple.exchange.wire.errors import RemoteProtocolError
from ripple.exchange.wire.messages import Reason
from ripple.model.pipeline.topology import stages_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ripple.core.credentials import Proven
    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.exchange.edges import Edge
    from ripple.exchange.peer_channel import PeerChannel
    from ripple.exchange.singles import SinglePeer
    from ripple.exchange.subscription import CreditReceipt
    from ripple.model.pipeline.plan import Plan


class Route(NamedTuple):
    """Where a partition is: its owner's process, that one's address, and an epoch.

    epoch: the least that the owner may have, 0 if nothing is known.
    """

    process: str
    address: str
    epoch: int = 0


@dataclass(slots=True)
class _Asked:
    """A Follow of a partition that is not here, or not yet."""

    way: PeerChannel
    follow: Follow


class Exchange:
    """What the partitions of one process follow, and who follows them. One caller at a time.

    Invariant: each Following goes along the way to where its senders are, as ``routes`` said at
    the last ``refresh``, if there is one.
    """

    def __init__(
        self,
        process: str,
        plan: Plan,
        routes: Callable[[int, int], Route | None],
        senders: Callable[[int], int],
        *,
        limits: ExchangeLimits | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Speak for ``process``.

        routes: of (stage, number), who owns that partition, None if nobody is known. senders: of a
        stage, how many partitions it has. changed: called when ``peers`` may have changed.
        """
        self.process = process
        self.limits = limits or ExchangeLimits()
        self.traffic = Traffic()
        self._plan = plan
        self._routes = routes
        self._partitions = senders
        self._changed = changed
        self._edges = edges_of(plan)
        self._shown = shown_of(plan)
        self._singles = Singles(self.limits.single_keys_max, self.limits.single_peers_max)
        self._single = singles_of(plan, list(self._shown.values()))
        # Nobody waits for what an observer that has gone did not take.
        self._shown_limits = replace(self.limits, absent_offers=1)
        self._stages = stages_of(plan)
        self._turn = 0
        self._sendings: dict[tuple[str, int], Publication] = {}
        self._followings: dict[tuple[str, int], Subscription] = {}
        self._sessions: dict[str, Session] = {}
        self._observers: dict[Session, None] = {}
        self._asked: dict[Stream, list[_Asked]] = {}
        self._here = _Here(self)

    # --- partitions of this process ---

    def send(
        self,
        stage: int,
        number: int,
        epoch: int,
        wake: Callable[[], None],
        shows: Collection[str] = (),
    ) -> Publications | None:
        """Let a partition be followed; None where there is nothing to follow.

        wake: called when ``Publications.is_wanted``. shows: outputs that those outside may follow.
        """
        edge = self._edges.get(edge_name(self._plan, stage + 1))
        shown = [one for one in self._shown.values() if one.output in shows]
        if edge is None and not shown:
            return None
        sendings = Publications(
            None if edge is None else self._send(edge, number, epoch, wake),
            [self._send(one, number, epoch, wake) for one in shown],
        )
        self._changed()
        return sendings

    def _send(self, edge: Edge, number: int, epoch: int, wake: Callable[[], None]) -> Publication:
        before = self._sendings.get((edge.name, number))
        if before is not None:  # of a life that has not ended yet
            self._stop(before)
        limits = self.limits if edge.output is None else self._shown_limits
        targets = self._targets(edge)
        sending = Publication(edge, number, epoch, targets=targets, limits=limits, wake=wake)
        self._sendings[edge.name, number] = sending
        for target in range(targets):
            for one in self._asked.pop(sending.stream(target), []):
                sending.follow(one.way, one.follow)
        return sending

    def _targets(self, edge: Edge) -> int:
        if edge.output is not None:
            return 1
        return self._stages[edge.stage].partitions or 0

    def stop_sending(self, sendings: Publications) -> None:
        """Let a partition be followed no more from here."""
        for sending in sendings:
            self._stop(sending)

    def _stop(self, sending: Publication) -> None:
        key = sending.edge.name, sending.number
        if self._sendings.get(key) is sending:
            del self._sendings[key]
            for way, follow in sending.end():
                self._note(way, follow)
            self._changed()

    def follow(self, stage: int, number: int, wake: Callable[[], None]) -> Subscription:
        """Return what a partition of a later stage follows the one before with.

        Nothing is followed before its ``start``. wake: called when something has arrived.
        """
        edge = self._edges.get(edge_name(self._plan, stage))
        if edge is None:
            raise InputError(f"no state edge leads into stage {stage} of {self._plan.name!r}")
        before = self._followings.get((edge.name, number))
        if before is not None:  # of a life that has not ended yet
            self.stop_following(before)
        senders = self._partitions(stage - 1)
        following = Subscription(
            edge,
            number,
            senders,
            limits=self.limits,
            turns=self._next_turn,
            wake=wake,
            refresh=self.refresh,
        )
        self._followings[edge.name, number] = following
        self._changed()
        return following

    def stop_following(self, following: Subscription) -> None:
        """Let a partition follow nobody any more."""
        key = following.edge.name, following.target
        following.end()
        if self._followings.get(key) is following:
            del self._followings[key]
            self._changed()

    def refresh(self) -> None:
        """Look again where everybody is."""
        for following in self._followings.values():
            for sender in range(self._partitions(following.edge.stage - 1)):
                self._route(following, sender)
        self._let_go()

    def _route(self, following: Subscription, sender: int) -> None:
        route = self._routes(following.edge.stage - 1, sender)
        if route is None:
            following.route(sender, None, 0)
        elif route.process == self.process:
            following.route(sender, self._here, route.epoch)
        else:
            following.route(sender, self._sessions.get(route.process), route.epoch)

    def peers(self) -> dict[str, str]:
        """Return the processes with which a connection is wanted, and their addresses, sorted."""
        found: dict[str, str] = {}
        for following in self._followings.values():
            stage = following.edge.stage - 1
            self._add_peers(found, stage, self._partitions(stage))
        for sending in self._sendings.values():
            if sending.edge.output is None:
                self._add_peers(found, sending.edge.stage, sending.targets)
        found.pop(self.process, None)
        return dict(sorted(found.items()))

    def _add_peers(self, found: dict[str, str], stage: int, count: int) -> None:
        for number in range(count):
            route = self._routes(stage, number)
            if route is not None:
                found[route.process] = route.address

    # --- connections ---

    def session(
        self,
        now_ns: int,
        dirty: Callable[[], None],
        expects: str = "",
        *,
        credential: str = "",
        admits: Callable[[str, str], Proven] | None = None,
        now_s: Callable[[], int] = lambda: 0,
    ) -> Session:
        """Return what speaks on a new connection; what it takes is as of Session."""
        return Session(
            self.process,
            self._edges,
            self,
            limits=self.limits,
            now_ns=now_ns,
            dirty=dirty,
            expects=expects,
            traffic=self.traffic,
            shown=self._shown,
            single=(self._single, self._singles),
            credential=credential,
            admits=admits,
            now_s=now_s,
        )

    @property
    def waiting_bytes(self) -> int:
        """How much waits to be sent, to all processes."""
        return sum(one.waiting_bytes for one in (*self._sessions.values(), *self._observers))

    def is_connected(self, process: str) -> bool:
        """Return whether there is a connection to a process."""
        return process in self._sessions

    def opened(self, session: Session, peer: str) -> None:
        """Take a connection into use, in place of an older one to the same process.

        Who is outside is none, whatever their name.
        """
        if session.is_observed:
            self._observers[session] = None
            if session.single_peer is not None:
                self._follow_for(session, session.single_peer)
            return
        before = self._sessions.get(peer)
        self._sessions[peer] = session
        if before is not None:
            self._lose(before)
            before.close(Reason.SHUTDOWN, "another connection has taken its place")
        self.refresh()

    def _follow_for(self, session: Session, peer: SinglePeer) -> None:
        """Follow all that is here for a peer that cannot say so. Raises RemoteProtocolError."""
        turn, credit_rows = self._next_turn(), self.limits.credit_rows
        for one in peer.wanted:
            partitions = self._partitions(one.edge.senders)
            if not partitions:
                raise RemoteProtocolError(f"{self.process} knows no partitions yet: ask again")
            for number in range(partitions):
                follow = Follow(one.edge.name, number, 0, turn, None, None, credit_rows)
                self.heard(session, follow)

    def _let_go(self) -> None:
        """End connections of such peers that have rows of a partition which is elsewhere now.

        They know no partitions; whoever connects again has what is here, and no row twice.
        """
        for session in list(self._observers):
            peer = session.single_peer
            for stream in peer.streams if peer is not None else ():
                route = self._routes(self._shown[stream.edge].stage, stream.sender)
                if route is not None and route.process != self.process:
                    why = f"partition {stream.sender} of {stream.edge!r} is at {route.process} now"
                    session.close(Reason.MOVED, why)
                    break

    def closed(self, session: Session) -> None:
        """Do without a connection."""
        self._observers.pop(session, None)
        if self._sessions.get(session.peer) is session:
            del self._sessions[session.peer]
        self._lose(session)
        self._changed()

    def _lose(self, session: Session) -> None:
        for sending in self._sendings.values():
            sending.gone(session)
        for following in self._followings.values():
            following.lost(session)
        for stream, asked in list(self._asked.items()):
            self._asked[stream] = [one for one in asked if one.way is not session]
            if not self._asked[stream]:
                del self._asked[stream]

    # --- what is said ---

    def room(self) -> None:
        """Let senders know that more may be taken for a peer."""
        for sending in self._sendings.values():
            sending.room()

    def heard(self, way: PeerChannel, message: Follow | Unfollow | Release) -> None:
        """Take what a receiver says. Raises RemoteProtocolError."""
        edge = self._edge(message.edge)
        if edge is None or message.target >= self._targets(edge):
            raise RemoteProtocolError(f"there is no target {message.target} of {message.edge!r}")
        sending = self._sendings.get((message.edge, message.sender))
        if sending is None:
            self._heard_for_later(way, message)
        elif isinstance(message, Follow):
            sending.follow(way, message)
        elif isinstance(message, Unfollow):
            sending.unfollow(way, message.target)
        else:
            sending.release(message.target, message.watermark_ns)

    def _edge(self, name: str) -> Edge | None:
        return self._edges.get(name) or self._shown.get(name)

    def _heard_for_later(self, way: PeerChannel, message: Follow | Unfollow | Release) -> None:
        if isinstance(message, Follow):
            self._note(way, message)
        elif isinstance(message, Unfollow):
            self._forget(way, Stream(message.edge, message.sender, message.target))

    def _note(self, way: PeerChannel, follow: Follow) -> None:
        """Keep what was asked of a partition that may come."""
        stream = Stream(follow.edge, follow.sender, follow.target)
        self._forget(way, stream)
        edge = self._edge(follow.edge)
        # 0: the assignment, which the follower has read, was not read here yet.
        partitions = 0 if edge is None else self._partitions(edge.senders)
        if edge is None or 0 < partitions <= follow.sender:
            raise RemoteProtocolError(f"there is no sender {follow.sender} of {follow.edge!r}")
        if len(self._asked) >= self.limits.streams_max:
            raise RemoteProtocolError(f"more streams than streams_max={self.limits.streams_max}")
        self._asked.setdefault(stream, []).append(_Asked(way, follow))

    def _forget(self, way: PeerChannel, stream: Stream) -> None:
        asked = [one for one in self._asked.pop(stream, []) if one.way is not way]
        if asked:
            self._asked[stream] = asked

    def granted(self, way: PeerChannel, stream: Stream, turn: int, rows: int) -> None:
        """Take credit back."""
        sending = self._sendings.get((stream.edge, stream.sender))
        if sending is not None and stream.target < sending.targets:
            sending.granted(way, stream.target, turn, rows)

    def arrived(
        self, way: PeerChannel, stream: Stream, turn: int, epoch: int, changes: EdgeChanges, *,
        start: int,
        more: bool, receipt: CreditReceipt | None,
    ) -> None:  # fmt: skip
        """Take what a sender has sent. Raises RemoteProtocolError."""
        following = self._followings.get((stream.edge, stream.target))
        if following is None:
            if receipt is not None:
                receipt.done()
        else:
            following.arrived(
                way, stream.sender, turn, epoch, changes, start=start, more=more, receipt=receipt
            )

    def _next_turn(self) -> int:
        self._turn += 1
        return self._turn


class _Here:
    """The way to partitions of the same process: nothing is encoded, and nothing waits."""

    has_room = True

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def has(self, stream: Stream) -> bool:
        """Return False: nothing waits here."""
        del stream
        return False

    def put(self, stream: Stream, turn: int, epoch: int, changes: EdgeChanges) -> None:
        """Hand over changes, or a table."""
        self._exchange.arrived(
            self, stream, turn, epoch, changes, start=0, more=False, receipt=None
        )

    def drop(self, stream: Stream) -> None:
        """Do nothing."""

    def say(self, message: Follow | Unfollow | Release) -> None:
        """Hand over a message."""
        self._exchange.heard(self, message)

    def grant(self, stream: Stream, turn: int, rows: int) -> None:
        """Hand over credit."""
        self._exchange.granted(self, stream, turn, rows)
