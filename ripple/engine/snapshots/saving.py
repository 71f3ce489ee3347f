"""A fold's state as it was at a cut, dumped piece by piece while the fold continues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from ripple.core.row_ops import OP
from ripple.engine.snapshots.internal import internal
from ripple.engine.snapshots.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

STATE_OP = internal(OP)  # between key and state of a table of changes: Set 0, Remove 2


class Saving:
    """Copy on write, by slot: a slot is dumped before it changes, the rest step by step.

    Invariant: ``_pending[s]`` is set exactly for the slots of the cut without a dump in
    ``_pieces``, and their state is still that of the cut.
    """

    def __init__(
        self,
        slots: Ints,
        dump: Callable[[Ints], dict[str, pa.Array]],
        marks: Mapping[str, pa.Array],
        columns: Sequence[str],
        freed: pa.Table | None,
    ) -> None:
        """Start saving ``slots``, rising.

        dump: returns the present state of slots. marks: more columns, of all slots, already
        copied. columns: the names of all, in order. freed: the keys that are no more, with
        STATE_OP, if the table is one of changes.
        """
        self._slots = slots
        self._marks = marks
        self._columns = columns
        self._freed = freed
        self._dump = dump
        self._pending = np.zeros(int(slots.max(initial=-1)) + 1, np.bool_)
        self._pending[slots] = True
        self._next = 0
        self._left = len(slots)
        self._saved: list[Ints] = []
        self._pieces: list[pa.Table] = []

    def keep(self, slots: Ints) -> None:
        """Dump those of ``slots`` that are pending: they are about to change."""
        old = slots[slots < len(self._pending)]
        old = old[self._pending[old]]
        if len(old):
            self._save(np.unique(old))

    def step(self, slots_max: int) -> bool:
        """Dump up to ``slots_max`` pending slots; return whether none is left."""
        part = self._slots[self._next : self._next + slots_max]
        self._next += len(part)
        part = part[self._pending[part]]
        if len(part):
            self._save(part)
        return self.is_complete

    @property
    def is_complete(self) -> bool:
        """Whether no slot is pending."""
        return self._left == 0

    def _save(self, slots: Ints) -> None:
        self._pieces.append(pa.table(self._dump(slots)))
        self._saved.append(slots)
        self._pending[slots] = False
        self._left -= len(slots)

    def table(self) -> pa.Table:
        """Return all rows, in the order of their slots; to be called once nothing is pending.

        Slow: it puts the pieces in order. The fold's work does not disturb it.
        """
        assert self.is_complete
        rows = self._rows()
        for name, array in self._marks.items():
            rows = rows.append_column(name, array)
        rows = rows.select(self._columns)
        if self._freed is None:
            return rows
        keys = self._freed.num_columns - 1
        op = pa.array(np.zeros(len(self._slots), np.int8))
        changed = rows.add_column(keys, STATE_OP, op)
        return pa.concat_tables([changed, self._freed], promote_options="default").combine_chunks()

    def _rows(self) -> pa.Table:
        if not self._pieces:
            return pa.table(self._dump(self._slots))
        if len(self._pieces) == 1:
            return self._pieces[0]
        place = np.empty(len(self._pending), np.int64)
        place[np.concatenate(self._saved)] = np.arange(len(self._slots))
        return pa.concat_tables(self._pieces).take(pa.array(place[self._slots])).combine_chunks()


class SavedTable(Protocol):
    """A table of a snapshot, made in steps."""

    @property
    def is_complete(self) -> bool:
        """Whether all rows are copied."""

    def step(self, most: int, /) -> bool:
        """Copy up to so many rows; return whether none is left."""

    def table(self) -> pa.Table:
        """Return all rows, once they are copied; it may run in a thread."""


class PendingSnapshot:
    """A snapshot of the moment it was begun, made while the engine continues."""

    def __init__(self, rest: Snapshot, savings: Mapping[str, SavedTable]) -> None:
        self._rest = rest
        self._savings = savings
        self._tables: dict[str, pa.Table] = {}

    def step(self, slots_max: int) -> bool:
        """Copy up to ``slots_max`` rows; return whether that was all. Between two batches."""
        incomplete = [one for one in self._savings.values() if not one.is_complete]
        for saving in incomplete[:1]:
            saving.step(slots_max)
        return all(one.is_complete for one in incomplete)

    def finish(self) -> Snapshot:
        """Return the snapshot, after ``step`` returned True; slow, but it may run in a thread."""
        tables = ((node_key, saving.table()) for node_key, saving in self._savings.items())
        self._tables.update(tables)
        return replace(self._rest, tables=self._tables)

    def free(self) -> None:
        """Free the copied rows, with which the snapshot is at its end; it may run in a thread."""
        self._tables.clear()
        self._savings = {}
