"""A connection between two workers, without I/O: bytes in, events out, and bytes to send.

The caller owns the socket and the clock. It feeds received bytes into ``receive``, acts on the
events, sends ``data_to_send()``, and calls ``tick`` when ``next_deadline_ns`` has come. A fault of
the peer never raises: it ends the link, and the last event, ``Ended``, carries the
RemoteProtocolError, after all events that came before it. A fault of the caller raises
LocalProtocolError and changes nothing. When one of our own calls ends the link, the next ``tick``
or ``receive`` returns the event, and ``next_deadline_ns`` is at once.

Which message is allowed when is in :mod:`ripple.exchange.wire.link_states`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.core.codec.compression import Compression
from ripple.exchange.wire.edge_messages import (
    EDGE_MESSAGES,
    Bundle,
    EdgeMessage,
    Follow,
    Grant,
    Release,
    Trace,
    Unfollow,
)
from ripple.exchange.wire.envelope import VERSION, Decoder, Frame, Limits, encode
from ripple.exchange.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.exchange.wire.link_buffer import SendBuffer
from ripple.exchange.wire.link_events import (
    Ended,
    Event,
    PeerAccepted,
    PeerLeft,
    PeerOffered,
    Received,
    Refused,
)
from ripple.exchange.wire.link_keep_alive import KeepAlive
from ripple.exchange.wire.link_limits import LinkLimits
from ripple.exchange.wire.link_states import Act, LinkStates, Party, State
from ripple.exchange.wire.messages import (
    CheckpointAck,
    CheckpointRequest,
    Delta,
    Goodbye,
    Handshake,
    Heartbeat,
    Message,
    Ping,
    Pong,
    Reason,
    SchemaNegotiation,
    from_frame,
    to_frame,
)
from ripple.model.schema.compat import Compatibility, Incompatibility, Incompatible, check_backward
from ripple.model.schema.fingerprint import fingerprint as schema_fingerprint

if TYPE_CHECKING:
    from ripple.model.schema.types import Schema

Check: TypeAlias = Callable[["Schema", "Schema"], Compatibility]
Fingerprint: TypeAlias = Callable[["Schema"], str]
Admits: TypeAlias = Callable[[Handshake], tuple[str, ...]]

CHANGES = "changes"
EDGES = "edges"
TRACES = "traces"
OURS = 21  # types from here on need that capability
_COMPRESSIONS = {"lz4": Compression.LZ4, "zstd": Compression.ZSTD}

ACT_OF: dict[type[Message], Act] = {
    Handshake: Act.HANDSHAKE,
    Delta: Act.DELTA,
    CheckpointRequest: Act.CHECKPOINT_REQUEST,
    CheckpointAck: Act.CHECKPOINT_ACK,
    Heartbeat: Act.HEARTBEAT,
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


def _admit_all(_: Handshake) -> tuple[str, ...]:
    return ()


def act_of(message: Message) -> Act:
    """Return the act of sending ``message``."""
    if isinstance(message, SchemaNegotiation):
        return Act.ACCEPT if message.ok else Act.REFUSE
    return ACT_OF[type(message)]


def _output_of(message: Message) -> str | None:
    """Return the output, or the edge, of the rows in ``message``; None without rows."""
    match message:
        case Delta():
            return message.source_output
        case Bundle():
            return message.edge
        case _:
            return None


def _differences(verdict: Compatibility) -> tuple[Incompatibility, ...]:
    return verdict.differences if isinstance(verdict, Incompatible) else ()


class Link:
    """One connection, seen from one end.

    ``outputs``: our offer. ``inputs``: the outputs of the peer that we read, each with its schema;
    None reads any. ``check(reader, writer)`` returns whether we can read an output; ``fingerprint``
    identifies a schema on each frame of its data. ``credential``: ours. ``admits`` returns why a
    peer is rejected, empty if it is admitted. A rejected peer gets the refusal, and nothing else
    unless we sent our handshake first. ``singles``: the offer to a peer that sends the first
    handshake without naming ``edges``.

    Invariants: after ``Ended`` nothing changes any more; at most ``send_buffer_bytes_max`` and one
    goodbye wait to be sent.
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
        capabilities: frozenset[str] = frozenset({CHANGES}),
        limits: LinkLimits | None = None,
        credential: str = "",
        admits: Admits = _admit_all,
        singles: Mapping[str, Schema] | None = None,
    ) -> None:
        self.limits = limits = limits or LinkLimits()
        self.states = LinkStates()
        self.ended = False
        self._worker_id, self._outputs, self._singles = worker_id, outputs, singles
        self._credential = credential
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
        self._fingerprints_out: dict[str, str] = {}
        self._fingerprints_in: dict[str, str] = {}
        self._hearing: dict[type[Message], Callable[[Any], None]] = {
            Handshake: self._on_handshake,
            SchemaNegotiation: self._on_negotiation,
            Delta: self._on_delta,
            Bundle: self._on_other,
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
        self._received_sequence = 0
        self._now_ns = self._began_ns = now_ns
        self._left_ns: int | None = None
        self._keep_alive = KeepAlive(limits, now_ns)

    # --- bytes and time -------------------------------------------------------------------------

    def receive(self, data: bytes, now_ns: int) -> list[Event]:
        """Take bytes of the peer, cut anywhere; return their events, in order."""
        if self.ended:
            return self._take_events()
        self._now_ns = now_ns
        self._keep_alive.received(now_ns)
        try:
            self._decoder.receive(data)
            for frame in self._decoder:
                self._receive(frame)
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
        """Advance the time: ping a silent peer, end the link to a dead one.

        A peer without our capabilities cannot answer a ping, so its silence proves nothing; the
        transport's own timeout on unacknowledged bytes must detect its death.
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
            self._send(self._keep_alive.question())
            self._keep_alive.asked(now_ns)
        return self._take_events()

    # --- sending --------------------------------------------------------------------------------

    def handshake(self) -> None:
        """Send our handshake."""
        self._offer(self._outputs, self._ours, self._credential)

    def _offer(
        self, outputs: Mapping[str, Schema], capabilities: frozenset[str], credential: str
    ) -> None:
        self._send(Handshake.announce(self._worker_id, outputs, capabilities, credential))
        self._fingerprints_out = {name: self._fingerprint(of) for name, of in outputs.items()}

    def carry(
        self, message: Delta | Heartbeat | CheckpointRequest | CheckpointAck | EdgeMessage
    ) -> None:
        """Send a message that the link only carries."""
        self._send(message)

    def close(self, reason: Reason = Reason.SHUTDOWN, detail: str = "") -> None:
        """Send a goodbye; the peer's messages are received until its goodbye."""
        if self.ended or self.states.parties[Party.LOCAL] is State.SILENT:
            return
        self._farewell(reason, detail)
        if self._peer_left or not self.speaks_changes:
            self._end(None)
        else:
            self._left_ns = self._now_ns

    # --- queries --------------------------------------------------------------------------------

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
        """Both sides know traces."""
        return TRACES in self._agreed and self.speaks_edges

    @property
    def room_bytes(self) -> int:
        """The payload bytes that one more frame may have now."""
        return max(0, self._buffer.room_for(Act.BUNDLE))

    def check_invariants(self) -> None:
        """Raise AssertionError when the link contradicts itself."""
        self._buffer.check_invariants()

    # --- receiving ------------------------------------------------------------------------------

    def _receive(self, frame: Frame) -> None:
        if frame.type >= OURS and not self.speaks_changes:
            raise RemoteProtocolError(
                f"the peer sent type {frame.type} before both sides had named {CHANGES!r}"
            )
        if self.speaks_changes and frame.sequence != self._received_sequence + 1:
            raise RemoteProtocolError(
                f"the peer sent frame {frame.sequence} after frame {self._received_sequence}"
            )
        self._received_sequence = frame.sequence
        message = from_frame(frame)
        self.states.say(Party.REMOTE, act_of(message))
        if frame.type in EDGE_MESSAGES and not self.speaks_edges:
            raise RemoteProtocolError(f"the peer has not named the capability {EDGES!r}")
        if isinstance(message, Trace) and not self.speaks_traces:
            raise RemoteProtocolError(f"the peer has not named the capability {TRACES!r}")
        if isinstance(message, Bundle):
            self._check_data(message.edge, frame)
        self._hearing[type(message)](message)

    def _on_handshake(self, peer: Handshake) -> None:
        refusal = self._admits(peer)
        if refusal:
            longest, most = self.limits.reason_chars_max, self.limits.errors_max
            self._refuse(tuple(one[:longest] for one in refusal[:most]))
            return
        agreed_on = self._ours & peer.capabilities
        if self.states.halves[Party.LOCAL] is State.QUIET:
            if self._singles is None or EDGES in agreed_on:
                self.handshake()
            else:
                # A peer without capabilities would take the hidden entry for an output.
                ours = self._ours - {EDGES, TRACES} if agreed_on else frozenset()
                self._offer(self._singles, ours, "")
        self._agreed = agreed_on
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
        self._emit(PeerOffered(peer.source_worker_id, outputs, peer.capabilities))

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
            self._emit(PeerAccepted())
            return
        errors = answer.errors[: self.limits.errors_max]
        longest = self.limits.reason_chars_max
        self._reject(Refused(by_peer=True, errors=tuple(text[:longest] for text in errors)))

    def _refuse(self, errors: tuple[str, ...]) -> None:
        self._answer(SchemaNegotiation(ok=False, errors=errors))
        self._reject(Refused(by_peer=False, errors=errors))

    def _reject(self, refused: Refused) -> None:
        self._emit(refused)
        self._farewell(Reason.INCOMPATIBLE, "; ".join(refused.errors))
        self._end(None)

    def _on_ping(self, ping: Ping) -> None:
        self._answer(Pong(ping.nonce))

    def _on_pong(self, pong: Pong) -> None:
        self._keep_alive.answered(pong)

    def _on_delta(self, delta: Delta) -> None:
        raise RemoteProtocolError(
            f"the peer sent a Delta of {delta.source_output!r}, which is not read here"
        )

    def _on_other(
        self, message: Heartbeat | CheckpointRequest | CheckpointAck | EdgeMessage
    ) -> None:
        self._emit(Received(message))

    def _on_goodbye(self, goodbye: Goodbye) -> None:
        self._emit(PeerLeft(goodbye.reason, goodbye.detail[: self.limits.reason_chars_max]))
        if self.states.parties[Party.LOCAL] is State.SILENT:
            self._end(None)
        else:
            self._left_ns = self._now_ns

    def _check_data(self, output: str, frame: Frame) -> None:
        if output not in self._fingerprints_in:
            raise RemoteProtocolError(f"the peer sent {output!r}, which its handshake lacks")
        if frame.fingerprint != self._fingerprints_in[output]:
            raise RemoteProtocolError(
                f"the peer sent {output!r} in schema {frame.fingerprint!r}; its handshake "
                f"says {self._fingerprints_in[output]!r}"
            )

    # --- the send queue----------------------------------------------------------------------------

    def _send(self, message: Message) -> None:
        act = act_of(message)
        self._queue(act, self._prepare(act, message))

    def _prepare(self, act: Act, message: Message) -> Frame:
        """Check that the message is allowed now, and return its frame; changes nothing."""
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
        output = _output_of(message)
        if output is not None and output not in self._fingerprints_out:
            raise LocalProtocolError(f"{output!r} is not an output of our handshake")
        frame = to_frame(
            message,
            sequence=self._sequence + 1,
            timestamp_ns=message.watermark_ns or 0 if isinstance(message, Delta) else 0,
            fingerprint=self._fingerprints_out[output] if output is not None else "",
            compression=self._compression,
        )
        self._buffer.check_room(act, len(frame.payload))
        return frame

    def _queue(self, act: Act, frame: Frame) -> None:
        self.states.say(Party.LOCAL, act)
        self._buffer.put(encode(frame, self._frame_limits))
        self._sequence += 1

    def _answer(self, message: Message) -> None:
        """Send a reply; without room for it, the peer requests but does not read."""
        if self.states.parties[Party.LOCAL] is State.SILENT:
            return
        try:
            self._send(message)
        except LocalProtocolError as error:
            raise RemoteProtocolError(f"the peer cannot be answered: {error}") from None

    def _farewell(self, reason: Reason, detail: str) -> None:
        """Send the reason for leaving; to a peer without Goodbye, as a refusal."""
        if self.states.parties[Party.LOCAL] is not State.TALKING:
            return
        detail = detail[: self.limits.reason_chars_max]
        if self.speaks_changes:
            self._send(Goodbye(reason, detail))
        elif self.states.halves[Party.REMOTE] is State.OPEN:
            self._send(SchemaNegotiation(ok=False, errors=(detail or reason.value,)))

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
        self._emit(Ended(error))
        self.ended = True

    def _emit(self, event: Event) -> None:
        self._events.append(event)

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events
