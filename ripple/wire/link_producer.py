"""The half of a link in which we produce: what of each stream may be sent now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.wire.link_states import Sending, Sent, lead
from ripple.wire.position import Stream, is_same, is_within

if TYPE_CHECKING:
    from collections.abc import Collection

    from ripple.wire.link_limits import LinkLimits
    from ripple.wire.messages import Changes, Credit, Cut, SnapshotBegin, SnapshotEnd

CREDIT_BYTES_MAX = 2**62


@dataclass(slots=True)
class _Outbound:
    """Invariants: ``0 <= credit_bytes``; ``cut`` is where the peer stands if all arrives."""

    state: Sending = Sending.CLOSED
    epoch: int = 0
    cut: Cut = ()
    credit_bytes: int = 0


class ProducerHalf:
    """Checks what we want to send before it is sent, so that our mistakes stay at home."""

    def __init__(self, outputs: Collection[str], limits: LinkLimits) -> None:
        self._outputs = outputs
        self._limits = limits
        self._streams: dict[Stream, _Outbound] = {}

    def credit_bytes(self, stream: Stream) -> int:
        """Return how many bytes of data the peer takes on ``stream``; 0 before it is begun."""
        outbound = self._streams.get(stream)
        return outbound.credit_bytes if outbound else 0

    def begin(self, begin: SnapshotBegin) -> None:
        """Open the stream, or start it over."""
        stream = Stream(begin.output, begin.partition)
        outbound = self._streams.get(stream)
        if outbound is None:
            outbound = self._new(stream)
        outbound.state = lead(outbound.state, Sent.BEGIN)
        outbound.epoch, outbound.cut = begin.epoch, begin.cut

    def rows(self, rows: Changes, length_bytes: int) -> None:
        """Check rows of the snapshot under way."""
        outbound = self._at(Stream(rows.output, rows.partition), rows.epoch)
        after = lead(outbound.state, Sent.ROWS)
        if not is_same(rows.to_cut, outbound.cut):
            raise LocalProtocolError(
                f"rows at cut {rows.to_cut!r} in a snapshot at {outbound.cut!r}"
            )
        _spend(outbound, rows, length_bytes)
        outbound.state = after

    def end(self, end: SnapshotEnd) -> None:
        """Close the snapshot under way."""
        outbound = self._at(Stream(end.output, end.partition), end.epoch)
        after = lead(outbound.state, Sent.END)
        if not is_same(end.cut, outbound.cut):
            raise LocalProtocolError(
                f"a snapshot ends at cut {end.cut!r} that began at {outbound.cut!r}"
            )
        outbound.state = after

    def changes(self, changes: Changes, length_bytes: int) -> None:
        """Check that the range starts where the last one ended."""
        outbound = self._at(Stream(changes.output, changes.partition), changes.epoch)
        after = lead(outbound.state, Sent.CHANGES)
        if changes.from_cut is None or not is_same(changes.from_cut, outbound.cut):
            raise LocalProtocolError(
                f"changes from {changes.from_cut!r} do not start at {outbound.cut!r}, where the "
                "last ones ended; send a snapshot"
            )
        if not is_within(changes.from_cut, changes.to_cut):
            raise LocalProtocolError(
                f"changes from {changes.from_cut!r} to {changes.to_cut!r} go backward"
            )
        _spend(outbound, changes, length_bytes)
        outbound.state, outbound.cut = after, changes.to_cut

    def on_credit(self, credit: Credit) -> tuple[Stream, int]:
        """Take what the peer grants; return the stream and all that is available on it."""
        stream = Stream(credit.output, credit.partition)
        outbound = self._known(stream, "credit")
        outbound.credit_bytes += credit.length_bytes
        if outbound.credit_bytes > CREDIT_BYTES_MAX:
            raise RemoteProtocolError(f"the peer granted more than 2**62 bytes on {stream}")
        return stream, outbound.credit_bytes

    def on_request(self, stream: Stream, epoch: int) -> bool:
        """Return True when the peer follows a higher epoch than we sent: we are superseded."""
        outbound = self._known(stream, "a snapshot request")
        if epoch <= outbound.epoch:
            return False
        outbound.state = lead(outbound.state, Sent.SUPERSEDED)
        return True

    def check_output(self, output: str) -> None:
        """Raise :class:`LocalProtocolError` for an output that our handshake does not offer."""
        if output not in self._outputs:
            raise LocalProtocolError(f"{output!r} is not an output of our handshake")

    def _new(self, stream: Stream) -> _Outbound:
        self.check_output(stream.output)
        if len(self._streams) >= self._limits.streams_max:
            raise LocalProtocolError(f"streams_max is {self._limits.streams_max}")
        return self._streams.setdefault(stream, _Outbound())

    def _at(self, stream: Stream, epoch: int) -> _Outbound:
        outbound = self._streams.get(stream)
        if outbound is None:
            raise LocalProtocolError(f"{stream} has not begun on this link; send a snapshot")
        if epoch != outbound.epoch:
            raise LocalProtocolError(
                f"{stream} was begun in epoch {outbound.epoch}, not {epoch}; send a snapshot"
            )
        return outbound

    def _known(self, stream: Stream, what: str) -> _Outbound:
        outbound = self._streams.get(stream)
        if outbound is None:
            raise RemoteProtocolError(f"the peer sent {what} for {stream}, which we never began")
        return outbound


def _spend(outbound: _Outbound, changes: Changes, length_bytes: int) -> None:
    if length_bytes > outbound.credit_bytes:
        raise LocalProtocolError(
            f"{length_bytes} bytes on {changes.output}/{changes.partition} with a credit of "
            f"{outbound.credit_bytes}; wait for CreditReceived"
        )
    outbound.credit_bytes -= length_bytes
