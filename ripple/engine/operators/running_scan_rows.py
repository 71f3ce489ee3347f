"""The rows of a stream with running values, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.running import RowsBySlot
from ripple.engine.operators.rows import RejectedRow, Rows, renumbered
from ripple.engine.operators.running_column import SplitBar, running_column
from ripple.engine.operators.scan_rows import ScanRows
from ripple.engine.snapshots.internal import internal
from ripple.model.expression.bound import Values, numbers
from ripple.model.expression.typed import kind_of
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX, type_of
from ripple.model.pipeline.waiting_nodes import RunningScan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ripple.engine.operators.feeds import Feeds
    from ripple.engine.operators.waiting import ByInput
    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]


class _Split(NamedTuple):
    """Rows in parts: the fields of bar and share, and per part its row, bar and share."""

    name: str
    field: str
    rows: Ints
    bars: Ints
    shares: Ints


class RunningScanRows(ScanRows[RunningScan]):
    """Adds fields to each final row, from it and the rows of its key before it."""

    def __init__(self, node: RunningScan, feeds: Feeds, by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, feeds, by_input)
        self._columns = [(name, running_column(of, read), read) for name, of, read in node.columns]

    def _made(self, rows: Rows, slots: Ints) -> Rows | None:
        by_slot = self._by_slot(slots, np.asarray(rows.times_ns))
        of = RowsBySlot(by_slot.slots, self._begins(by_slot).view(np.uint8), by_slot.times)
        back = np.empty(rows.count, np.int64)
        back[by_slot.order] = np.arange(rows.count)
        added: dict[str, Values] = {}
        failed: dict[int, str] = {}
        split: _Split | None = None
        for name, column, read in self._columns:
            values, valid = values_of(rows, read)
            values, valid = values[by_slot.order], valid[by_slot.order]
            if isinstance(column, SplitBar):
                assert read is not None, "a field is divided"
                counts = column.counts(of, values, valid, FLAT_ROWS_MAX)
                why = f"{name}: it makes {FLAT_ROWS_MAX} rows or more"
                failed |= dict.fromkeys(by_slot.order[counts == 0].tolist(), why)
                parts = column.divided(of, values, counts)
                split = _Split(name, read.name, np.repeat(by_slot.order, counts), *parts)
                continue
            found = column.apply(of, values, valid)
            is_valid = None if found.valid is None else found.valid[back]
            added[name] = Values(found.values[back], is_valid)
            failed |= dict.fromkeys(by_slot.order[found.failed].tolist(), f"{name}: {found.reason}")
        kept = np.ones(rows.count, np.bool_)
        if failed:
            self._lose(rows, [RejectedRow(at, self.node.name, failed[at]) for at in sorted(failed)])
            kept[list(failed)] = False
        if split is not None:
            rows = self._divided(rows, added, split, kept)
        else:
            rows.columns.add(added)
            rows.seen = {}
            rows.keep(kept)
        return self._as_taken(rows)

    def _divided(
        self, rows: Rows, added: Mapping[str, Values], split: _Split, kept: npt.NDArray[np.bool_]
    ) -> Rows:
        """Return the parts of rows, in the order of these, each with an index in its record."""
        parts = np.argsort(split.rows, kind="stable")
        parts = parts[kept[split.rows[parts]]]
        at, shares = split.rows[parts], split.shares[parts]
        taken = {one.name: rows.columns.arrow(one.name).take(pa.array(at)) for one in self._fields}
        null = np.asarray(taken[split.field].is_null())
        columns: dict[str, Any] = {**taken, split.field: pa.array(shares, mask=null)}
        for name, values in added.items():
            valid = None if values.valid is None else values.valid[at]
            columns[name] = Values(values.values[at], valid)
        columns[split.name] = Values(split.bars[parts])
        assert rows.offsets is not None, "rows of records have places"
        records = rows.offsets[at] // FLAT_ROWS_MAX
        is_other = records[1:] != records[:-1]
        if self.identities_taken is not None:
            self.identities_taken = self.identities_taken[at]
            # The first final row of each window end has one place.
            is_other |= self.identities_taken[1:] != self.identities_taken[:-1]
        origins = np.cumsum(np.append(0, is_other)[: len(records)])
        places, over = renumbered(rows.offsets[at], origins)
        made = Rows(
            Columns({one.name: columns[one.name] for one in self.node.fields_out}), len(at), places
        )
        made.times_ns = np.asarray(rows.times_ns)[at]
        if over:
            why = f"more than {FLAT_ROWS_MAX} rows were made of the record"
            self._lose(made, [RejectedRow(row, self.node.name, why) for row in over])
            mask = np.ones(len(at), np.bool_)
            mask[over] = False
            made.keep(mask)
        return made

    def _grow(self, capacity: int) -> None:
        super()._grow(capacity)
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


def values_of(rows: Rows, read: Field | None) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Return the values of a field, and which are there; ones, where rows are counted."""
    if read is None:
        return np.ones(rows.count, np.int64), np.ones(rows.count, np.uint8)
    found = numbers(rows.columns[read.name], kind_of(type_of(read))[0])
    if found.valid is None:
        return found.values, np.ones(rows.count, np.uint8)
    return found.values, found.valid.view(np.uint8)
