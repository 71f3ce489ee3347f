"""The rows between the pushes of a program and the run that takes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from ripple.connectors.inputs import Signal
from ripple.core.errors import InputError

Pushed: TypeAlias = Mapping[str, Any] | pa.RecordBatch
"""A row, or a batch of rows."""

OVER = "the run that reads this stream has ended"


class StreamBuffer:
    """The buffer of one stream.

    Invariants: ``pushed`` and ``taken`` count rows, and the items are those between. Rows before
    ``written``, at most ``taken``, are written to the outputs. ``base`` is the offset of the first
    row ever pushed, once a run has opened the stream. A buffer that is closed takes no more rows;
    one that is over has no items, and gives none.
    """

    def __init__(self, rows_max: int) -> None:
        """Begin with no rows. rows_max: in the buffer, by rows that come one by one."""
        self._rows_max = rows_max
        self._items: deque[Pushed] = deque()
        self.pushed = self.taken = self.written = 0
        self.base: int | None = None
        self.is_closed = self.is_over = False

    @property
    def has_room(self) -> bool:
        """Whether a push need not wait; one that can never succeed need not, either."""
        return self.pushed - self.taken < self._rows_max or self.is_closed or self.is_over

    @property
    def next_offset(self) -> int | None:
        """The offset of the next row to push, None before a run."""
        return None if self.base is None else self.base + self.pushed

    def check_open(self) -> None:
        """Raise InputError after the end of pushes."""
        if self.is_over:
            raise InputError(f"nothing can be pushed: {OVER}")
        if self.is_closed:
            raise InputError("nothing can be pushed: the stream is closed")

    def add(self, item: Pushed) -> None:
        """Take an item of an open stream with room."""
        self._items.append(item)
        self.pushed += rows_in(item)

    def begin(self, at: int) -> None:
        """Begin a run at an offset, or again at the reached one. Raises InputError."""
        if self.is_over:
            raise InputError(f"a stream is read by one run: make another rp.Stream; {OVER}")
        if self.base is None:
            self.base = at
        elif at != self.base + self.taken:
            raise InputError(
                f"a stream cannot go back to offset {at}: rows before {self.base + self.taken} are "
                "taken; start the run again, and push from the offset that opened() returns"
            )

    def take(self, at: int, rows_max: int) -> list[Pushed] | Signal:
        """Return the rows from offset ``at`` on, at most so many; those before are written."""
        assert self.base is not None
        self.written = at - self.base
        taken: list[Pushed] = []
        while self._items and rows_max:
            item = self._items.popleft()
            if isinstance(item, pa.RecordBatch) and item.num_rows > rows_max:
                self._items.appendleft(item.slice(rows_max))
                item = item.slice(0, rows_max)
            taken.append(item)
            rows = rows_in(item)
            self.taken += rows
            rows_max -= rows
        if taken:
            return taken
        return Signal.ENDED if self.is_closed else Signal.WAITING

    def end(self) -> None:
        """Drop the items: the run has ended."""
        self.is_over = True
        self._items.clear()


def rows_in(item: Pushed) -> int:
    """Return the number of rows of an item."""
    return int(item.num_rows) if isinstance(item, pa.RecordBatch) else 1
