"""The exchange of one process: its partitions' publications and subscriptions, and their routes."""

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
    """The location of a partition: its owner's process and address.

    epoch: the least that the owner may have, 0 if unknown.
    """

    process: str
    address: str
    epoch: int = 0


@dataclass(slots=True)
class _Request:
    """A Follow of a partition that is not here, or not yet."""

    channel: PeerChannel
    follow: Follow


class Exchange:
    """The publications and subscriptions of one process. Not thread-safe.

    Invariant: each subscription uses the channel to its senders' processes, as of ``routes`` at the
    last ``refresh``, if there is one.
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
        """Exchange for ``process``.

        routes: the route to partition (stage, number), None if unknown. senders: the number of a
        stage's partitions. changed: called when ``peers`` may have changed.
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
        # An observer that has gone leaves no rows for anyone to wait for.
        self._shown_limits = replace(self.limits, absent_offers=1)
        self._stages = stages_of(plan)
        self._turn = 0
        self._publications: dict[tuple[str, int], Publication] = {}
        self._subscriptions: dict[tuple[str, int], Subscription] = {}
        self._sessions: dict[str, Session] = {}
        self._observers: dict[Session, None] = {}
        self._requests: dict[Stream, list[_Request]] = {}
        self._local = _LocalChannel(self)

    # --- partitions of this process ---

    def send(
        self,
        stage: int,
        number: int,
        epoch: int,
        wake: Callable[[], None],
        shows: Collection[str] = (),
    ) -> Publications | None:
        """Publish a partition; None where there is nothing to publish.

        wake: called when ``Publications.is_wanted``. shows: the outputs for external clients.
        """
        edges = [one for one in self._edges.values() if one.senders == stage]
        shown = [one for one in self._shown.values() if one.output in shows]
        if not edges and not shown:
            return None
        publications = Publications(
            [self._send(one, number, epoch, wake) for one in edges],
            [self._send(one, number, epoch, wake) for one in shown],
            self.limits,
        )
        self._changed()
        return publications

    def _send(self, edge: Edge, number: int, epoch: int, wake: Callable[[], None]) -> Publication:
        before = self._publications.get((edge.name, number))
        if before is not None:  # of a previous task that has not ended yet
            self._stop(before)
        limits = self.limits if edge.output is None else self._shown_limits
        targets = self._targets(edge)
        publication = Publication(edge, number, epoch, targets=targets, limits=limits, wake=wake)
        self._publications[edge.name, number] = publication
        for target in range(targets):
            for one in self._requests.pop(publication.stream(target), []):
                publication.follow(one.channel, one.follow)
        return publication

    def _targets(self, edge: Edge) -> int:
        if edge.output is not None:
            return 1
        return self._stages[edge.stage].partitions or 0

    def stop_sending(self, publications: Publications) -> None:
        """Stop publishing a partition from here."""
        for publication in publications:
            self._stop(publication)

    def _stop(self, publication: Publication) -> None:
        key = publication.edge.name, publication.number
        if self._publications.get(key) is publication:
            del self._publications[key]
            for channel, follow in publication.end():
                self._note(channel, follow)
            self._changed()

    def follow(self, stage: int, number: int, wake: Callable[[], None]) -> Subscription:
        """Return the subscription of a downstream partition to the stage before it.

        It begins with its ``start``. wake: called when something has arrived.
        """
        edge = self._edges.get(edge_name(self._plan, stage))
        if edge is None:
            raise InputError(f"no state edge leads into stage {stage} of {self._plan.name!r}")
        before = self._subscriptions.get((edge.name, number))
        if before is not None:  # of a previous task that has not ended yet
            self.stop_following(before)
        senders = self._partitions(edge.senders)
        subscription = Subscription(
            edge,
            number,
            senders,
            limits=self.limits,
            turns=self._next_turn,
            wake=wake,
            refresh=self.refresh,
        )
        self._subscriptions[edge.name, number] = subscription
        self._changed()
        return subscription

    def stop_following(self, subscription: Subscription) -> None:
        """End a partition's subscription."""
        key = subscription.edge.name, subscription.target
        subscription.end()
        if self._subscriptions.get(key) is subscription:
            del self._subscriptions[key]
            self._changed()

    def refresh(self) -> None:
        """Look up all routes again."""
        for subscription in self._subscriptions.values():
            for sender in range(self._partitions(subscription.edge.senders)):
                self._route(subscription, sender)
        self._let_go()

    def _route(self, subscription: Subscription, sender: int) -> None:
        route = self._routes(subscription.edge.senders, sender)
        if route is None:
            subscription.route(sender, None, 0)
        elif route.process == self.process:
            subscription.route(sender, self._local, route.epoch)
        else:
            subscription.route(sender, self._sessions.get(route.process), route.epoch)

    def peers(self) -> dict[str, str]:
        """Return the processes to connect to, and their addresses, sorted."""
        found: dict[str, str] = {}
        for subscription in self._subscriptions.values():
            stage = subscription.edge.senders
            self._add_peers(found, stage, self._partitions(stage))
        for publication in self._publications.values():
            if publication.edge.output is None:
                self._add_peers(found, publication.edge.stage, publication.targets)
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
        """Return a session for a new connection; arguments as for Session."""
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
        """The bytes waiting to be sent to all processes."""
        return sum(one.waiting_bytes for one in (*self._sessions.values(), *self._observers))

    def is_connected(self, process: str) -> bool:
        """Return whether there is a connection to a process."""
        return process in self._sessions

    def opened(self, session: Session, peer: str) -> None:
        """Use a connection, in place of an older one to the same process.

        An external client never replaces one, under any name.
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
            before.close(Reason.SHUTDOWN, "replaced by another connection")
        self.refresh()

    def _follow_for(self, session: Session, peer: SinglePeer) -> None:
        """Subscribe a peer of types 0 to 5 to all partitions here. Raises RemoteProtocolError."""
        turn, credit_rows = self._next_turn(), self.limits.credit_rows
        for one in peer.wanted:
            partitions = self._partitions(one.edge.senders)
            if not partitions:
                raise RemoteProtocolError(f"{self.process} has no partitions yet: try again later")
            for number in range(partitions):
                follow = Follow(one.edge.name, number, 0, turn, None, None, credit_rows)
                self.received(session, follow)

    def _let_go(self) -> None:
        """Close connections of such peers with rows of a partition that has moved away.

        They do not know partitions; after a reconnect they have the rows here, and none twice.
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
        """Stop using a connection."""
        self._observers.pop(session, None)
        if self._sessions.get(session.peer) is session:
            del self._sessions[session.peer]
        self._lose(session)
        self._changed()

    def _lose(self, session: Session) -> None:
        for publication in self._publications.values():
            publication.gone(session)
        for subscription in self._subscriptions.values():
            subscription.lost(session)
        for stream, asked in list(self._requests.items()):
            self._requests[stream] = [one for one in asked if one.channel is not session]
            if not self._requests[stream]:
                del self._requests[stream]

    # --- messages ---

    def room(self) -> None:
        """Notify senders that a peer has room again."""
        for publication in self._publications.values():
            publication.room()

    def received(self, channel: PeerChannel, message: Follow | Unfollow | Release) -> None:
        """Handle a receiver's message. Raises RemoteProtocolError."""
        edge = self._edge(message.edge)
        if edge is None or message.target >= self._targets(edge):
            raise RemoteProtocolError(f"there is no target {message.target} of {message.edge!r}")
        publication = self._publications.get((message.edge, message.sender))
        if publication is None:
            self._received_early(channel, message)
        elif isinstance(message, Follow):
            publication.follow(channel, message)
        elif isinstance(message, Unfollow):
            publication.unfollow(channel, message.target)
        else:
            publication.release(message.target, message.watermark_ns)

    def _edge(self, name: str) -> Edge | None:
        return self._edges.get(name) or self._shown.get(name)

    def _received_early(self, channel: PeerChannel, message: Follow | Unfollow | Release) -> None:
        if isinstance(message, Follow):
            self._note(channel, message)
        elif isinstance(message, Unfollow):
            self._forget(channel, Stream(message.edge, message.sender, message.target))

    def _note(self, channel: PeerChannel, follow: Follow) -> None:
        """Remember a request for a partition that may come."""
        stream = Stream(follow.edge, follow.sender, follow.target)
        self._forget(channel, stream)
        edge = self._edge(follow.edge)
        # 0: the subscriber has read a newer assignment than this process.
        partitions = 0 if edge is None else self._partitions(edge.senders)
        if edge is None or 0 < partitions <= follow.sender:
            raise RemoteProtocolError(f"there is no sender {follow.sender} of {follow.edge!r}")
        if len(self._requests) >= self.limits.streams_max:
            raise RemoteProtocolError(f"more streams than streams_max={self.limits.streams_max}")
        self._requests.setdefault(stream, []).append(_Request(channel, follow))

    def _forget(self, channel: PeerChannel, stream: Stream) -> None:
        asked = [one for one in self._requests.pop(stream, []) if one.channel is not channel]
        if asked:
            self._requests[stream] = asked

    def granted(self, channel: PeerChannel, stream: Stream, turn: int, rows: int) -> None:
        """Take credit back."""
        publication = self._publications.get((stream.edge, stream.sender))
        if publication is not None and stream.target < publication.targets:
            publication.granted(channel, stream.target, turn, rows)

    def arrived(
        self, channel: PeerChannel, stream: Stream, turn: int, epoch: int, changes: EdgeChanges, *,
        start: int,
        more: bool, receipt: CreditReceipt | None,
    ) -> None:  # fmt: skip
        """Handle a sender's changes. Raises RemoteProtocolError."""
        subscription = self._subscriptions.get((stream.edge, stream.target))
        if subscription is None:
            if receipt is not None:
                receipt.done()
        else:
            subscription.arrived(
                channel,
                stream.sender,
                turn,
                epoch,
                changes,
                start=start,
                more=more,
                receipt=receipt,
            )

    def _next_turn(self) -> int:
        self._turn += 1
        return self._turn


class _LocalChannel:
    """The channel to partitions of the same process, without encoding or buffering."""

    has_room = True

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def has(self, stream: Stream) -> bool:
        """Return False: nothing waits here."""
        del stream
        return False

    def send_changes(self, stream: Stream, turn: int, epoch: int, changes: EdgeChanges) -> None:
        """Hand over changes, or a table."""
        self._exchange.arrived(
            self, stream, turn, epoch, changes, start=0, more=False, receipt=None
        )

    def drop(self, stream: Stream) -> None:
        """Do nothing."""

    def send(self, message: Follow | Unfollow | Release) -> None:
        """Hand over a message."""
        self._exchange.received(self, message)

    def return_credit(self, stream: Stream, turn: int, rows: int) -> None:
        """Hand over credit."""
        self._exchange.granted(self, stream, turn, rows)
