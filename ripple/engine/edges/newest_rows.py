"""The newest rows of an append-only stream, in bounded memory."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ripple.core.cut import Cut

# This number of small neighbors is merged into one piece, up to a fraction of the limits: a row is
# copied two or three times, and the first piece, with hidden rows, stays small.
MERGED = 16
_PART = 8


class Unmade(Protocol):
    """Rows that become a batch at the first read."""

    num_rows: int

    @property
    def nbytes(self) -> int:
        """Their bytes in memory."""

    @property
    def shared_nbytes(self) -> int:
        """The bytes of other rows in the same buffers."""

    def made(self) -> pa.RecordBatch:
        """Return them."""

    def joined(self, others: Iterable[Self], /) -> Self:
        """Return them with their successors, in less memory."""


class _Piece:
    """Some rows, and the cut after them. level: the number of merges."""

    __slots__ = ("_rows", "count", "cut", "is_cut", "level", "size")

    def __init__(self, rows: pa.RecordBatch | Unmade, cut: Cut, level: int = 0) -> None:
        self._rows, self.cut, self.level = rows, cut, level
        self.is_cut = False
        self.count: int = rows.num_rows
        self.size = _size(rows)

    @property
    def is_made(self) -> bool:
        return isinstance(self._rows, pa.RecordBatch)

    @property
    def rows(self) -> pa.RecordBatch:
        if not isinstance(self._rows, pa.RecordBatch):
            self._rows = self._rows.made()
        return self._rows

    def joined(self, others: Sequence[_Piece]) -> _Piece:
        """Return these rows and their successors of the same level."""
        unmade = [one._rows for one in (self, *others) if not one.is_made]
        if len(unmade) == 1 + len(others):
            first, *more = unmade
            rows = first.joined(more)
        else:
            rows = pa.concat_batches([one.rows for one in (self, *others)])
        return _Piece(rows, others[-1].cut, self.level + 1)

    def release_others(self) -> None:
        """Hold no memory of other rows, if that is most of it."""
        rows = self._rows
        if isinstance(rows, pa.RecordBatch):
            if 2 * rows.nbytes < self.size:
                self._rows = pa.concat_batches([rows])
        elif 2 * rows.shared_nbytes > self.size:
            self._rows = rows.joined(())
        self.size = _size(self._rows)

    def cut_to(self, count: int) -> None:
        """Keep the last rows, and free the memory of the others."""
        self._rows = pa.concat_batches([self.rows.slice(self.count - count)])
        self.count, self.size, self.is_cut = count, _size(self._rows), True


def _size(rows: pa.RecordBatch | Unmade) -> int:
    """Return the bytes of the buffers of rows, a slice's whole batch included."""
    held: int = rows.get_total_buffer_size() if isinstance(rows, pa.RecordBatch) else rows.nbytes
    return held


class Lost(NamedTuple):
    """Rows that ``rows`` no longer returns: a range of a piece."""

    piece: _Piece
    first: int
    end: int

    @property
    def rows(self) -> pa.RecordBatch:
        """Return them."""
        return self.piece.rows.slice(self.first, self.end - self.first)


class NewestRows:
    """The newest rows of a stream, at most twice as many bytes as its limit.

    Invariant: all rows after ``begins`` are here, and perhaps some before it. There are at least
    ``rows_max`` rows or ``bytes_max`` bytes, if there ever were so many. Only the last piece may be
    larger than the limits, if it is unmade: it is cut when it is looked at, or another one follows.
    """

    def __init__(self, schema: pa.Schema, begins: Cut, rows_max: int, bytes_max: int) -> None:
        """Begin without rows at a cut. schema: of the rows."""
        self.schema = schema
        self.begins: Cut = dict(begins)
        """The cut after which no row is missing."""
        self.count = 0
        """The number of added rows, lost ones included."""
        self._rows_max, self._bytes_max = rows_max, bytes_max
        self._pieces: deque[_Piece] = deque()
        self._rows = self._bytes = 0

    def add(self, rows: pa.RecordBatch | Unmade, cut: Cut) -> list[Lost]:
        """Add the next rows, up to a cut; return the rows that ``rows`` loses."""
        if not rows.num_rows:
            return []
        self.count += rows.num_rows
        hidden, gone = self._hidden, list[Lost]()
        piece = _Piece(rows, dict(cut))
        if piece.size * self._rows_max > self._bytes_max * piece.count:  # wide, or slices
            piece.release_others()
        self._append(piece)
        while self._rows - (first := self._pieces[0]).count >= self._rows_max or (
            self._bytes - first.size >= self._bytes_max
        ):
            gone.append(Lost(first, hidden, first.count))
            hidden = 0
            self._drop()
        self._trim(made=False)
        if len(self._pieces) > 1 and self._hidden > hidden:
            gone.append(Lost(self._pieces[0], hidden, self._hidden))
        self._merge()
        return gone

    def rows(self) -> pa.RecordBatch:
        """Return the newest rows, at most ``rows_max``, the oldest first."""
        self._trim(made=True)
        return self._last(self._rows - self._hidden)

    def after(self, count: int) -> pa.RecordBatch | None:
        """Return the rows that came after the first ``count`` ones; None if some are dropped."""
        self._trim(made=True)
        wanted = self.count - count
        return self._last(wanted) if wanted <= self._rows - self._hidden else None

    @property
    def complete_from(self) -> Cut:
        """The cut after which no row is missing in ``rows``."""
        self._trim(made=True)
        return self._pieces[0].cut if self._hidden else self.begins

    @property
    def _hidden(self) -> int:
        """The number of rows beyond the limit: the first ones of the first piece."""
        return max(0, self._rows - self._rows_max)

    def _trim(self, *, made: bool) -> None:
        """Cut the first piece to the limit of bytes. made: also an unmade last piece.

        Only the first piece can be larger, since all before it were dropped for it.
        """
        if not self._pieces or (first := self._pieces[0]).size <= self._bytes_max:
            return
        if first.is_cut or (len(self._pieces) == 1 and not (made or first.is_made)):
            return
        size = first.rows.nbytes  # of its slice of the buffers
        room = max(1, min(first.count, self._rows_max, self._bytes_max * first.count // size))
        if room < first.count:
            self.begins = first.cut
        self._rows -= first.count
        self._bytes -= first.size
        first.cut_to(room)
        self._rows += first.count
        self._bytes += first.size

    def _append(self, piece: _Piece) -> None:
        self._pieces.append(piece)
        self._rows += piece.count
        self._bytes += piece.size

    def _drop(self) -> None:
        """Drop the first piece."""
        first = self._pieces.popleft()
        self._rows -= first.count
        self._bytes -= first.size
        self.begins = first.cut

    def _merge(self) -> None:
        """Make one piece of the last ones, while these are small, and not the first."""
        while len(self._pieces) > MERGED:
            newest = self._pieces[-1]
            is_large = newest.count * MERGED > 2 * self._rows_max // _PART
            if is_large or self._pieces[-MERGED].level != newest.level:
                return
            last = list(islice(reversed(self._pieces), MERGED))[::-1]
            rows, size = sum(one.count for one in last), sum(one.size for one in last)
            is_small = rows <= self._rows_max // _PART and size <= self._bytes_max // _PART
            if not is_small or any(one.level != newest.level for one in last):
                return
            for one in last:
                self._pieces.pop()
                self._rows -= one.count
                self._bytes -= one.size
            self._append(last[0].joined(last[1:]))

    def _last(self, wanted: int) -> pa.RecordBatch:
        """Return the last rows."""
        found: list[pa.RecordBatch] = []
        for piece in reversed(self._pieces):
            if wanted <= 0:
                break
            rows = piece.rows
            found.append(rows.slice(max(rows.num_rows - wanted, 0)))
            wanted -= rows.num_rows
        if not found:
            return pa.RecordBatch.from_pylist([], self.schema)
        return found[0] if len(found) == 1 else pa.concat_batches(found[::-1])
