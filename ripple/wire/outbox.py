"""What a slow peer has not taken yet, composed per key, so that it cannot grow without bound.

A stream waits in an outbox as one batch of deltas from the cut that the peer has to the newest
one. While no credit is there, further changes are composed into it: one row per key, whatever
the number of changes. Keys that are gone leave a Remove behind; once those and the live keys
together exceed ``rows_pending_max``, or the batch no longer fits a frame, the batch is dropped
and a snapshot takes its place, which holds live keys only.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ripple.wire.errors import LocalProtocolError
from ripple.wire.link_events import Event, SnapshotWanted, Superseded
from ripple.wire.messages import Changes, Reason, SnapshotBegin, SnapshotEnd
from ripple.wire.position import is_same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ripple.wire.codec import Buffer
    from ripple.wire.link import Link
    from ripple.wire.messages import Cut
    from ripple.wire.position import Stream

R = TypeVar("R")

ROWS_PENDING_MAX = 1_000_000
COMPOSE_ROWS_MIN = 4_096  # fewer rows than this are not worth composing yet
SNAPSHOTS_OPEN_MAX = 16


class Rows(Protocol[R]):
    """What an outbox must know of an output's batches of deltas, one row per key in each."""

    def count(self, rows: R) -> int:
        """Return the number of rows."""

    def compose(self, older: R, newer: R) -> R:
        """Return the one batch that does what both do in turn."""

    def part(self, rows: R, start: int, count: int) -> R:
        """Return ``count`` rows from ``start`` on, or as many as there are."""

    def body(self, rows: R) -> Buffer:
        """Return the bytes that Changes carry."""

    def deltas(self, rows: R) -> Iterable[tuple[bytes, bytes]]:
        """Return each key and its delta in bin_prot, for a peer that takes nothing else."""


@dataclass(frozen=True, slots=True)
class Table(Generic[R]):
    """All rows of a stream at ``cut``, each to be set; it must not change afterwards."""

    epoch: int
    cut: Cut
    rows: R
    watermark_ns: int | None = None
    digest: bytes = b""


class _Mode(Enum):
    DUE = auto()  # a snapshot must begin; changes until then are in it
    SENDING = auto()  # a snapshot is on its way; changes wait behind it
    FLOWING = auto()
    STOPPED = auto()  # superseded: only changes of a higher epoch start it again


@dataclass(slots=True)
class _Waiting(Generic[R]):
    """One stream.

    Invariants: ``rows`` leads from ``from_cut`` to ``to_cut``, and from_cut is where the peer
    will stand once all that was sent arrives; ``table`` is there in SENDING only.
    """

    mode: _Mode = _Mode.DUE
    epoch: int = 0
    from_cut: Cut = ()
    to_cut: Cut = ()
    watermark_ns: int | None = None
    traceparent: str | None = None
    rows: list[R] = field(default_factory=list)
    rows_count: int = 0
    composed_count: int = 0  # what they came to when they were last composed into one
    need_bytes: int = 1  # the credit for want of which the last attempt to send failed
    table: Table[R] | None = None
    next_row: int = 0
    rows_per_frame: int = 1 << 16
    deltas: deque[tuple[bytes, bytes]] = field(default_factory=deque)


class Outbox(Generic[R]):
    """Sends published changes over one link as fast as its credit allows.

    ``table(stream)`` returns the newest table and is asked when a snapshot begins; ``rows`` gives
    the operations on an output's batches.
    """

    def __init__(
        self,
        link: Link,
        table: Callable[[Stream], Table[R]],
        rows: Callable[[str], Rows[R]],
        *,
        rows_pending_max: int = ROWS_PENDING_MAX,
    ) -> None:
        self.snapshots_forced = 0  # for lack of credit, or for a gap of the publisher's
        self._link = link
        self._table = table
        self._rows = rows
        self._rows_pending_max = rows_pending_max
        self._streams: dict[Stream, _Waiting[R]] = {}
        self._sending = 0

    def pending_rows(self, stream: Stream) -> int:
        """Return how many rows wait for credit: at most ``rows_pending_max`` after each publish."""
        waiting = self._streams.get(stream)
        return len(waiting.deltas) + waiting.rows_count if waiting else 0

    def publish(
        self,
        stream: Stream,
        epoch: int,
        from_cut: Cut,
        to_cut: Cut,
        rows: R,
        *,
        watermark_ns: int | None = None,
        traceparent: str | None = None,
    ) -> None:
        """Take the changes of a stream between two cuts; ``pump`` sends them."""
        waiting = self._streams.setdefault(stream, _Waiting(epoch=epoch))
        if epoch < waiting.epoch or (epoch == waiting.epoch and waiting.mode is _Mode.STOPPED):
            return
        if epoch > waiting.epoch:
            waiting.epoch = epoch
            self._restart(waiting)
        if waiting.mode is _Mode.DUE:
            return
        if not is_same(from_cut, waiting.to_cut):
            self.snapshots_forced += 1
            self._restart(waiting)
            return
        waiting.to_cut, waiting.watermark_ns = to_cut, watermark_ns
        waiting.traceparent = traceparent
        waiting.rows.append(rows)
        waiting.rows_count += self._rows(stream.output).count(rows)
        self._compact(stream, waiting)

    def follow(self, events: Iterable[Event]) -> None:
        """Take note of what the peer asks; other events pass by."""
        for event in events:
            if isinstance(event, SnapshotWanted):
                waiting = self._streams.get(event.stream)
                # One that is on its way was begun after what made the peer ask.
                if waiting is not None and waiting.mode is _Mode.FLOWING:
                    self._restart(waiting)
            elif isinstance(event, Superseded) and event.stream in self._streams:
                waiting = self._streams[event.stream]
                self._restart(waiting)
                waiting.mode = _Mode.STOPPED

    def pump(self) -> int:
        """Queue what may be sent now, each stream in turn; return the number of frames."""
        sent = 0
        if not self._link.may_produce:
            return sent
        step = self._step if self._link.speaks_changes else self._step_deltas
        turn = deque(self._streams.items())
        while turn:
            stream, waiting = turn.popleft()
            if step(stream, waiting):
                sent += 1
                turn.append((stream, waiting))
        return sent

    # --- one frame ------------------------------------------------------------------------------

    def _step(self, stream: Stream, waiting: _Waiting[R]) -> bool:
        match waiting.mode:
            case _Mode.DUE:
                return self._begin(stream, waiting)
            case _Mode.SENDING:
                assert waiting.table is not None
                return self._send_part(stream, waiting, waiting.table)
            case _Mode.FLOWING if waiting.rows:
                return self._send_changes(stream, waiting)
            case _:
                return False

    def _begin(self, stream: Stream, waiting: _Waiting[R]) -> bool:
        if self._sending >= SNAPSHOTS_OPEN_MAX:
            return False
        table = self._take_table(stream, waiting)
        begin = SnapshotBegin(*stream, table.epoch, table.cut, table.watermark_ns)
        if len(begin.to_bytes()) > self._link.room_bytes:
            return False
        self._link.send_snapshot_begin(begin)
        waiting.mode, waiting.table, waiting.next_row = _Mode.SENDING, table, 0
        self._sending += 1
        return True

    def _send_part(self, stream: Stream, waiting: _Waiting[R], table: Table[R]) -> bool:
        kind = self._rows(stream.output)
        total = kind.count(table.rows)
        if waiting.next_row >= total:
            return self._end(stream, waiting, table, total)
        if self._link.credit_bytes(stream) < waiting.need_bytes:
            return False
        while True:
            body = kind.body(kind.part(table.rows, waiting.next_row, waiting.rows_per_frame))
            rows = Changes(*stream, table.epoch, None, table.cut, table.watermark_ns, body)
            length_bytes = len(rows.to_bytes())
            if length_bytes <= self._link.limits.frame_bytes_max:
                break
            if waiting.rows_per_frame == 1:
                raise LocalProtocolError(
                    f"one row of {stream} has {length_bytes} bytes; frame_bytes_max is "
                    f"{self._link.limits.frame_bytes_max}"
                )
            waiting.rows_per_frame = max(1, waiting.rows_per_frame // 2)
        if length_bytes > self._link.credit_bytes(stream):
            waiting.need_bytes = length_bytes
            return False
        self._link.send_snapshot_rows(rows)
        waiting.need_bytes = 1
        waiting.next_row += waiting.rows_per_frame
        return True

    def _end(self, stream: Stream, waiting: _Waiting[R], table: Table[R], total: int) -> bool:
        end = SnapshotEnd(*stream, table.epoch, table.cut, total, table.digest)
        if len(end.to_bytes()) > self._link.room_bytes:
            return False
        self._link.send_snapshot_end(end)
        waiting.mode, waiting.table = _Mode.FLOWING, None
        self._sending -= 1
        return True

    def _send_changes(self, stream: Stream, waiting: _Waiting[R]) -> bool:
        if self._link.credit_bytes(stream) < waiting.need_bytes:
            return False
        body = self._rows(stream.output).body(self._composed(stream, waiting))
        changes = Changes(
            *stream,
            waiting.epoch,
            waiting.from_cut,
            waiting.to_cut,
            waiting.watermark_ns,
            body,
            waiting.traceparent,
        )
        length_bytes = len(changes.to_bytes())
        if length_bytes > self._link.limits.frame_bytes_max:
            self.snapshots_forced += 1
            self._restart(waiting)
            return self._begin(stream, waiting)
        if length_bytes > self._link.credit_bytes(stream):
            waiting.need_bytes = length_bytes
            return False
        self._link.send_changes(changes)
        self._forget(waiting)
        return True

    # --- peers that know types 0 to 5 only ------------------------------------------------------

    def _step_deltas(self, stream: Stream, waiting: _Waiting[R]) -> bool:
        kind = self._rows(stream.output)
        if not waiting.deltas:
            if waiting.mode is _Mode.DUE:
                waiting.deltas.extend(kind.deltas(self._take_table(stream, waiting).rows))
                waiting.mode = _Mode.FLOWING
            elif waiting.rows:
                waiting.deltas.extend(kind.deltas(self._composed(stream, waiting)))
                self._forget(waiting)
        if not waiting.deltas:
            return False
        key, delta = waiting.deltas[0]
        if len(key) + len(delta) + len(stream.output) + 64 > self._link.room_bytes:
            return False
        self._link.send_delta(stream.output, key, delta, waiting.watermark_ns)
        waiting.deltas.popleft()
        return True

    # --- what waits -----------------------------------------------------------------------------

    def _take_table(self, stream: Stream, waiting: _Waiting[R]) -> Table[R]:
        table = self._table(stream)
        waiting.epoch, waiting.watermark_ns = table.epoch, table.watermark_ns
        waiting.from_cut = waiting.to_cut = table.cut
        return table

    def _compact(self, stream: Stream, waiting: _Waiting[R]) -> None:
        # Composing costs as much as what waits, so it is done when that has doubled.
        enough = 2 * waiting.composed_count + COMPOSE_ROWS_MIN
        if waiting.rows_count > min(enough, self._rows_pending_max):
            self._composed(stream, waiting)
        if len(waiting.deltas) + waiting.rows_count <= self._rows_pending_max:
            return
        self.snapshots_forced += 1
        self._restart(waiting)
        if not self._link.speaks_changes and self._link.may_produce:
            # Such a peer cannot be told to start over, so it must come back instead.
            self._link.close(Reason.OVERLOAD, f"rows_pending_max of {stream}")

    def _composed(self, stream: Stream, waiting: _Waiting[R]) -> R:
        kind, rows = self._rows(stream.output), waiting.rows
        while len(rows) > 1:  # pairs, then pairs of pairs: composing is associative
            pairs = zip(rows[::2], rows[1::2], strict=False)
            rows[:] = [kind.compose(*pair) for pair in pairs] + rows[len(rows) & ~1 :]
        waiting.rows_count = waiting.composed_count = kind.count(rows[0])
        return rows[0]

    def _forget(self, waiting: _Waiting[R]) -> None:
        waiting.rows.clear()
        waiting.rows_count = waiting.composed_count = 0
        waiting.need_bytes = 1
        waiting.from_cut = waiting.to_cut

    def _restart(self, waiting: _Waiting[R]) -> None:
        self._forget(waiting)
        self._sending -= waiting.mode is _Mode.SENDING
        waiting.mode, waiting.table = _Mode.DUE, None
