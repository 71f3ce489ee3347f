"""Rows beside a state by key, in their order: common to users' functions and running values."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.held_by_key import HeldByKey
from ripple.engine.operators.held_rows import TIME
from ripple.engine.snapshots.held_saving import Dumped
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.pipeline.nodes import Scan
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.engine.snapshots.held_saving import HeldSaving

    Ints = npt.NDArray[np.int64]

S = TypeVar("S", bound=Scan)


class BySlot(NamedTuple):
    """The order of rows by slot, those of one slot as they stood.

    order: the rows, of which ``slots`` are the slots. begins: which of these find no state, since
    the last row of their key is ``ttl_ns`` or more before them.
    """

    order: Ints
    slots: Ints
    begins: npt.NDArray[np.bool_]


class ScanRows(HeldByKey[S]):
    """Holds rows until they are final; then applies each to the state of its key, in their order.

    Invariant: there is a state per live slot, after all rows of its key below the last mark.
    """

    def __init__(self, node: S, feeds: Sequence[Mark], by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, node.fields_in, feeds, by_input)
        self._swept_ns = watermark.NONE

    def take(self) -> Rows | None:
        """Apply the rows that became final, and return the rows made, in order; None for none."""
        mark_ns = self.watermark_ns
        if mark_ns == watermark.NONE:
            return None
        final = self._final(mark_ns)
        made = None
        if final is not None:
            self._grow(self._keys.capacity)
            made = self._made(*final)
        ttl_ns = self.node.ttl_ns
        if ttl_ns is not None and (
            self._swept_ns == watermark.NONE or mark_ns - self._swept_ns > ttl_ns
        ):
            self._sweep(mark_ns)
        return self._given(made)

    @abstractmethod
    def _made(self, rows: Rows, slots: Ints) -> Rows | None:
        """Apply final rows, and return the rows made of them; None for none."""

    @abstractmethod
    def _grow(self, capacity: int) -> None:
        """Have a state for each slot below ``capacity``; a new one is the initial state."""

    @abstractmethod
    def _end(self, slots: Ints) -> None:
        """Set the states of keys to the initial one."""

    @abstractmethod
    def _state_columns(self, slots: Ints) -> tuple[list[pa.Field], list[pa.Array]]:
        """Return the states of keys, with the fields of their table."""

    @abstractmethod
    def _load_states(self, slots: Ints, columns: Sequence[pa.ChunkedArray]) -> None:
        """Load the states of keys."""

    def _by_slot(self, slots: Ints, times: Ints) -> BySlot:
        """Return rows by slot, and note the time of the last row of each key."""
        count = len(slots)
        order = np.argsort(slots, kind="stable")
        by_slot, at = slots[order], times[order]
        is_first = np.ones(count, np.bool_)
        is_first[1:] = by_slot[1:] != by_slot[:-1]
        is_last = np.ones(count, np.bool_)
        is_last[:-1] = is_first[1:]
        before = np.empty(count, np.int64)
        before[1:] = at[:-1]
        before[is_first] = self._last[by_slot[is_first]]
        self._last[by_slot[is_last]] = at[is_last]
        begins = np.zeros(count, np.bool_)
        if self.node.ttl_ns is not None:
            begins = (before != watermark.NONE) & (before <= at - self.node.ttl_ns)
        return BySlot(order, by_slot, begins)

    def _sweep(self, mark_ns: int) -> None:
        """Free the keys whose state is over: now and then, for it looks at all of them."""
        self._swept_ns = mark_ns
        slots = self._keys.index.live_slots()
        over = slots[self._is_over(slots, mark_ns)]
        self._end(over)
        self._free(over)

    def _is_over(self, slots: Ints, mark_ns: int) -> npt.NDArray[np.bool_]:
        """Return which keys have no state for any row from a mark on."""
        if self.node.ttl_ns is None or mark_ns in (watermark.NONE, watermark.END):
            return np.zeros(len(slots), np.bool_)
        to_ns = max(mark_ns - self.node.ttl_ns, watermark.NONE)
        is_over: npt.NDArray[np.bool_] = self._last[slots] <= to_ns
        return is_over

    # --- snapshots ---

    def savings(self) -> tuple[HeldSaving, Dumped]:
        """Begin to dump the rows held; dump states of keys, each with the time of its last row."""
        slots = self._keys.index.live_slots()
        slots = slots[~self._is_over(slots, self.watermark_ns)]
        fields, states = self._state_columns(slots)
        schema = pa.schema([*arrow_fields(self.node.key), pa.field(TIME, pa.int64()), *fields])
        arrays = [*self._keys.arrays(slots), pa.array(self._last[slots]), *states]
        return self._held.saving(), Dumped(pa.Table.from_arrays(arrays, schema=schema))

    def load(self, tables: Sequence[pa.Table]) -> None:
        """Load dumped state."""
        held, states = tables
        slots = self._keys.slots([states.column(name).combine_chunks() for name in self._names])
        self._keys.adopt(slots)
        self._last = grown(self._last, self._keys.capacity, watermark.NONE)
        self._last[slots] = states.column(TIME).to_numpy()
        self._grow(self._keys.capacity)
        self._load_states(slots, states.columns[len(self._names) + 1 :])
        for batch in held.combine_chunks().to_batches():
            self._held.add(batch)
