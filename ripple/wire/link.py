"""A connection between two workers, without I/O: bytes in, events out, and bytes to send.

The caller owns the socket and the clock. It feeds what arrives into ``receive``, acts on the
events, sends ``data_to_send()``, and calls ``tick`` when ``next_deadline_ns`` has come. A fault
of the peer never raises: it ends the link, and the last event, ``Ended``, carries the
RemoteProtocolError, after all events that came before it. A fault of the caller raises
LocalProtocolError and changes nothing. When one of our own calls ends the link, the next
``tick`` or ``receive`` returns the event, and ``next_deadline_ns`` is at once.

Which message is allowed when is in :mod:`ripple.wire.link_states`; what a stream's messages mean
to us is in :mod:`ripple.wire.link_consumer`, what we may send in
:mod:`ripple.wire.link_producer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.encoding.compression import Compression
from ripple.schema.compat import Compatibility, Incompatibility, Incompatible, check_backward
from ripple.schema.fingerprint import fingerprint as schema_fingerprint
from ripple.wire.edge_messages import (
    EDGE_MESSAGES,
    Bundle,
    EdgeMessage,
    Follow,
    Grant,
    Release,
    Trace,
    Unfollow,
)
from ripple.wire.envelope import VERSION, Decoder, Frame, Limits, encode
from ripple.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.wire.link_buffer import SendBuffer
from ripple.wire.link_consumer import ConsumerHalf, LinkCounters
from ripple.wire.link_events import (
    CreditReceived,
    DeltaReceived,
    Ended,
    Event,
    PeerAccepted,
    PeerLeft,
    PeerOffered,
    Refused,
    SequenceGap,
    SnapshotWanted,
    Superseded,
    Told,
)
from ripple.wire.link_keep_alive import KeepAlive
from ripple.wire.link_limits import LinkLimits
from ripple.wire.link_producer import ProducerHalf
from ripple.wire.link_states import Act, LinkStates, Party, State
from ripple.wire.messages import (
    Changes,
    CheckpointAck,
    CheckpointRequest,
    Credit,
    Delta,
    Goodbye,
    Handshake,
    Heartbeat,
    Message,
    Ping,
    Pong,
    Reason,
    SchemaNegotiation,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotRequest,
    from_frame,
    to_frame,
)
from ripple.wire.position import Positions, Stream

if TYPE_CHECKING:
    from ripple.schema.types import Schema

Check: TypeAlias = Callable[["Schema", "Schema"], Compatibility]
Fingerprint: TypeAlias = Callable[["Schema"], str]
Admits: TypeAlias = Callable[[Handshake], "str | None"]

CHANGES = "changes"
EDGES = "edges"
TRACES = "traces"
OURS = 16  # types from here on need that capability
_COMPRESSIONS = {"lz4": Compression.LZ4, "zstd": Compression.ZSTD}

ACT_OF: dict[type[Message], Act] = {
    Handshake: Act.HANDSHAKE,
    Delta: Act.DELTA,
    CheckpointRequest: Act.CHECKPOINT_REQUEST,
    CheckpointAck: Act.CHECKPOINT_ACK,
    Heartbeat: Act.HEARTBEAT,
    Changes: Act.CHANGES,
    SnapshotRequest: Act.SNAPSHOT_REQUEST,
    SnapshotBegin: Act.SNAPSHOT_BEGIN,
    SnapshotEnd: Act.SNAPSHOT_END,
    Credit: Act.CREDIT,
    Ping: Act.PING,
    Pong: Act.PONG,
    Goodbye: Act.GOODBYE,
    Bundle: Act.BUNDLE,
    Follow: Act.FOLLOW,
    Unfollow: Act.UNFOLLOW,
    Grant: Act.GRANT,
    Release: Act.RELEASE,
    Trace: Act.TRACE,
}  # a SchemaNegotiation is Act.ACCEPT or Act.REFUSE


def _everybody(_: Handshake) -> None:
    return None


def act_of(message: Message) -> Act:
    """Return what saying ``message`` is."""
    if isinstance(message, SchemaNegotiation):
        return Act.ACCEPT if message.ok else Act.REFUSE
    return ACT_OF[type(message)]


def _differences(verdict: Compatibility) -> tuple[Incompatibility, ...]:
    return verdict.differences if isinstance(verdict, Incompatible) else ()


class Link:
    """One connection, seen from one end.

    ``outputs`` are what we offer, ``inputs`` what we read of the peer's offer, each with its
    schema; None reads whatever is offered. ``check(reader, writer)`` says whether we can read an
    output, and ``fingerprint`` names a schema on each frame that carries its data. ``positions``
    outlives the link and is shared by all links of a process. ``credential`` is what we show;
    ``admits`` returns why a peer is let in no further, None if it is. Who is not is told so, and
    nothing else unless we greeted first.

    Invariants: after ``Ended`` nothing changes any more; ``positions`` has moved exactly as far
    as the events that were returned say; what waits to be sent is at most
    ``send_buffer_bytes_max`` and one goodbye.
    """

    def __init__(
        self,
        worker_id: str,
        *,
        outputs: Mapping[str, Schema],
        inputs: Mapping[str, Schema] | None,
        now_ns: int,
        check: Check = check_backward,
        fingerprint: Fingerprint = schema_fingerprint,
        positions: Positions | None = None,
        capabilities: frozenset[str] = frozenset({CHANGES}),
        limits: LinkLimits | None = None,
        credential: str = "",
        admits: Admits = _everybody,
    ) -> None:
        self.limits = limits = limits or LinkLimits()
        self.positions = Positions() if positions is None else positions
        self.counters = LinkCounters()
        self.states = LinkStates()
        self.ended = False
        self._offer = Handshake.announce(worker_id, outputs, capabilities, credential)
        self._inputs = dict(inputs or {})
        self._reads_all = inputs is None
        self._check = check
        self._admits = admits
        self._fingerprint = fingerprint
        self._ours = capabilities
        self._agreed: frozenset[str] = frozenset()
        self._compression = Compression.NONE
        self._frame_limits = Limits(payload_bytes_max=limits.frame_bytes_max)
        self._decoder = Decoder(self._frame_limits)
        self._producer = ProducerHalf(outputs, limits)
        self._consumer = ConsumerHalf(
            self.positions, limits, self.counters, self._answer, self._tell
        )
        self._fingerprints_out = {name: fingerprint(schema) for name, schema in outputs.items()}
        self._fingerprints_in: dict[str, str] = {}
        self._hearing: dict[type[Message], Callable[[Any], None]] = {
            Handshake: self._on_handshake,
            SchemaNegotiation: self._on_negotiation,
            SnapshotBegin: self._on_begin,
            SnapshotEnd: self._on_end,
            Delta: self._on_delta,
            Credit: self._on_credit,
            SnapshotRequest: self._on_request,
            Ping: self._on_ping,
            Pong: self._on_pong,
            Goodbye: self._on_goodbye,
            Heartbeat: self._on_other,
            CheckpointRequest: self._on_other,
            CheckpointAck: self._on_other,
            Follow: self._on_other,
            Unfollow: self._on_other,
            Trace: self._on_other,
            Grant: self._on_other,
            Release: self._on_other,
        }
        self._events: list[Event] = []
        self._buffer = SendBuffer(limits)
        self._sequence = 0
        self._heard_sequence = 0
        self._delta_sequence: dict[str, int] = {}
        self._heard_delta_sequence: dict[str, int] = {}
        self._now_ns = self._began_ns = now_ns
        self._left_ns: int | None = None
        self._keep_alive = KeepAlive(limits, now_ns)

    # --- bytes and time -------------------------------------------------------------------------

    def receive(self, data: bytes, now_ns: int) -> list[Event]:
        """Take bytes of the peer, cut anywhere; return what they mean, in order."""
        if self.ended:
            return self._take_events()
        self._now_ns = now_ns
        self._keep_alive.heard(now_ns)
        try:
            self._decoder.receive(data)
            for frame in self._decoder:
                self._hear(frame)
                if self.ended:
                    break
        except RemoteProtocolError as error:
            self._break(error, Reason.PROTOCOL)
        return self._take_events()

    def receive_eof(self, now_ns: int) -> list[Event]:
        """Take the end of the peer's bytes: orderly after its goodbye, else a fault."""
        if self.ended:
            return self._take_events()
        self._now_ns = now_ns
        try:
            self._decoder.finish()
            if self._left_ns is None and self.speaks_changes:
                raise RemoteProtocolError("the connection ended without the peer's Goodbye")
            self._end(None)
        except RemoteProtocolError as error:
            self._end(error)
        return self._take_events()

    def data_to_send(self) -> bytes:
        """Return the bytes that the transport must send next, and forget them."""
        return self._buffer.take()

    @property
    def next_deadline_ns(self) -> int | None:
        """The time of the next ``tick``; None when there is nothing to wait for."""
        if self._events:
            return self._now_ns
        if self.ended:
            return None
        if self._left_ns is not None:
            return self._left_ns + self.limits.goodbye_timeout_ns
        if not self._is_settled:
            return self._began_ns + self.limits.handshake_timeout_ns
        return self._keep_alive.deadline_ns if self.speaks_changes else None

    def tick(self, now_ns: int) -> list[Event]:
        """Let time pass: ping a silent peer, give up a dead one.

        A peer without our capabilities has no ping to answer, so its silence is not death; the
        transport's own timeout on unacknowledged bytes must find that out.
        """
        deadline_ns = self.next_deadline_ns
        self._now_ns = now_ns
        if deadline_ns is None or now_ns < deadline_ns or self._events:
            return self._take_events()
        if self._left_ns is not None:
            self._end(None)
        elif not self._is_settled:
            self._give_up(
                f"no complete handshake within {self.limits.handshake_timeout_ns / 1e9:g} s"
            )
        elif self._keep_alive.is_asking:
            self._give_up(
                f"the peer was silent for {self._keep_alive.silence_ns(now_ns) / 1e9:.1f} s"
            )
        else:
            self.ping()
        return self._take_events()

    # --- what we say ----------------------------------------------------------------------------

    def handshake(self) -> None:
        """Say who we are and what we offer."""
        self._say(self._offer)

    def send_changes(self, changes: Changes) -> None:
        """Send the changes of a range, which starts where the last one ended, on credit."""
        if changes.from_cut is None:
            raise LocalProtocolError("changes without a from-cut are rows of a snapshot")
        frame = self._prepare(Act.CHANGES, changes)
        self._producer.changes(changes, len(frame.payload))
        self._queue(Act.CHANGES, frame)

    def send_snapshot_begin(self, begin: SnapshotBegin) -> None:
        """Open the stream, or start it over; needs no credit, and brings the first."""
        frame = self._prepare(Act.SNAPSHOT_BEGIN, begin)
        self._producer.begin(begin)
        self._queue(Act.SNAPSHOT_BEGIN, frame)

    def send_snapshot_rows(self, rows: Changes) -> None:
        """Send rows of the snapshot under way (``from_cut`` is None), on credit."""
        if rows.from_cut is not None:
            raise LocalProtocolError("rows of a snapshot have no from-cut")
        frame = self._prepare(Act.CHANGES, rows)
        self._producer.rows(rows, len(frame.payload))
        self._queue(Act.CHANGES, frame)

    def send_snapshot_end(self, end: SnapshotEnd) -> None:
        """Complete the snapshot; changes may follow from its cut."""
        frame = self._prepare(Act.SNAPSHOT_END, end)
        self._producer.end(end)
        self._queue(Act.SNAPSHOT_END, frame)

    def send_delta(
        self, output: str, key: bytes, delta_bytes: bytes, watermark_ns: int | None = None
    ) -> None:
        """Send one key's change to a peer that knows types 0 to 5 only; numbered here."""
        if self.speaks_changes:
            raise LocalProtocolError("this peer takes changes, not single deltas")
        self._producer.check_output(output)
        number = self._delta_sequence.get(output, 0) + 1
        self._say(Delta(output, key, delta_bytes, number, watermark_ns))
        self._delta_sequence[output] = number

    def grant_credit(self, stream: Stream, length_bytes: int) -> None:
        """Give back the ``credit_bytes`` of an event that has been dealt with."""
        if not self.ended:
            self._or_break(lambda: self._consumer.grant(stream, length_bytes))

    def request_snapshot(self, stream: Stream) -> None:
        """Ask for the whole table again, because the caller cannot trust its own."""
        self._require_running("SNAPSHOT_REQUEST")
        self.states.check(Party.LOCAL, Act.SNAPSHOT_REQUEST)
        self._or_break(lambda: self._consumer.request(stream))

    def carry(self, message: Heartbeat | CheckpointRequest | CheckpointAck | EdgeMessage) -> None:
        """Send a message on which the link has no opinion."""
        self._say(message)

    def ping(self) -> None:
        """Ask whether the peer is there; one question at a time."""
        self._say(self._keep_alive.question())
        self._keep_alive.asked(self._now_ns)

    def close(self, reason: Reason = Reason.SHUTDOWN, detail: str = "") -> None:
        """Say goodbye; what the peer still sends is heard until it says goodbye as well."""
        if self.ended or self.states.parties[Party.LOCAL] is State.SILENT:
            return
        self._farewell(reason, detail)
        if self._peer_left or not self.speaks_changes:
            self._end(None)
        else:
            self._left_ns = self._now_ns

    # --- what may be asked ----------------------------------------------------------------------

    @property
    def speaks_changes(self) -> bool:
        """Both sides know the types from 16 on."""
        return CHANGES in self._agreed

    @property
    def speaks_edges(self) -> bool:
        """Both sides know the types from 24 on."""
        return EDGES in self._agreed and self.speaks_changes

    @property
    def speaks_traces(self) -> bool:
        """Both sides know what a trace is."""
        return TRACES in self._agreed and self.speaks_edges

    @property
    def may_produce(self) -> bool:
        """The peer accepted our outputs, and we have not said goodbye."""
        return (
            not self.ended
            and self.states.halves[Party.LOCAL] is State.OPEN
            and self.states.parties[Party.LOCAL] is State.TALKING
        )

    def credit_bytes(self, stream: Stream) -> int:
        """Return the bytes of payload that may be sent on ``stream`` now."""
        if not self.may_produce:
            return 0
        return min(self._producer.credit_bytes(stream), self.room_bytes)

    @property
    def room_bytes(self) -> int:
        """The payload bytes that one more frame may have until the transport takes some."""
        return max(0, self._buffer.room_for(Act.CHANGES))

    def check_invariants(self) -> None:
        """Raise AssertionError when the link contradicts itself."""
        if not self.ended:
            self._consumer.check_invariants()
        self._buffer.check_invariants()

    # --- hearing --------------------------------------------------------------------------------

    def _hear(self, frame: Frame) -> None:
        if frame.type >= OURS and not self.speaks_changes:
            raise RemoteProtocolError(
                f"the peer sent type {frame.type} before both sides had named {CHANGES!r}"
            )
        if self.speaks_changes and frame.sequence != self._heard_sequence + 1:
            raise RemoteProtocolError(
                f"the peer sent frame {frame.sequence} after frame {self._heard_sequence}"
            )
        self._heard_sequence = frame.sequence
        message = from_frame(frame)
        self.states.say(Party.REMOTE, act_of(message))
        if frame.type in EDGE_MESSAGES and not self.speaks_edges:
            raise RemoteProtocolError(f"the peer has not named the capability {EDGES!r}")
        if isinstance(message, Trace) and not self.speaks_traces:
            raise RemoteProtocolError(f"the peer has not named the capability {TRACES!r}")
        if isinstance(message, Changes):
            self._on_changes(message, frame)
        elif isinstance(message, Bundle):
            self._check_data(message.edge, frame)
            self._tell(Told(message))
        else:
            self._hearing[type(message)](message)

    def _on_handshake(self, peer: Handshake) -> None:
        refusal = self._admits(peer)
        if refusal is not None:
            self._refuse((refusal[: self.limits.reason_chars_max],))
            return
        if self.states.halves[Party.LOCAL] is State.QUIET:
            self.handshake()
        self._agreed = self._ours & peer.capabilities
        agreed = [c for name, c in _COMPRESSIONS.items() if name in self._agreed]
        self._decoder.agree(agreed)
        self._compression = agreed[0] if agreed else Compression.NONE
        errors = self._objections(peer)
        if errors:
            self._refuse(errors)
            return
        self._answer(SchemaNegotiation(ok=True))
        if self._reads_all:
            self._inputs = dict(peer.outputs)
        self._fingerprints_in = {
            name: self._fingerprint(schema)
            for name, schema in peer.outputs.items()
            if name in self._inputs
        }
        outputs = tuple(peer.outputs.items())
        self._tell(PeerOffered(peer.source_worker_id, outputs, peer.capabilities))

    def _objections(self, peer: Handshake) -> tuple[str, ...]:
        if peer.protocol_version != VERSION:
            return (f"protocol version {peer.protocol_version}; this side speaks {VERSION}",)
        if len(peer.outputs) > self.limits.outputs_max:
            return (f"{len(peer.outputs)} outputs; outputs_max is {self.limits.outputs_max}",)
        errors = [
            f"{name}: {difference}"[: self.limits.reason_chars_max]
            for name, writer in peer.outputs.items()
            if name in self._inputs
            for difference in _differences(self._check(self._inputs[name], writer))
        ]
        return tuple(errors[: self.limits.errors_max])

    def _on_negotiation(self, answer: SchemaNegotiation) -> None:
        if answer.ok:
            self._tell(PeerAccepted())
            return
        errors = answer.errors[: self.limits.errors_max]
        longest = self.limits.reason_chars_max
        self._reject(Refused(by_peer=True, errors=tuple(text[:longest] for text in errors)))

    def _refuse(self, errors: tuple[str, ...]) -> None:
        self._answer(SchemaNegotiation(ok=False, errors=errors))
        self._reject(Refused(by_peer=False, errors=errors))

    def _reject(self, refused: Refused) -> None:
        self._tell(refused)
        self._farewell(Reason.INCOMPATIBLE, "; ".join(refused.errors))
        self._end(None)

    def _on_begin(self, begin: SnapshotBegin) -> None:
        if begin.output in self._inputs:
            self._check_offered(begin.output)
            self._consumer.on_begin(begin)
        else:
            # It gets no credit, so nothing more comes of it.
            self.counters.ignored += 1

    def _on_end(self, end: SnapshotEnd) -> None:
        if end.output in self._inputs:
            self._consumer.on_end(end)

    def _on_changes(self, changes: Changes, frame: Frame) -> None:
        self._check_data(changes.output, frame)
        self._consumer.on_changes(changes, len(frame.payload))

    def _on_delta(self, delta: Delta) -> None:
        output, number = delta.source_output, delta.sequence_no
        if output not in self._inputs:
            self.counters.ignored += 1
            return
        self._check_offered(output)
        last = self._heard_delta_sequence.get(output)
        if last is not None and number <= last:
            self.counters.duplicates += 1
            return
        if last is not None and number > last + 1:
            self.counters.sequence_gaps += 1
            self._tell(SequenceGap(output, last + 1, number))
        self._heard_delta_sequence[output] = number
        self._tell(DeltaReceived(delta))

    def _on_credit(self, credit: Credit) -> None:
        self._tell(CreditReceived(*self._producer.on_credit(credit)))

    def _on_request(self, request: SnapshotRequest) -> None:
        stream = Stream(request.output, request.partition)
        superseded = self._producer.on_request(stream, request.epoch)
        self._tell(Superseded(stream, request.epoch) if superseded else SnapshotWanted(stream))

    def _on_ping(self, ping: Ping) -> None:
        self._answer(Pong(ping.nonce))

    def _on_pong(self, pong: Pong) -> None:
        self._keep_alive.answered(pong)

    def _on_other(
        self, message: Heartbeat | CheckpointRequest | CheckpointAck | EdgeMessage
    ) -> None:
        self._tell(Told(message))

    def _on_goodbye(self, goodbye: Goodbye) -> None:
        self._consumer.drop_snapshots("the peer left")
        self._tell(PeerLeft(goodbye.reason, goodbye.detail[: self.limits.reason_chars_max]))
        if self.states.parties[Party.LOCAL] is State.SILENT:
            self._end(None)
        else:
            self._left_ns = self._now_ns

    def _check_data(self, output: str, frame: Frame) -> None:
        self._check_offered(output)
        if frame.fingerprint != self._fingerprints_in[output]:
            raise RemoteProtocolError(
                f"the peer sent {output!r} in schema {frame.fingerprint!r}; its handshake "
                f"says {self._fingerprints_in[output]!r}"
            )

    def _check_offered(self, output: str) -> None:
        if output not in self._fingerprints_in:
            raise RemoteProtocolError(f"the peer sent {output!r}, which its handshake has not")

    # --- saying ---------------------------------------------------------------------------------

    def _say(self, message: Message) -> None:
        act = act_of(message)
        self._queue(act, self._prepare(act, message))

    def _prepare(self, act: Act, message: Message) -> Frame:
        """Check that we may say it now, and return its frame; nothing has changed yet."""
        self._require_running(act.name)
        if message.type >= OURS and not self.speaks_changes:
            raise LocalProtocolError(
                f"we may not say {act.name} before both sides have named {CHANGES!r}"
            )
        if message.type in EDGE_MESSAGES and not self.speaks_edges:
            raise LocalProtocolError(
                f"we may not say {act.name} before both sides have named {EDGES!r}"
            )
        if isinstance(message, Trace) and not self.speaks_traces:
            raise LocalProtocolError(
                f"we may not say {act.name} before both sides have named {TRACES!r}"
            )
        self.states.check(Party.LOCAL, act)
        changes = message if isinstance(message, Changes) else None
        data = message.edge if isinstance(message, Bundle) else changes and changes.output
        frame = to_frame(
            message,
            sequence=self._sequence + 1,
            timestamp_ns=changes.watermark_ns or 0 if changes else 0,
            fingerprint=self._fingerprints_out.get(data, "") if data else "",
            compression=self._compression,
        )
        self._buffer.check_room(act, len(frame.payload))
        return frame

    def _queue(self, act: Act, frame: Frame) -> None:
        self.states.say(Party.LOCAL, act)
        self._buffer.put(encode(frame, self._frame_limits))
        self._sequence += 1

    def _answer(self, message: Message) -> None:
        """Say what the peer made us say; without room for it, it asks but does not read."""
        if self.states.parties[Party.LOCAL] is State.SILENT:
            return
        try:
            self._say(message)
        except LocalProtocolError as error:
            raise RemoteProtocolError(f"the peer cannot be answered: {error}") from None

    def _or_break(self, act: Callable[[], None]) -> None:
        try:
            act()
        except RemoteProtocolError as error:
            self._break(error, Reason.OVERLOAD)

    def _farewell(self, reason: Reason, detail: str) -> None:
        if self.speaks_changes and self.states.parties[Party.LOCAL] is State.TALKING:
            self._say(Goodbye(reason, detail[: self.limits.reason_chars_max]))

    def _require_running(self, what: str) -> None:
        if self.ended:
            raise LocalProtocolError(f"we may not say {what}: the link has ended")

    # --- ending ---------------------------------------------------------------------------------

    @property
    def _is_settled(self) -> bool:
        return self.states.halves[Party.LOCAL] is State.OPEN

    @property
    def _peer_left(self) -> bool:
        return self.states.parties[Party.REMOTE] is State.SILENT

    def _give_up(self, why: str) -> None:
        self._break(RemoteProtocolError(why), Reason.TIMEOUT)

    def _break(self, error: RemoteProtocolError, reason: Reason) -> None:
        self._farewell(reason, str(error))
        self._end(error)

    def _end(self, error: RemoteProtocolError | None) -> None:
        self._consumer.drop_snapshots("the link ended")
        self._tell(Ended(error))
        self.ended = True

    def _tell(self, event: Event) -> None:
        self._events.append(event)

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events
