"""The half of a link in which we consume: what each message of a stream means to us."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ripple.errors import LimitError
from ripple.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.wire.link_events import (
    ChangesReceived,
    GapFound,
    SnapshotAdopted,
    SnapshotDropped,
    SnapshotRows,
    SnapshotStarted,
    StaleEpochRefused,
)
from ripple.wire.link_states import Begun, Effect, StreamEvent, StreamState, follow
from ripple.wire.messages import (
    Changes,
    Credit,
    Message,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotRequest,
)
from ripple.wire.position import Positions, Stream, Verdict, is_same, is_within

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.wire.link_events import Event
    from ripple.wire.link_limits import LinkLimits


@dataclass(slots=True)
class LinkCounters:
    """What was seen and not delivered; each is a metric."""

    duplicates: int = 0  # ranges that end within what we have
    ignored: int = 0  # changes that mean nothing until a snapshot, or that nobody here reads
    gaps: int = 0
    stale_epochs: int = 0
    snapshots_adopted: int = 0
    snapshots_dropped: int = 0
    sequence_gaps: int = 0  # of peers that know types 0 to 5 only

    def as_dict(self) -> dict[str, int]:
        """Return the counters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(slots=True)
class _Inbound:
    """One stream as it reaches us on this link.

    Invariants: ``filling`` is the snapshot under way, in states FILLING and REFUSING only;
    once the stream is open, granted + held + owed = the credit window.
    """

    state: StreamState = StreamState.WAITING
    filling: SnapshotBegin | None = None
    granted_bytes: int = 0  # the peer may still send
    held_bytes: int = 0  # handed to our caller, who has not given them back
    owed_bytes: int = 0  # given back, not yet granted again


class ConsumerHalf:
    """Follows the peer's streams; ``say`` sends a message, ``tell`` reports an event."""

    def __init__(
        self,
        positions: Positions,
        limits: LinkLimits,
        counters: LinkCounters,
        say: Callable[[Message], None],
        tell: Callable[[Event], None],
    ) -> None:
        self._positions = positions
        self._limits = limits
        self._counters = counters
        self._say = say
        self._tell = tell
        self._streams: dict[Stream, _Inbound] = {}
        self._snapshots = 0

    def on_begin(self, begin: SnapshotBegin) -> None:
        """Take the begin of a snapshot: the only way in which a stream opens on a link."""
        stream = Stream(begin.output, begin.partition)
        inbound = self._streams.get(stream) or self._open(stream)
        stale = self._positions.judge_epoch(stream, begin.epoch) is Verdict.STALE
        event = Begun.BEGIN_STALE if stale else Begun.BEGIN
        state, effect = follow(inbound.state, event)
        if inbound.state is StreamState.FILLING:
            self._drop(stream, "another one began")
            inbound.state, inbound.filling = StreamState.WAITING, None
        if effect is Effect.START:
            self._start(stream, inbound, begin)
        else:
            self._refuse(stream, begin.epoch)
        inbound.state, inbound.filling = state, begin

    def on_changes(self, changes: Changes, length_bytes: int) -> None:
        """Take changes of a range, or rows of a snapshot."""
        stream = Stream(changes.output, changes.partition)
        inbound = self._paid(stream, length_bytes)
        event = self._event_of(stream, inbound, changes)
        before = inbound.state
        inbound.state, effect = follow(before, event)
        match effect:
            case Effect.DELIVER:
                self._positions.advance(stream, changes.to_cut)
                inbound.held_bytes += length_bytes
                self._tell(ChangesReceived(stream, changes, length_bytes))
                return
            case Effect.FILL:
                inbound.held_bytes += length_bytes
                self._tell(SnapshotRows(stream, changes, length_bytes))
                return
            case Effect.REFUSE:
                self._refuse(stream, changes.epoch)
            case Effect.REQUEST:
                self._request_after(stream, changes)
            case Effect.ABANDON:
                self._drop(stream, "its epoch was superseded")
                self._refuse(stream, changes.epoch)
            case _ if event is Verdict.REPEAT:
                self._counters.duplicates += 1
            case _:
                self._counters.ignored += 1
        self._owe(stream, inbound, length_bytes)

    def on_end(self, end: SnapshotEnd) -> None:
        """Take the end of a snapshot: adopt it, unless it would take us back."""
        stream = Stream(end.output, end.partition)
        inbound = self._known(stream, "SnapshotEnd")
        begin = inbound.filling
        if begin is not None and (end.epoch != begin.epoch or not is_same(end.cut, begin.cut)):
            raise RemoteProtocolError(
                f"a snapshot of {stream} began at {begin.cut!r} in epoch {begin.epoch} and ended "
                f"at {end.cut!r} in epoch {end.epoch}"
            )
        before = inbound.state
        inbound.state, effect = follow(before, self._ending_of(stream, end))
        inbound.filling = None
        if effect is Effect.ADOPT:
            self._snapshots -= 1
            self._counters.snapshots_adopted += 1
            self._positions.advance(stream, end.cut)
            self._tell(SnapshotAdopted(stream, end))
        elif effect is Effect.ABANDON:
            stale = inbound.state is StreamState.WAITING
            self._drop(stream, "its epoch was superseded" if stale else "it is older than ours")

    def grant(self, stream: Stream, length_bytes: int) -> None:
        """Give back what the caller has dealt with; the peer hears of it in larger pieces."""
        inbound = self._streams.get(stream)
        held = inbound.held_bytes if inbound else 0
        if inbound is None or not 0 <= length_bytes <= held:
            raise LocalProtocolError(
                f"{length_bytes} bytes given back on {stream}, of {held} that were handed over"
            )
        inbound.held_bytes -= length_bytes
        self._owe(stream, inbound, length_bytes)

    def request(self, stream: Stream) -> None:
        """Ask for the whole table, because the caller cannot use what it has."""
        inbound = self._streams.get(stream)
        if inbound is None:
            raise LocalProtocolError(f"{stream} has not begun on this link")
        if inbound.state in (StreamState.LIVE, StreamState.BEHIND):
            inbound.state = StreamState.WAITING
            self._say_request(stream)

    def drop_snapshots(self, reason: str) -> None:
        """Drop what is being filled: the peer will not finish it."""
        for stream, inbound in self._streams.items():
            if inbound.state is StreamState.FILLING:
                self._drop(stream, reason)
            if inbound.filling is not None:
                inbound.state, inbound.filling = StreamState.WAITING, None

    def check_invariants(self) -> None:
        """Raise AssertionError when the books of a stream do not balance."""
        window = self._limits.credit_window_bytes
        filling = 0
        for stream, inbound in self._streams.items():
            parts = (inbound.granted_bytes, inbound.held_bytes, inbound.owed_bytes)
            assert min(parts) >= 0, (stream, inbound)
            assert sum(parts) in (0, window), (stream, inbound)
            within = inbound.state in (StreamState.FILLING, StreamState.REFUSING)
            assert within == (inbound.filling is not None), (stream, inbound)
            filling += inbound.state is StreamState.FILLING
        assert filling == self._snapshots <= self._limits.snapshots_max

    def _open(self, stream: Stream) -> _Inbound:
        if len(self._streams) >= self._limits.streams_max:
            raise RemoteProtocolError(
                f"the peer began {stream}, beyond streams_max={self._limits.streams_max}"
            )
        return self._streams.setdefault(stream, _Inbound())

    def _known(self, stream: Stream, what: str) -> _Inbound:
        inbound = self._streams.get(stream)
        if inbound is None:
            raise RemoteProtocolError(
                f"the peer sent {what} on {stream}; expected SnapshotBegin first"
            )
        return inbound

    def _paid(self, stream: Stream, length_bytes: int) -> _Inbound:
        inbound = self._known(stream, "Changes")
        if length_bytes > inbound.granted_bytes:
            raise RemoteProtocolError(
                f"the peer sent {length_bytes} bytes on {stream} with a credit of "
                f"{inbound.granted_bytes}"
            )
        inbound.granted_bytes -= length_bytes
        return inbound

    def _event_of(self, stream: Stream, inbound: _Inbound, changes: Changes) -> StreamEvent:
        if changes.from_cut is None:
            begin = inbound.filling
            if begin is None or changes.epoch != begin.epoch:
                raise RemoteProtocolError(
                    f"the peer sent rows of epoch {changes.epoch} on {stream} outside a snapshot "
                    f"of that epoch, in state {inbound.state.name}"
                )
            if not is_same(changes.to_cut, begin.cut):
                raise RemoteProtocolError(
                    f"the peer sent rows at {changes.to_cut!r} in a snapshot of {stream} at "
                    f"{begin.cut!r}"
                )
            verdict = self._positions.judge_epoch(stream, changes.epoch)
            return Begun.ROWS_STALE if verdict is Verdict.STALE else Begun.ROWS
        if not is_within(changes.from_cut, changes.to_cut):
            raise RemoteProtocolError(
                f"the peer sent changes of {stream} from {changes.from_cut!r} back to "
                f"{changes.to_cut!r}"
            )
        return self._positions.judge(stream, changes.epoch, changes.from_cut, changes.to_cut)

    def _ending_of(self, stream: Stream, end: SnapshotEnd) -> Begun:
        if self._positions.judge_epoch(stream, end.epoch) is Verdict.STALE:
            return Begun.END_STALE
        forward = self._positions.may_adopt(stream, end.cut)
        return Begun.END_FORWARD if forward else Begun.END_BACKWARD

    def _start(self, stream: Stream, inbound: _Inbound, begin: SnapshotBegin) -> None:
        if self._snapshots >= self._limits.snapshots_max:
            raise RemoteProtocolError(
                f"the peer began a snapshot of {stream} beyond snapshots_max="
                f"{self._limits.snapshots_max}"
            )
        try:
            self._positions.fence(stream, begin.epoch)
        except LimitError as error:
            raise RemoteProtocolError(f"the peer began too many streams: {error}") from None
        self._snapshots += 1
        self._tell(SnapshotStarted(stream, begin))
        if inbound.granted_bytes + inbound.held_bytes + inbound.owed_bytes == 0:
            self._owe(stream, inbound, self._limits.credit_window_bytes)

    def _refuse(self, stream: Stream, epoch: int) -> None:
        self._counters.stale_epochs += 1
        self._tell(StaleEpochRefused(stream, epoch, self._positions[stream].epoch))
        self._say_request(stream)

    def _request_after(self, stream: Stream, changes: Changes) -> None:
        self._counters.gaps += 1
        ours = self._positions[stream].cut
        self._positions.fence(stream, changes.epoch)
        self._tell(GapFound(stream, ours, changes.from_cut, changes.to_cut))
        self._say_request(stream)

    def _say_request(self, stream: Stream) -> None:
        epoch = self._positions[stream].epoch
        self._say(SnapshotRequest(stream.output, stream.partition, epoch))

    def _drop(self, stream: Stream, reason: str) -> None:
        self._snapshots -= 1
        self._counters.snapshots_dropped += 1
        self._tell(SnapshotDropped(stream, reason))

    def _owe(self, stream: Stream, inbound: _Inbound, length_bytes: int) -> None:
        # Half a window is two frames' worth at least one of which the peer could still send,
        # so grants may be gathered until then without stopping it.
        inbound.owed_bytes += length_bytes
        if 2 * inbound.owed_bytes >= self._limits.credit_window_bytes:
            inbound.granted_bytes += inbound.owed_bytes
            owed, inbound.owed_bytes = inbound.owed_bytes, 0
            self._say(Credit(stream.output, stream.partition, owed))
