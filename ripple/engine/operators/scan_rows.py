"""The rows that a user's function makes of a state by key and the rows of a stream, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.held_by_key import HeldByKey
from ripple.engine.operators.held_rows import TIME
from ripple.engine.operators.rows import RejectedRow, as_list, reason_of
from ripple.engine.operators.state_step import StateStep
from ripple.engine.snapshots.internal import internal
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.pipeline.nodes import Scan
from ripple.model.schema.held import values_of
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.state_step import Stored
    from ripple.engine.operators.waiting import ByInput, Mark

    Ints = npt.NDArray[np.int64]


class ScanRows(HeldByKey[Scan]):
    """Holds rows until they are final; then applies each to the state of its key, in their order.

    Invariants: ``_states`` has per live slot the state after all rows of its key below the last
    mark; ``_last`` has the time of the last one, after which ``ttl_ns`` counts.
    """

    def __init__(self, node: Scan, feeds: Sequence[Mark], by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, node.fields_in, feeds, by_input)
        self._step = StateStep(node)
        self._states: list[Stored] = []
        self._swept_ns = watermark.NONE

    def take(self) -> Rows | None:
        """Return the rows that those that became final make, in their order; None for none."""
        mark_ns = self.watermark_ns
        if mark_ns == watermark.NONE:
            return None
        final = self._final(mark_ns)
        made = None if final is None else self._made(*final)
        ttl_ns = self.node.ttl_ns
        if ttl_ns is not None and (
            self._swept_ns == watermark.NONE or mark_ns - self._swept_ns > ttl_ns
        ):
            self._sweep(mark_ns)
        return self._given(made)

    def _made(self, rows: Rows, slots: Ints) -> Rows | None:
        """Apply final rows, and return what is made of them."""
        node, states, step = self.node, self._states, self._step
        states += [node.initial] * (self._keys.capacity - len(states))
        begins = self._beginnings(slots, np.asarray(rows.times_ns))
        columns = (values_of(as_list(rows.columns[one.name]), one.type) for one in node.fields_in)
        values = zip(*columns, strict=True)
        made: list[Stored] = []
        kept = np.zeros(rows.count, np.bool_)
        failed: list[RejectedRow] = []
        for at, (slot, row) in enumerate(zip(slots.tolist(), values, strict=True)):
            before = node.initial if at in begins else states[slot]
            try:
                states[slot], result = step(before, row)
            except Exception as error:  # any error of a user's function
                states[slot] = before
                failed.append(RejectedRow(at, node.name, reason_of(error)))
                continue
            if result is not None:
                made.append(result)
                kept[at] = True
        if failed:
            self._lose(rows, failed)
        rows.keep(kept)
        rows.origin = None
        if not rows.count:
            return None
        rows.take_made(node, made)
        return rows

    def _beginnings(self, slots: Ints, times: Ints) -> frozenset[int]:
        """Return which rows find no state, since the last one of their key is ``ttl_ns`` before.

        Notes the time of the last row of each key.
        """
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
        if self.node.ttl_ns is None:
            return frozenset()
        is_over = (before != watermark.NONE) & (before <= at - self.node.ttl_ns)
        return frozenset(order[is_over].tolist())

    def _sweep(self, mark_ns: int) -> None:
        """Free the keys whose state is over: now and then, for it looks at all of them."""
        self._swept_ns = mark_ns
        slots = self._keys.index.live_slots()
        over = slots[self._is_over(slots, mark_ns)]
        for slot in over.tolist():
            self._states[slot] = self.node.initial
        self._free(over)
        del self._states[self._keys.capacity :]

    def _is_over(self, slots: Ints, mark_ns: int) -> npt.NDArray[np.bool_]:
        """Return which keys have no state for any row from a mark on."""
        if self.node.ttl_ns is None or mark_ns in (watermark.NONE, watermark.END):
            return np.zeros(len(slots), np.bool_)
        to_ns = max(mark_ns - self.node.ttl_ns, watermark.NONE)
        is_over: npt.NDArray[np.bool_] = self._last[slots] <= to_ns
        return is_over

    @property
    def nbytes(self) -> int:
        """Bytes held, about 100 of them by state."""
        return super().nbytes + len(self._states) * (48 + 16 * len(self.node.state_fields))

    # --- snapshots ---

    @property
    def _schema(self) -> pa.Schema:
        of_state = arrow_fields(self.node.state_fields)
        named = [one.with_name(internal(f"state.{one.name}")) for one in of_state]
        return pa.schema([*arrow_fields(self.node.key), pa.field(TIME, pa.int64()), *named])

    def dump(self) -> tuple[pa.Table, pa.Table]:
        """Return the rows held, and the states of keys, each with the time of its last row."""
        mark_ns = self.watermark_ns
        slots = self._keys.index.live_slots()
        slots = slots[~self._is_over(slots, mark_ns)]
        schema = self._schema
        states = [self._states[slot] for slot in slots.tolist()]
        own = [schema.field(at).type for at in range(len(self._names) + 1, len(schema))]
        of_state = [pa.array([one[at] for one in states], kind) for at, kind in enumerate(own)]
        arrays = [*self._keys.arrays(slots), pa.array(self._last[slots]), *of_state]
        held = pa.Table.from_batches(self._held.parts(), self._held.schema)
        return held, pa.Table.from_arrays(arrays, schema=schema)

    def load(self, tables: Sequence[pa.Table]) -> None:
        """Load dumped state."""
        held, states = tables
        slots = self._keys.slots([states.column(name).combine_chunks() for name in self._names])
        self._keys.adopt(slots)
        self._last = grown(self._last, self._keys.capacity, watermark.NONE)
        self._last[slots] = states.column(TIME).to_numpy()
        self._states = [self.node.initial] * self._keys.capacity
        columns = (one.to_pylist() for one in states.columns[len(self._names) + 1 :])
        for slot, state in zip(slots.tolist(), zip(*columns, strict=True), strict=True):
            self._states[slot] = state
        for batch in held.combine_chunks().to_batches():
            self._held.add(batch)
