"""The rows of a stream with running values, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.operators.rows import RejectedRow
from ripple.engine.operators.running_column import Sorted, running_column
from ripple.engine.operators.scan_rows import ScanRows
from ripple.engine.snapshots.internal import internal
from ripple.model.expression.bound import Values, numbers
from ripple.model.expression.typed import kind_of
from ripple.model.pipeline.nodes import RunningScan, type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]


class RunningScanRows(ScanRows[RunningScan]):
    """Adds fields to each final row, from it and those of its key before it."""

    def __init__(self, node: RunningScan, feeds: Sequence[Mark], by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, feeds, by_input)
        self._columns = [(name, running_column(of, read), read) for name, of, read in node.columns]

    def _made(self, rows: Rows, slots: Ints) -> Rows | None:
        times = np.asarray(rows.times_ns)
        by_slot = self._by_slot(slots, times)
        of = Sorted(by_slot.slots, by_slot.begins.view(np.uint8), times[by_slot.order])
        back = np.empty(rows.count, np.int64)
        back[by_slot.order] = np.arange(rows.count)
        added: dict[str, Values] = {}
        failed: dict[int, str] = {}
        for name, column, read in self._columns:
            values, valid = _values_of(rows, read)
            found = column.apply(of, values[by_slot.order], valid[by_slot.order])
            is_valid = None if found.valid is None else found.valid[back]
            added[name] = Values(found.values[back], is_valid)
            failed |= dict.fromkeys(by_slot.order[found.failed].tolist(), f"{name}: {found.reason}")
        rows.columns.add(added)
        rows.seen = {}
        if failed:
            self._lose(rows, [RejectedRow(at, self.node.name, failed[at]) for at in sorted(failed)])
            kept = np.ones(rows.count, np.bool_)
            kept[list(failed)] = False
            rows.keep(kept)
            rows.origin = None
        return rows if rows.count else None

    def _grow(self, capacity: int) -> None:
        for _, column, _ in self._columns:
            column.grow(capacity)

    def _end(self, slots: Ints) -> None:
        for _, column, _ in self._columns:
            column.end(slots)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return super().nbytes + sum(column.nbytes for _, column, _ in self._columns)

    def _state_columns(self, slots: Ints) -> tuple[list[pa.Field], list[pa.Array]]:
        fields, arrays = [], []
        for name, column, _ in self._columns:
            for part, array in column.dump(slots).items():
                title = internal(f"state.{name}.{part}")
                fields.append(pa.field(title, array.type, nullable=False))
                arrays.append(array)
        return fields, arrays

    def _load_states(self, slots: Ints, columns: Sequence[pa.ChunkedArray]) -> None:
        at = 0
        for _, column, _ in self._columns:
            parts = columns[at : at + column.part_count]
            column.load(slots, [one.combine_chunks() for one in parts])
            at += column.part_count


def _values_of(
    rows: Rows, read: Field | None
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.uint8]]:
    """Return the values of a field, and which are there; ones, where rows are counted."""
    if read is None:
        return np.ones(rows.count, np.int64), np.ones(rows.count, np.uint8)
    found = numbers(rows.columns[read.name], kind_of(type_of(read))[0])
    if found.valid is None:
        return found.values, np.ones(rows.count, np.uint8)
    return found.values, found.valid.view(np.uint8)
