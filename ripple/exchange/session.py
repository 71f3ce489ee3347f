"""One connection to another process: a link, the buffer of changes, and the window."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from ripple.core.access import AccessError, Role
from ripple.core.codec import arrow
from ripple.core.codec.errors import EncodingError
from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.exchange.edges import Edge, Stream, cost_of, fits, offered
from ripple.exchange.singles import SinglePeer
from ripple.exchange.wire.edge_messages import (
    SECTIONS_MAX,
    STREAMS_MAX,
    Bundle,
    Follow,
    Grant,
    GrantedRows,
    Release,
    Section,
    Trace,
    Unfollow,
)
from ripple.exchange.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.exchange.wire.link import CHANGES, EDGES, TRACES, Link
from ripple.exchange.wire.link_events import (
    Ended,
    PeerAccepted,
    PeerLeft,
    PeerOffered,
    Received,
    Refused,
)
from ripple.exchange.wire.messages import (
    CheckpointAck,
    CheckpointRequest,
    Heartbeat,
    Reason,
    cut_of,
)
from ripple.model.schema.compat import Incompatible, check_backward

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ripple.core.credentials import Proven
    from ripple.exchange.limits import ExchangeLimits
    from ripple.exchange.peer_channel import PeerChannel
    from ripple.exchange.singles import Single, Singles
    from ripple.exchange.subscription import CreditReceipt
    from ripple.exchange.wire.link_events import Event
    from ripple.exchange.wire.messages import Delta, Handshake

CAPABILITIES = frozenset({CHANGES, EDGES, TRACES})
# What a section takes of the window in addition to its rows, about.
SECTION_BYTES = 128
# For a peer with single deltas, which knows no ping: the heartbeat interval, how many heartbeats
# it may leave unread, and how many deltas are made at once, since others wait meanwhile.
BEAT_NS = 5_000_000_000
BEATS_MAX = 6
DELTA_BYTES_AT_ONCE = 1 << 16


class Hub(Protocol):
    """The owner of sessions: the exchange of this process."""

    def opened(self, session: Session, peer: str) -> None:
        """Note that the connection is usable."""

    def closed(self, session: Session) -> None:
        """Note that the connection is not usable any more."""

    def room(self) -> None:
        """Note that a peer has room again."""

    def received(self, channel: PeerChannel, message: Follow | Unfollow | Release) -> None:
        """Handle a receiver's message. Raises RemoteProtocolError."""

    def granted(self, channel: PeerChannel, stream: Stream, turn: int, rows: int) -> None:
        """Take credit back."""

    def arrived(
        self, channel: PeerChannel, stream: Stream, turn: int, epoch: int, changes: EdgeChanges, *,
        start: int,
        more: bool, receipt: CreditReceipt | None,
    ) -> None:  # fmt: skip
        """Handle a sender's changes. Raises RemoteProtocolError."""


@dataclass(slots=True)
class _Waiting:
    """The unsent part of one batch: rows from ``start`` on."""

    stream: Stream
    turn: int
    epoch: int
    changes: EdgeChanges
    start: int = 0


@dataclass(slots=True)
class Traffic:
    """Counters of traffic with other processes, by edge: rows, and bytes of bundles."""

    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    sent_bytes: Counter[str] = field(default_factory=Counter)
    received_bytes: Counter[str] = field(default_factory=Counter)


class _Receipt:
    """A received frame, which takes window until all its sections are applied."""

    def __init__(self, session: Session, length_bytes: int, sections: int) -> None:
        self._session = session
        self._length_bytes = length_bytes
        self._left = sections

    def done(self) -> None:
        """Note that one section is applied."""
        self._left -= 1
        if self._left == 0:
            self._session.note_applied(self._length_bytes)


class Session:
    """The peer channel to the process at the other end, and the receiver of its messages; see Hub.

    Invariants: ``_window`` is the peer's free room, and may be below 0 by one frame; ``_waiting``
    is in the order of ``put``; frames are made on demand.
    """

    def __init__(
        self,
        process: str,
        edges: Mapping[str, Edge],
        hub: Hub,
        *,
        limits: ExchangeLimits,
        now_ns: int,
        dirty: Callable[[], None],
        expects: str = "",
        traffic: Traffic | None = None,
        shown: Mapping[str, Edge] | None = None,
        single: tuple[Mapping[str, Single], Singles] | None = None,
        observes: bool = False,
        credential: str = "",
        admits: Callable[[str, str], Proven] | None = None,
        now_s: Callable[[], int] = lambda: 0,
    ) -> None:
        """Begin a session for ``process``.

        dirty: called when there may be something to send. expects: the name that the peer must
        have, "" for any. traffic: the counters. shown: the outputs for external clients. single:
        the same for peers of types 0 to 5 only, by name, and their common limits; None rejects such
        peers. observes: whether this side is an external client: it offers nothing and subscribes
        to the peer's outputs, which are in ``edges`` after the handshake. credential: ours. admits:
        returns the role of a peer from its name and credential, or raises AccessError; None accepts
        all. Readers may subscribe to outputs only.
        """
        shown = shown or {}
        offers = {name: edge.offer for name, edge in edges.items()}
        # The peer's name, after its handshake; the reason of a disorderly end.
        self.peer = ""
        self._process = process
        self.failure: str | None = None
        self.edges = edges
        self._shown = shown
        self._observes = observes
        self.is_observed = False
        self._admits = admits
        self._now_s, self._now_ns = now_s, now_ns
        self._until_ns: int | None = None
        self._hub = hub
        self._limits = limits
        self._dirty = dirty
        self._expects = expects
        self._traffic = traffic or Traffic()
        self._link = Link(
            process,
            outputs=offers | {name: edge.offer for name, edge in shown.items()},
            inputs=None if observes else offers,
            now_ns=now_ns,
            check=fits,
            capabilities=CAPABILITIES,
            limits=limits.link,
            credential=credential,
            admits=self._refusal,
            singles=None if single is None else {one: of.schema for one, of in single[0].items()},
        )
        self._single = single
        self.single_peer: SinglePeer | None = None
        self._deltas: tuple[_Waiting, Iterator[Delta]] | None = None  # being sent now
        self._beat_ns = now_ns
        self._beats = 0  # not taken by the transport
        self._is_open = self._is_full = False
        self._waiting: dict[str, deque[_Waiting]] = {name: deque() for name in (*edges, *shown)}
        self._streams: dict[Stream, int] = {}
        self._waiting_bytes = 0
        self._window = 0
        self._granted = limits.window_bytes
        self._owed_bytes = 0
        self._owed_rows: dict[tuple[Stream, int], int] = {}
        self._traces: dict[tuple[Stream, int], tuple[str, ...]] = {}  # of the peer's next sections

    # --- bytes and time ---

    @property
    def ended(self) -> bool:
        """Whether the connection has ended: close it once the rest is sent."""
        return self._link.ended

    def greet(self) -> None:
        """Send our handshake: at once as the caller, else after admitting the peer."""
        if self._expects or self._admits is None:
            self._link.handshake()
            self._dirty()

    def receive(self, data: bytes, now_ns: int) -> None:
        """Take bytes of the peer."""
        self._now_ns = now_ns
        self._act(self._link.receive(data, now_ns))

    def receive_eof(self, now_ns: int) -> None:
        """Take the end of the peer's bytes."""
        self._act(self._link.receive_eof(now_ns))

    def tick(self, now_ns: int) -> None:
        """Advance the time."""
        self._now_ns = now_ns
        if self._until_ns is not None and now_ns >= self._until_ns and not self.ended:
            self.close(Reason.SHUTDOWN, "its credential has expired")
        if self._is_beating and now_ns >= self._beat_ns:
            self._beat()
        self._act(self._link.tick(now_ns))

    @property
    def next_deadline_ns(self) -> int | None:
        """The time of the next ``tick``."""
        beat_ns = self._beat_ns if self._is_beating else None
        found = (self._link.next_deadline_ns, self._until_ns, beat_ns)
        return min((one for one in found if one is not None), default=None)

    def data_to_send(self) -> bytes:
        """Return and remove bytes for the peer; makes frames of the waiting changes."""
        self._beats = 0
        if self.single_peer is not None:
            self._send_deltas(self.single_peer)
        elif self._is_open:
            self._send_grants()
            self._send_bundle()
        return self._link.data_to_send()

    @property
    def is_open(self) -> bool:
        """Whether both sides have accepted the other's offer, and neither has left."""
        return self._is_open

    def abandon(self) -> None:
        """Note that the connection is lost."""
        self._leave()

    def close(self, reason: Reason = Reason.SHUTDOWN, detail: str = "") -> None:
        """Send a goodbye."""
        self._link.close(reason, detail)
        self._leave()
        self._dirty()

    # --- as a peer channel ---

    @property
    def waiting_bytes(self) -> int:
        """The bytes waiting to be sent."""
        return self._waiting_bytes

    @property
    def room_bytes(self) -> int:
        """The peer's free room; below 0 by one frame at most."""
        return self._window

    @property
    def granted_bytes(self) -> int:
        """The room granted to the peer; below 0 by one frame at most."""
        return self._granted

    @property
    def most_of_a_stream(self) -> int:
        """The largest number of waiting batches of a stream: 1 at most."""
        return max(self._streams.values(), default=0)

    @property
    def has_room(self) -> bool:
        """Whether less waits than the window holds."""
        return self._is_open and self._waiting_bytes < self._limits.window_bytes

    def has(self, stream: Stream) -> bool:
        """Return whether changes of a stream wait here; if so, ``room`` is called later."""
        found = stream in self._streams
        self._is_full = self._is_full or found
        return found

    def send_changes(self, stream: Stream, turn: int, epoch: int, changes: EdgeChanges) -> None:
        """Send changes, or a table, to their target."""
        self._waiting[stream.edge].append(_Waiting(stream, turn, epoch, changes))
        self._streams[stream] = self._streams.get(stream, 0) + 1
        self._waiting_bytes += changes.rows.nbytes
        self._is_full = self._is_full or not self.has_room
        self._dirty()

    def drop(self, stream: Stream) -> None:
        """Drop the waiting changes of a stream."""
        if self._deltas is not None and self._deltas[0].stream == stream:
            self._deltas = None
        if stream in self._streams:
            waiting = self._waiting[stream.edge]
            kept = deque(one for one in waiting if one.stream != stream)
            self._waiting_bytes -= sum(_left(one) for one in waiting if one.stream == stream)
            self._waiting[stream.edge] = kept
            del self._streams[stream]

    def send(self, message: Follow | Unfollow | Release) -> None:
        """Send a message to a sender."""
        if self._is_open:
            self._carry(message)
            self._dirty()

    def return_credit(self, stream: Stream, turn: int, rows: int) -> None:
        """Return credit to a sender, batched with other grants."""
        key = stream, turn
        self._owed_rows[key] = self._owed_rows.get(key, 0) + rows
        if self._owed_rows[key] * 2 >= self._limits.credit_rows:
            self._dirty()

    def note_applied(self, length_bytes: int) -> None:
        """Note bytes of applied frames, to be granted again."""
        self._owed_bytes += length_bytes
        if self._owed_bytes * 4 >= self._limits.window_bytes:
            self._dirty()

    # --- sending ---

    def _send_grants(self) -> None:
        credit, window = self._limits.credit_rows, self._limits.window_bytes
        is_due = self._owed_bytes * 4 >= window or len(self._owed_rows) * 2 >= STREAMS_MAX
        if not is_due and all(rows * 2 < credit for rows in self._owed_rows.values()):
            return
        owed = [
            GrantedRows(stream.edge, stream.sender, stream.target, turn, rows)
            for (stream, turn), rows in self._owed_rows.items()
        ]
        self._owed_rows.clear()
        owed_bytes, self._owed_bytes = self._owed_bytes, 0
        self._granted += owed_bytes
        for at in range(0, max(1, len(owed)), STREAMS_MAX):
            self._carry(Grant(owed_bytes if at == 0 else 0, tuple(owed[at : at + STREAMS_MAX])))

    def _send_bundle(self) -> None:
        """Make frames of the waiting changes, one edge after the other, while the peer has room."""
        for name, waiting in self._waiting.items():
            while waiting and self._window > 0 and self._is_open and self._has_buffer():
                self._carry_bundle(name, waiting)
        self._offer_room()

    def _offer_room(self) -> None:
        if self._is_full and 2 * self._waiting_bytes < self._limits.window_bytes:
            self._is_full = False
            self._hub.room()

    def _send_deltas(self, peer: SinglePeer) -> None:
        """Make single deltas of the waiting changes, and return credit for those sent."""
        enough = self._link.room_bytes - DELTA_BYTES_AT_ONCE
        while self._is_open and self._link.room_bytes > enough and self._has_buffer():
            if self._deltas is None:
                waiting = next(filter(None, self._waiting.values()), None)
                if waiting is None:
                    break
                self._deltas = waiting[0], peer.deltas(waiting[0].stream, waiting[0].changes)
            one, deltas = self._deltas
            try:
                delta = next(deltas, None)
            except (LocalProtocolError, RemoteProtocolError) as error:
                self.failure = self.failure or str(error)
                self.close(Reason.OVERLOAD, str(error))
                return
            if delta is not None:
                self._carry(delta)
                continue
            self._deltas = None
            self._waiting[one.stream.edge].popleft()
            self._waiting_bytes -= one.changes.rows.nbytes
            self._done(one.stream)
            self._hub.granted(self, one.stream, one.turn, cost_of(one.changes))
        self._offer_room()

    @property
    def _is_beating(self) -> bool:
        return self.single_peer is not None and self._is_open

    def _beat(self) -> None:
        """Send a heartbeat to a peer without pings, and detect that it does not read."""
        self._beat_ns = self._now_ns + BEAT_NS
        self._beats += 1
        if self._beats > BEATS_MAX:
            self.failure = f"the peer has read nothing for {BEATS_MAX * BEAT_NS / 1e9:g} s"
            self.close(Reason.TIMEOUT, self.failure)
            return
        load = min(1.0, self._waiting_bytes / self._limits.window_bytes)
        self._carry(Heartbeat(self._process, self._now_s() * 1_000_000_000, load))

    def _has_buffer(self) -> bool:
        return self._link.room_bytes >= self._limits.link.frame_bytes_max

    def _carry_bundle(self, name: str, waiting: deque[_Waiting]) -> None:
        sections: list[Section] = []
        batches: list[pa.RecordBatch] = []
        rows = size = 0
        limits = self._limits
        while waiting and len(sections) < SECTIONS_MAX:
            one = waiting[0]
            left = one.changes.rows.slice(one.start)
            room = min(limits.bundle_rows - rows, _rows_in(left, limits.bundle_bytes - size))
            if left.num_rows > room and sections:
                break
            part = left.slice(0, max(room, 1))
            while part.num_rows > 1 and part.nbytes > 2 * limits.bundle_bytes:
                part = part.slice(0, part.num_rows // 2)  # the first rows are longer than average
            sections.append(self._section(one, part.num_rows))
            if one.changes.traces and not sections[-1].more and self._link.speaks_traces:
                self._carry(Trace(*one.stream, one.turn, one.changes.traces))
            batches.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes + SECTION_BYTES
            self._waiting_bytes -= part.nbytes
            if sections[-1].more:
                one.start += part.num_rows
                break
            waiting.popleft()
            self._done(one.stream)
        bundle = Bundle(name, tuple(sections), memoryview(arrow.dumps(pa.concat_batches(batches))))
        self._carry(bundle)
        self._window -= _length_bytes(bundle)
        self._traffic.sent[name] += rows
        self._traffic.sent_bytes[name] += len(bundle.body)

    def _section(self, one: _Waiting, rows: int) -> Section:
        changes, stream = one.changes, one.stream
        return Section(
            stream.sender,
            stream.target,
            one.turn,
            one.epoch,
            None if changes.since is None else cut_of(changes.since),
            cut_of(changes.cut),
            changes.watermark_ns,
            rows,
            one.start,
            one.start + rows < changes.rows.num_rows,
        )

    def _done(self, stream: Stream) -> None:
        self._streams[stream] -= 1
        if not self._streams[stream]:
            del self._streams[stream]
        if not self._streams:
            self._waiting_bytes = 0  # the bytes of parts do not add up exactly to the whole's

    def _carry(
        self,
        message: Bundle | Grant | Follow | Unfollow | Release | Trace | Delta | Heartbeat
        | CheckpointAck,
    ) -> None:  # fmt: skip
        try:
            self._link.carry(message)
        except LocalProtocolError as error:
            # The peer requests and does not read, or a row is longer than a frame.
            self.failure = self.failure or str(error)
            self.close(Reason.OVERLOAD, str(error))

    # --- receiving ---

    def _act(self, events: list[Event]) -> None:
        try:
            for event in events:
                self._on(event)
        except RemoteProtocolError as error:
            self.failure = self.failure or str(error)
            self.close(Reason.PROTOCOL, str(error))
        if self.ended:
            self._leave()
        self._dirty()

    def _on(self, event: Event) -> None:
        match event:
            case PeerOffered():
                self._offered(event)
            case PeerAccepted() if not self.ended:
                self._is_open = True
                self._hub.opened(self, self.peer)
            case Refused():
                self.failure = "; ".join(event.errors)
            case Received(message) if self._is_open:
                self._on_message(message)
            case PeerLeft():
                if event.reason is not Reason.SHUTDOWN:
                    self.failure = self.failure or f"the peer left: {event.detail}"
                self.close()
            case Ended() if event.error is not None:
                self.failure = self.failure or str(event.error)
            case _:
                pass

    def _refusal(self, peer: Handshake) -> tuple[str, ...]:
        """Return why a peer is rejected; nothing is sent to it before."""
        if self._admits is None:
            return ()
        try:
            proven = self._admits(peer.source_worker_id, peer.credential)
        except AccessError as error:
            return (str(error),)
        if proven.until_s is not None:
            left_s = proven.until_s - self._now_s()
            self._until_ns = self._now_ns + left_s * 1_000_000_000
        if EDGES not in peer.capabilities and self._single is not None and not self._expects:
            self.is_observed = True
            return self._single_refusal(peer, self._single[0])
        self.is_observed = proven.role is not Role.PROCESS
        if self.is_observed and (peer.outputs or self._expects):
            who = f"{peer.source_worker_id:.80}"
            return (f"{who} is {proven.role.value}, and may not offer edges",)
        return ()

    def _single_refusal(self, peer: Handshake, single: Mapping[str, Single]) -> tuple[str, ...]:
        """Return why a peer of types 0 to 5 cannot have the outputs that it names.

        They are the outputs that it reads, in its schema; if it names none, it gets all.
        """
        unknown = [name for name in peer.outputs if name not in single]
        if unknown:
            return tuple(
                f"no output {one!r:.80}: the outputs are {', '.join(single)}" for one in unknown
            )
        verdicts = [
            (name, check_backward(reader, single[name].schema))
            for name, reader in peer.outputs.items()
        ]
        return tuple(
            f"{name}: {difference}"
            for name, verdict in verdicts
            if isinstance(verdict, Incompatible)
            for difference in verdict.differences
        )

    def _offered(self, event: PeerOffered) -> None:
        self.peer = event.worker_id
        if self._expects not in ("", self.peer):
            raise RemoteProtocolError(f"it is {self.peer}, not {self._expects}")
        if self._link.speaks_edges:
            if self._admits is None:
                self.is_observed = not event.outputs
            if self._observes:
                self.edges = offered(event.outputs)
            self._carry(Grant(self._limits.window_bytes))
        elif self._single is not None and self._admits is not None and not self._expects:
            outputs, singles = self._single
            wanted = dict(event.outputs) or outputs
            self.single_peer = SinglePeer(singles, [outputs[name] for name in wanted])
        else:
            raise RemoteProtocolError(f"{self.peer} does not know edges between stages")

    def _on_message(self, message: object) -> None:
        match message:
            case Bundle():
                self._on_bundle(message)
            case Grant():
                self._window += message.window_bytes
                for one in message.streams:
                    stream = Stream(one.edge, one.sender, one.target)
                    self._hub.granted(self, stream, one.turn, one.rows)
            case Follow() | Unfollow() | Release():
                # Edges are for partitions only, which release their rows.
                if self.is_observed and message.edge not in self._shown:
                    raise RemoteProtocolError(f"{self.peer} may not follow {message.edge!r}")
                self._hub.received(self, message)
            case CheckpointRequest():
                why = f"{self._process} makes checkpoints on its schedule, not on request"
                self._carry(CheckpointAck(message.checkpoint_id, self._process, message.epoch, why))
            case Trace():
                if len(self._traces) >= STREAMS_MAX:
                    self._traces.clear()
                stream = Stream(message.edge, message.sender, message.target)
                self._traces[stream, message.turn] = message.contexts
            case _:
                pass

    def _on_bundle(self, bundle: Bundle) -> None:
        edge = self.edges.get(bundle.edge)  # the link has checked the offer
        if edge is None:
            raise RemoteProtocolError(f"{self.peer} has sent {bundle.edge!r} unsubscribed")
        length_bytes = _length_bytes(bundle)
        if self._granted <= 0:
            raise RemoteProtocolError(
                f"{self.peer} has sent more than window_bytes ({self._limits.window_bytes})"
            )
        self._granted -= length_bytes
        try:
            rows = arrow.loads(bundle.body, edge.schema)
        except EncodingError as error:
            raise RemoteProtocolError(f"{self.peer}, {bundle.edge}: {error}") from error
        if sum(section.rows for section in bundle.sections) != rows.num_rows:
            raise RemoteProtocolError(
                f"{self.peer}, {bundle.edge}: {rows.num_rows} rows do not match its sections"
            )
        self._traffic.received[bundle.edge] += rows.num_rows
        self._traffic.received_bytes[bundle.edge] += len(bundle.body)
        receipt = _Receipt(self, length_bytes, len(bundle.sections))
        at = 0
        for section in bundle.sections:
            part = rows.slice(at, section.rows)
            at += section.rows
            since = None if section.since is None else dict(section.since)
            stream = Stream(bundle.edge, section.sender, section.target)
            traces: tuple[str, ...] = ()
            if self._traces and not section.more:
                traces = self._traces.pop((stream, section.turn), ())
            self._hub.arrived(
                self,
                stream,
                section.turn,
                section.epoch,
                EdgeChanges(since, dict(section.cut), section.watermark_ns, part, traces),
                start=section.start,
                more=section.more,
                receipt=receipt,
            )

    def _leave(self) -> None:
        if self._is_open:
            self._is_open = False
            self._hub.closed(self)
        if self.single_peer is not None:
            self.single_peer.leave()
            self.single_peer = self._deltas = None


def _length_bytes(bundle: Bundle) -> int:
    """Return the window bytes of a bundle, equal at both ends."""
    return len(bundle.body) + SECTION_BYTES * len(bundle.sections)


def _left(one: _Waiting) -> int:
    return int(one.changes.rows.slice(one.start).nbytes)


def _rows_in(rows: pa.RecordBatch, size: int) -> int:
    """Return about how many of these rows fit into so many bytes, 0 or more."""
    if not rows.num_rows:
        return 0
    return int(max(0, size) * rows.num_rows // max(1, rows.nbytes))
