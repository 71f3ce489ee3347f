"""The rows that a user's function makes of a state by key and the rows of a stream, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.rows import RejectedRow, as_list, reason_of
from ripple.engine.operators.scan_rows import ScanRows
from ripple.engine.operators.state_step import StateStep
from ripple.engine.snapshots.internal import internal
from ripple.model.pipeline.nodes import StepScan
from ripple.model.schema.logical.values import numbers_of, values_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.state_step import Stored
    from ripple.engine.operators.waiting import ByInput, Mark

    Ints = npt.NDArray[np.int64]


class StepScanRows(ScanRows[StepScan]):
    """Calls a function with the state of a key and each of its final rows.

    Invariant: ``_states`` has a state's values per slot, and ``initial`` a new state's values.
    Where a table shows the rows from their reading on, it has called the function: its states are
    taken, see ``reach``.
    """

    def __init__(self, node: StepScan, feeds: Sequence[Mark], by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, feeds, by_input)
        self._step = StateStep(node).call
        fields = zip(node.initial, node.state_fields, strict=True)
        self.initial = tuple(values_of([value], of.type)[0] for value, of in fields)
        self._states: list[Stored] = []
        self._reached: list[Stored] = []

    def reach(self, states: list[Stored]) -> None:
        """Note the states after the next final rows, in their order."""
        self._reached = states

    def _made(self, rows: Rows, slots: Ints) -> Rows | None:
        node, states, step = self.node, self._states, self._step
        by_slot = self._by_slot(slots, np.asarray(rows.times_ns))
        if node.is_eager:
            for slot, state in zip(slots.tolist(), self._reached, strict=True):
                states[slot] = state
            self._reached = []
            return None
        begins = frozenset(by_slot.order[self._begins(by_slot)].tolist())
        columns = (values_of(as_list(rows.columns[one.name]), one.type) for one in node.fields_in)
        values = zip(*columns, strict=True)
        made: list[Stored] = []
        kept = np.zeros(rows.count, np.bool_)
        failed: list[RejectedRow] = []
        for at, (slot, row) in enumerate(zip(slots.tolist(), values, strict=True)):
            before = self.initial if at in begins else states[slot]
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

    def states_of(self, keys: Sequence[pa.Array]) -> list[tuple[Stored, int | None]]:
        """Return the state of each key below the last mark, and the time of its last row."""
        found: list[tuple[Stored, int | None]] = []
        for slot in self._keys.known(keys).tolist():
            if slot < 0 or slot >= len(self._states):
                found.append((self.initial, None))
            else:
                found.append((self._states[slot], int(self._last[slot])))
        return found

    def _grow(self, capacity: int) -> None:
        super()._grow(capacity)
        self._states += [self.initial] * (capacity - len(self._states))

    def _end(self, slots: Ints) -> None:
        for slot in slots.tolist():
            self._states[slot] = self.initial

    @property
    def nbytes(self) -> int:
        """Bytes held, about 100 of them by state."""
        return super().nbytes + len(self._states) * (48 + 16 * len(self.node.state_fields))

    def _state_columns(self, slots: Ints) -> tuple[list[pa.Field], list[pa.Array]]:
        of_state = arrow_fields(self.node.state_fields)
        fields = [one.with_name(internal(f"state.{one.name}")) for one in of_state]
        states = [self._states[slot] for slot in slots.tolist()]
        arrays = [
            pa.array(numbers_of([one[at] for one in states], of.type), field.type)
            for at, (of, field) in enumerate(zip(self.node.state_fields, fields, strict=True))
        ]
        return fields, arrays

    def _load_states(self, slots: Ints, columns: Sequence[pa.ChunkedArray]) -> None:
        fields = zip(columns, self.node.state_fields, strict=True)
        values = zip(*(values_of(one.to_pylist(), of.type) for one, of in fields), strict=True)
        for slot, state in zip(slots.tolist(), values, strict=True):
            self._states[slot] = state
