"""The newest rows of a stream, which only grows: what can be shown of it in bounded memory."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from ripple.core.cut import Cut

# Beyond, each two pieces are made one: thousands of pieces of one row would take too much.
PIECES_MAX = 128


class _Piece(NamedTuple):
    """Some rows, and the cut that they reach."""

    rows: pa.RecordBatch
    cut: Cut
    size: int


class NewestRows:
    """The newest rows of a stream, at most twice as many rows or bytes as its limits.

    Invariant: all rows after ``begins`` are here, and perhaps some before it. There are at least
    ``rows_max`` rows or ``bytes_max`` bytes, if there ever were so many.
    """

    def __init__(self, schema: pa.Schema, begins: Cut, rows_max: int, bytes_max: int) -> None:
        """Begin without rows at a cut. schema: of the rows."""
        self.schema = schema
        self.begins: Cut = dict(begins)
        """The cut after which no row is missing."""
        self.count = 0
        """Rows that were ever added."""
        self._rows_max, self._bytes_max = rows_max, bytes_max
        self._pieces: deque[_Piece] = deque()
        self._rows = self._bytes = 0

    def add(self, rows: pa.RecordBatch, cut: Cut) -> list[pa.RecordBatch]:
        """Add the rows that follow up to a cut; return those that ``rows`` loses."""
        if not rows.num_rows:
            return []
        self.count += rows.num_rows
        piece = _Piece(rows, dict(cut), rows.get_total_buffer_size())
        hidden, gone = self._hidden, []
        room = self._room(piece)
        if room < rows.num_rows:
            gone += [self._drop() for _ in range(len(self._pieces))]
            self.begins = piece.cut
            at = np.arange(rows.num_rows - room, rows.num_rows)
            rows = rows.take(pa.array(at))  # a copy: a slice would keep all of them
            piece = _Piece(rows, piece.cut, rows.get_total_buffer_size())
        self._append(piece)
        while self._rows - (first := self._pieces[0]).rows.num_rows >= self._rows_max or (
            self._bytes - first.size >= self._bytes_max
        ):
            gone.append(self._drop())
        if self._hidden:
            gone.append(self._pieces[0].rows.slice(0, self._hidden))
        if len(self._pieces) > PIECES_MAX:
            self._merge()
        return [gone[0].slice(hidden), *gone[1:]] if gone else []

    def rows(self) -> pa.RecordBatch:
        """Return the newest rows, at most ``rows_max``, the oldest first."""
        return self._last(self._rows - self._hidden)

    def after(self, count: int) -> pa.RecordBatch | None:
        """Return the rows that came after the first ``count`` ones; None if some are dropped."""
        wanted = self.count - count
        return self._last(wanted) if wanted <= self._rows - self._hidden else None

    @property
    def complete_from(self) -> Cut:
        """The cut after which no row is missing in ``rows``."""
        return self._pieces[0].cut if self._hidden else self.begins

    @property
    def _hidden(self) -> int:
        """How many rows are here beyond the limit: the first ones of the first piece."""
        return max(0, self._rows - self._rows_max)

    def _room(self, piece: _Piece) -> int:
        """Return how many rows of a new piece the limits allow."""
        count: int = piece.rows.num_rows
        fitting = count if piece.size <= self._bytes_max else self._bytes_max * count // piece.size
        return max(1, min(count, fitting, self._rows_max))

    def _append(self, piece: _Piece) -> None:
        self._pieces.append(piece)
        self._rows += piece.rows.num_rows
        self._bytes += piece.size

    def _drop(self) -> pa.RecordBatch:
        """Drop the first piece; return its rows."""
        first = self._pieces.popleft()
        self._rows -= first.rows.num_rows
        self._bytes -= first.size
        self.begins = first.cut
        return first.rows

    def _merge(self) -> None:
        before, self._pieces = list(self._pieces), deque()
        self._rows = self._bytes = 0
        for at in range(0, len(before), 2):
            pair = before[at : at + 2]
            if len(pair) == 2:
                rows = pa.concat_batches([one.rows for one in pair])
                pair = [_Piece(rows, pair[1].cut, rows.get_total_buffer_size())]
            self._append(pair[0])

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
