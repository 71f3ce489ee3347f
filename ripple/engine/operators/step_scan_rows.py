"""The rows that a user's function makes of a state by key and the rows of a stream, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.state_call import called
from ripple.engine.kernels.step_entry import failures, take_after
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.engine.operators.rows import RejectedRow, Rows, as_list, made_by, refusal_of
from ripple.engine.operators.scan_rows import ScanRows
from ripple.engine.operators.state_step import step_of
from ripple.engine.operators.step_logs import versions
from ripple.engine.snapshots.internal import internal
from ripple.model.pipeline.waiting_nodes import StepScan
from ripple.model.schema.logical.values import numbers_of, values_of
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from ripple.engine.kernels.step_entry import Entry
    from ripple.engine.operators.feeds import Feeds
    from ripple.engine.operators.state_step import Applied, Stored
    from ripple.engine.operators.waiting import ByInput
    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

HAS_LAST = internal("last")


class StepScanRows(ScanRows[StepScan]):
    """Calls a function with the state of a key and each of its final rows.

    Invariants: ``_states`` has a state's values per slot, and ``initial`` a new state's values;
    ``_lasts`` has per slot the newest final result where a table has the last row of each key,
    else None. Where a table shows the rows from their reading on, it has called the function: its
    states are taken, see ``reach``.
    """

    def __init__(self, node: StepScan, feeds: Feeds, by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, feeds, by_input)
        self.step = step_of(node)
        fields = zip(node.initial, node.state_fields, strict=True)
        self.initial = self.step.state_of(
            tuple(values_of([value], of.type)[0] for value, of in fields)
        )
        self._states: list[Stored] = []
        self._lasts: list[Stored | None] = []
        self._reached: list[Entry] = []

    def reach(self, entries: list[Entry]) -> None:
        """Note the next final rows with the states after them, in their order."""
        self._reached = entries

    def _made(self, rows: Rows, slots: Ints) -> Rows | None:
        by_slot = self._by_slot(slots, np.asarray(rows.times_ns))
        if self.node.is_eager:
            self._take_reached(rows, slots)
            return None
        begins = np.zeros(rows.count, np.bool_)
        begins[by_slot.order] = self._begins(by_slot)
        if self.node.version_of is None:
            applied = self.step.apply(self._states, slots, begins, rows)
            if applied is not None:
                return self._applied(rows, applied)
        return self._called(rows, slots, begins)

    def _called(self, rows: Rows, slots: Ints, begins: Mask) -> Rows | None:
        """Call the function with each row, where it begins with a new state or its key's."""
        kept = np.zeros(rows.count, np.bool_)
        made, failed = called(
            self.step.call,
            self._states,
            slots,
            begins.view(np.uint8),
            self.initial,
            self._given(rows, slots),
            kept.view(np.uint8),
        )
        if failed:
            self._lose_failed(rows, failed)
        rows.keep(kept)
        taken = self._as_taken(rows)
        if taken is not None:
            self.step.make(taken, made)
        return taken

    def _given(self, rows: Rows, slots: Ints) -> Iterable[Stored | None]:
        """Return the values of rows; None where another version counts."""
        given = self.step.given(rows.columns)
        if self.node.version_of is None:
            return given
        # Rows of one time are final at once.
        of = as_list(rows.columns[self.node.version_of.name])
        each = zip(slots.tolist(), of, strict=True)
        named = [None if one is None else (slot, one) for slot, one in each]
        return versions(given, np.asarray(rows.times_ns).tolist(), named)

    def _applied(self, rows: Rows, applied: Applied) -> Rows | None:
        """Return the rows that were applied at once; count the failed ones."""
        if applied.failed:
            self._lose_failed(rows, applied.failed)
        rows.keep(applied.kept)
        taken = self._as_taken(rows)
        if taken is not None:
            taken.take_columns(self.node, applied.columns)
        return taken

    def _lose_failed(self, rows: Rows, failed: Mapping[int, BaseException]) -> None:
        """Count the rows with an error of the function."""
        name = self.node.name
        self._lose(
            rows, [RejectedRow(at, name, refusal_of(name, why)) for at, why in failed.items()]
        )

    def _take_reached(self, rows: Rows, slots: Ints) -> None:
        """Take the states after final rows; count the failed ones, where no table does."""
        entries, self._reached = self._reached[: rows.count], self._reached[rows.count :]
        take_after(self._states, self._lasts if self.node.is_last else None, slots, entries)
        failed = failures(entries) if self.node.is_last else {}
        if failed:
            name = self.node.name
            self._lose(rows, [RejectedRow(at, name, why) for at, why in failed.items()])

    def states_of(self, keys: Sequence[pa.Array]) -> tuple[list[Stored], list[Stored | None], Ints]:
        """Return of keys below the last mark the states, newest results, and last rows' times.

        The time is ``watermark.NONE`` of a key without a row below it.
        """
        slots = self._keys.known(keys)
        slots = np.where(slots < len(self._states), slots, -1)
        is_known, each = slots >= 0, slots.tolist()
        states = [self._states[slot] if slot >= 0 else self.initial for slot in each]
        lasts = [self._lasts[slot] if slot >= 0 else None for slot in each]
        last_ns = np.full(len(slots), watermark.NONE)
        last_ns[is_known] = self._last[slots[is_known]]
        return states, lasts, last_ns

    def end_last(self, keys: Sequence[pa.Array]) -> None:
        """Forget the newest results of keys with ended states."""
        for slot in self._keys.known(keys).tolist():
            if slot >= 0:
                self._lasts[slot] = None

    def last_rows(self) -> tuple[list[pa.Array], list[Stored | None], Ints]:
        """Return the keys with a state, their newest results and the times of their last rows."""
        slots = self._deciding()
        lasts = [self._lasts[slot] for slot in slots.tolist()]
        return self._keys.arrays(slots), lasts, self._last[slots]

    def _grow(self, capacity: int) -> None:
        super()._grow(capacity)
        self._states += [self.initial] * (capacity - len(self._states))
        self._lasts += [None] * (capacity - len(self._lasts))

    def _end(self, slots: Ints) -> None:
        for slot in slots.tolist():
            self._states[slot], self._lasts[slot] = self.initial, None

    @property
    def nbytes(self) -> int:
        """Bytes held, about 100 of them by state."""
        return super().nbytes + len(self._states) * (56 + 16 * len(self.node.state_fields))

    def _state_columns(self, slots: Ints) -> tuple[list[pa.Field], list[pa.Array]]:
        states = [self._states[slot] for slot in slots.tolist()]
        of_state = arrow_fields(self.node.state_fields)
        fields = [one.with_name(internal(f"state.{one.name}")) for one in of_state]
        arrays = [
            pa.array(numbers_of([one[at] for one in states], of.type), field.type)
            for at, (of, field) in enumerate(zip(self.node.state_fields, fields, strict=True))
        ]
        if not self.node.is_last:
            return fields, arrays
        found = [self._lasts[slot] for slot in slots.tolist()]
        lasts = [last for last in found if last is not None]
        numbers = iter(range(len(lasts)))
        at = pa.array([None if last is None else next(numbers) for last in found], pa.int64())
        made = made_by(self.node)
        rows = Rows(dict.fromkeys(self.node.kept, pa.nulls(len(lasts))), len(lasts))
        self.step.make(rows, lasts)
        of_last = [one.with_name(f"{HAS_LAST}.{one.name}") for one in arrow_fields(made)]
        kinds = zip(made, arrow_fields(made), strict=True)
        shown = [arrow_column(rows.columns[of.name], one.type).take(at) for of, one in kinds]
        return [*fields, pa.field(HAS_LAST, pa.bool_()), *of_last], [*arrays, at.is_valid(), *shown]

    def _load_states(self, slots: Ints, columns: Sequence[pa.ChunkedArray]) -> None:
        count = len(self.node.state_fields)
        values = _values_of(columns[:count], self.node.state_fields, len(slots))
        for slot, state in zip(slots.tolist(), values, strict=True):
            self._states[slot] = self.step.state_of(state)
        if self.node.is_last:
            lasts = _values_of(columns[count + 1 :], made_by(self.node), len(slots))
            each = zip(slots.tolist(), columns[count].to_pylist(), lasts, strict=True)
            for slot, has_last, last in each:
                self._lasts[slot] = self.step.result_of(last) if has_last else None


def _values_of(
    columns: Sequence[pa.ChunkedArray], of: Sequence[Field], count: int
) -> Iterable[Stored]:
    """Return the values of columns, by row."""
    each = zip(columns, of, strict=True)
    read = [values_of(one.to_pylist(), field.type) for one, field in each]
    return zip(*read, strict=True) if read else [()] * count
