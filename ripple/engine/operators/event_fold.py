"""Events to result rows: the keyed and windowed state of a pipeline's first fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.graph.column import InputColumn
from ripple.engine.kernels.keyed import Keyed
from ripple.engine.kernels.states import States
from ripple.engine.operators.result_rows import ResultRows
from ripple.engine.operators.uncomputable import UncomputableRows
from ripple.engine.snapshots.ledger import Ledger
from ripple.model.keys.slots import SlotSet
from ripple.model.keys.space import KeySpace, key_columns, key_space

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.result_rows import Bounds
    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.version_order import VersionOrder
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]


_NONE = np.empty(0, np.int64)


class EventFold:
    """A fold over events, without windows: one row per key, shown from its first event on.

    A row that cannot be computed is not there until it can be.

    Invariants between calls: every slot of ``space`` has state; a slot with a shown row that may be
    older than its state is in ``touched``.
    """

    stepwise = False
    frees = False
    versions: VersionOrder | None = None
    """Of a table with event times: its out-of-order records."""

    def __init__(self, graph: Graph, fold: Fold, keys: KeySpace | None = None) -> None:
        self.fold = fold
        self.interval_ns: int | None = None
        """The interval for the crossings of ``apply``, or None."""
        self.keys = key_space(fold.key)
        self._key_names = [field.name for field in fold.key]
        self._bounds: Bounds | None = None
        self._by_key = Keyed(self.keys, self._key_names)
        self.space: KeySpace = keys or self.keys
        self.result_rows = ResultRows(fold)
        self.states = States(fold.aggregates, retractable=False)
        self.result_rows.lay_out(self.states)
        shown = self._shown_keys()
        self.column = InputColumn(graph, (), shown, self.result_rows.column_fields, fold.name)
        self.touched = SlotSet()
        self.uncomputable = UncomputableRows(shown)
        self.ledger = Ledger(self.space, self)

    def _shown_keys(self) -> KeySpace:
        """Return the keys of its rows: those of its state."""
        return self.space

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of its rows without the key."""
        return self.result_rows.fields

    def apply(self, rows: Rows, crossing: int) -> None:
        """Add events; their key fields are not null.

        crossing: the position in the batch of the last event that made the watermark enter a new
        interval, -1 for none.
        """
        del crossing
        self._by_key.add(rows, self.states, self.touched, self.ledger)

    def settle(self, watermark_ns: int) -> None:
        """Update the shown rows by events and watermark."""
        del watermark_ns
        if self.ledger.marks:
            self.ledger.mark(self.touched.members())
        if self.uncomputable.failures or not self.result_rows.shows_touched(
            self.column, self.states, self.touched
        ):
            self.show(self.touched.take())

    def show(self, slots: Ints) -> None:
        """Let the rows of ``slots`` show their present results."""
        if len(slots):
            failed = self.result_rows.show(self.column, self.states, slots, self._bounds)
            self.uncomputable.note(slots, failed)

    def advance(self, before_ns: int, after_ns: int) -> None:
        """Take notice that the merged watermark moved without an event."""

    def show_waiting(self) -> None:
        """Show the rows that waited for a new interval of the watermark: it has begun."""

    def admits_all(self, required: Collection[str]) -> bool:
        """Return whether ``admit`` rejects nothing where these fields are not null."""
        return not self.states.may_fail and all(name in required for name in self._key_names)

    def admit(self, rows: Rows) -> None:
        """Reject the rows that cannot be folded, before any state changes."""
        rows.reject_nulls(self._key_names, self.fold.partition)
        if self.states.may_fail:
            rows.reject(self.states.failed(rows), self.fold.name)

    def expired(self) -> Ints:
        """Return the slots of final rows, once; their last change was reported."""
        return _NONE

    def free(self, expired: Ints) -> None:
        """Free these slots, and slots that others absorbed."""

    # --- snapshots ---

    def dump_rows(self, slots: Ints) -> dict[str, pa.Array]:
        """Return the state of slots as Arrow columns: key fields, then accumulators."""
        return {**key_columns(self.space, slots), **self.states.dump(slots)}

    def dump_marks(self, slots: Ints) -> dict[str, pa.Array]:
        """Return further columns of slots: none."""
        del slots
        return {}

    @property
    def columns(self) -> list[str]:
        """The names of both dumps' columns, in the order of a snapshot's table."""
        return list(self.dump_rows(_NONE))

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Load dumped state, and show the rows that were shown at that watermark."""
        slots = self._load_slots(table)
        self.states.reserve(self.space.capacity)
        self.states.load(slots, table)
        self.touched.add(slots, self.space.capacity)
        self.settle(watermark_ns)

    def _load_slots(self, table: pa.Table) -> Ints:
        columns = [table.column(field.name).combine_chunks() for field in self.space.fields]
        if not columns:
            columns = [np.empty(table.num_rows)]
        slots = self.space.slots(columns)
        self.space.adopt(slots)
        return slots

    @property
    def nbytes(self) -> int:
        """Bytes held by state, shown rows and keys."""
        keys = self.space.index.nbytes + (
            self.keys.index.nbytes if self.keys is not self.space else 0
        )
        return (
            self.states.nbytes
            + self.column.nbytes
            + keys
            + self.touched.nbytes
            + self.ledger.nbytes
        )
