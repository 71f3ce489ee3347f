"""The rows of a stream with aggregates over the last rows of their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns, Layout
from ripple.engine.kernels.running import RowsBySlot
from ripple.engine.kernels.states import States
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.last_rows import LastRows
from ripple.engine.operators.rolling_aggregates import running_of
from ripple.engine.operators.rows import RejectedRow, Rows
from ripple.engine.operators.running_column import running_column
from ripple.engine.operators.running_scan_rows import values_of
from ripple.engine.operators.scan_rows import ScanRows
from ripple.engine.snapshots.internal import internal
from ripple.model.expression.bound import Values
from ripple.model.pipeline.folding import results_of
from ripple.model.pipeline.waiting_nodes import LastScan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ripple.engine.operators.feeds import Feeds
    from ripple.engine.operators.held_by_key import BySlot
    from ripple.engine.operators.last_rows import Spans
    from ripple.engine.operators.running_column import RunningColumn
    from ripple.engine.operators.waiting import ByInput
    from ripple.model.pipeline.nodes import FoldAggregate
    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

TIME_OF_LAST, PLACE_OF_LAST = internal("last-time"), internal("last-place")
_FOLDED_MAX = 1 << 16  # rows of windows at a time


class LastScanRows(ScanRows[LastScan]):
    """Adds to each final row the aggregates over the last rows of its key, up to itself.

    Where a running value is the same, that is it. For the others each window is folded from its
    rows, by itself in a slot of ``_states``, which are empty between calls. So a result depends on
    these rows alone.
    """

    def __init__(self, node: LastScan, feeds: Feeds, by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, feeds, by_input)
        fields = {field.name: field for field in node.read}
        self._rolling: list[tuple[str, RunningColumn, Field]] = []
        folded: list[FoldAggregate] = []
        for member in node.aggregates:
            of = running_of(member, node.rows)
            if of is None:
                folded.append(member)
                continue
            read = fields[member.inputs[0].tree.value]
            self._rolling.append((member.name, running_column(of, read), read))
        names = {bound.tree.value for member in folded for bound in member.inputs}
        self._read = [field for field in node.read if field.name in names]
        self._folds = bool(folded)
        self._recent = LastRows(self._read, node.rows - 1)
        self._layout = Layout(self._recent.schema)
        self._states = States(folded, retractable=False)
        made = {field.name for field in results_of(folded)}
        self._shown = [(one.name, one.type) for one in arrow_fields(node.added) if one.name in made]

    def _made(self, rows: Rows, slots: Ints) -> Rows | None:
        by_slot = self._by_slot(slots, np.asarray(rows.times_ns))
        begins = self._begins(by_slot)
        added, failed = self._rolled(rows, by_slot, begins)
        if self._folds:
            columns, lost = self._windowed(rows, by_slot, begins)
            added |= columns
            failed |= lost
        rows.columns.add(added)
        rows.seen = {}
        if failed:
            self._lose(rows, [RejectedRow(at, self.node.name, failed[at]) for at in sorted(failed)])
            kept = np.ones(rows.count, np.bool_)
            kept[list(failed)] = False
            rows.keep(kept)
        return self._as_taken(rows)

    def _rolled(
        self, rows: Rows, by_slot: BySlot, begins: Mask
    ) -> tuple[dict[str, Any], dict[int, str]]:
        """Return the running values by name, and why rows failed."""
        of = RowsBySlot(by_slot.slots, begins.view(np.uint8), by_slot.times)
        back = np.empty(rows.count, np.int64)
        back[by_slot.order] = np.arange(rows.count)
        added: dict[str, Any] = {}
        failed: dict[int, str] = {}
        for name, column, read in self._rolling:
            values, valid = values_of(rows, read)
            found = column.apply(of, values[by_slot.order], valid[by_slot.order])
            is_valid = None if found.valid is None else found.valid[back]
            added[name] = Values(found.values[back], is_valid)
            why = f"{name!r}: {found.reason}"
            failed |= dict.fromkeys(by_slot.order[found.failed].tolist(), why)
        return added, failed

    def _windowed(
        self, rows: Rows, by_slot: BySlot, begins: Mask
    ) -> tuple[dict[str, Any], dict[int, str]]:
        """Return the other aggregates by name, and why rows failed."""
        at = pa.array(by_slot.order)
        given = [rows.columns.arrow(field.name) for field in self._read]
        own = [pa.array(np.asarray(rows.times_ns)), pa.array(rows.offsets)]
        taken = [column.take(at) for column in (*given, *own)]
        batch = pa.RecordBatch.from_arrays(taken, schema=self._recent.schema)
        spans = self._recent.add(batch, by_slot.slots, begins)
        kept, added, failed = self._folded(spans)
        self._recent.forget()
        found = np.full(rows.count, -1, np.int64)
        found[by_slot.order[kept]] = np.arange(len(kept))
        chosen = pa.array(found, mask=found < 0)
        lost = {int(by_slot.order[row]): why for row, why in failed.items()}
        return {name: column.take(chosen) for name, column in added.items()}, lost

    def _folded(self, spans: Spans) -> tuple[Ints, Mapping[str, pa.Array], dict[int, str]]:
        """Return (rows with results, these by name, why others have none)."""
        kept: list[Ints] = []
        parts: dict[str, list[pa.Array]] = {name: [] for name, _ in self._shown}
        failed: dict[int, str] = {}
        for begin, end, of, at in spans.cut(_FOLDED_MAX):
            slots = np.arange(end - begin)
            self._states.reserve(len(slots))
            first = int(spans.first[begin])
            given = self._rows(spans.numbers[first : int(spans.last[end - 1]) + 1])
            self._states.add(of, given, at - first)
            found, results, why = self._states.results(slots)
            kept.append(begin + found)
            failed |= {begin + row: reason for row, reason in why.items()}
            for name, kind in self._shown:
                parts[name].append(arrow_column(results[name], kind))
            self._states.clear(slots)
        added = {name: pa.chunked_array(parts[name], kind) for name, kind in self._shown}
        joined = {name: column.combine_chunks() for name, column in added.items()}
        return np.concatenate(kept), joined, failed

    def _rows(self, numbers: Ints) -> Rows:
        made = self._recent.made(numbers)
        columns = Columns(made, self._layout)
        rows = Rows(columns, len(numbers), np.asarray(columns.arrow(PLACE)))
        rows.times_ns = np.asarray(columns.arrow(TIME))
        return rows

    def _grow(self, capacity: int) -> None:
        super()._grow(capacity)
        for _, column, _ in self._rolling:
            column.grow(capacity)

    def _end(self, slots: Ints) -> None:
        self._recent.end(slots.tolist())
        for _, column, _ in self._rolling:
            column.end(slots)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        rolling = sum(column.nbytes for _, column, _ in self._rolling)
        return super().nbytes + rolling + self._recent.nbytes + self._states.nbytes

    def _state_columns(self, slots: Ints) -> tuple[list[pa.Field], list[pa.Array]]:
        columns: dict[str, pa.Array] = {}
        for name, column, _ in self._rolling:
            dumped = column.dump(slots).items()
            columns |= {internal(f"state.{name}.{part}"): array for part, array in dumped}
        if self._folds:
            titles = [internal(f"last.{field.name}") for field in self._read]
            lists = self._recent.dump(slots.tolist())
            columns |= dict(zip([*titles, TIME_OF_LAST, PLACE_OF_LAST], lists, strict=True))
        return [pa.field(name, one.type) for name, one in columns.items()], [*columns.values()]

    def _load_states(self, slots: Ints, columns: Sequence[pa.ChunkedArray]) -> None:
        left = [one.combine_chunks() for one in columns]
        for _, column, _ in self._rolling:
            column.load(slots, left[: column.part_count])
            left = left[column.part_count :]
        if self._folds:
            self._recent.load(slots.tolist(), left)
