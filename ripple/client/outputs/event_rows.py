"""The rows of an output of events that a subscriber has of one partition: the newest ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.core import cut as cuts
from ripple.core.row_ops import OP, OP_REMOVE
from ripple.engine.edges.newest_rows import NewestRows
from ripple.exchange.limits import ExchangeLimits

if TYPE_CHECKING:
    from ripple.core.cut import Cut
    from ripple.engine.changes.layout import Layout
    from ripple.engine.edges.edge_changes import EdgeChanges

_LIMITS = ExchangeLimits()
ROWS_MAX = _LIMITS.newest_rows
# The most that a publisher sends at once.
BYTES_MAX = 2 * _LIMITS.newest_bytes


class Came(NamedTuple):
    """New rows. since: the cut before; None if rows between were missed. dropped: as Removes."""

    since: Cut | None
    rows: pa.RecordBatch
    dropped: pa.RecordBatch


class EventRows:
    """The newest rows of one partition, each once, in their order.

    The rows of an input have the same order at every publisher. So the last row of each input
    separates received rows from new ones: a publisher may repeat rows before the cut that it names.
    """

    def __init__(self, layout: Layout, schema: pa.Schema, begins: Cut) -> None:
        """Begin without rows. schema: of changes, which ``layout`` is of."""
        self._layout = layout
        self._newest = NewestRows(schema, begins, ROWS_MAX, BYTES_MAX)
        self._last: dict[str, tuple[int, int]] = {}  # offset and index by input

    @property
    def begins(self) -> Cut:
        """The cut after which no row is missing."""
        return self._newest.complete_from

    def rows(self) -> pa.RecordBatch:
        """Return the rows, the oldest first."""
        return self._newest.rows().select(self._layout.table.names)

    def add(self, reached: Cut | None, changes: EdgeChanges) -> Came:
        """Add rows between two cuts. reached: the cut of the present rows, None without any.

        If the new rows begin after it, rows are missing, and the present ones are dropped.
        """
        assert changes.since is not None
        rows = self._new(changes.rows)
        if reached is not None and cuts.is_within(changes.since, reached):
            gone = [lost.rows for lost in self._newest.add(_copied(rows), changes.cut)]
            return Came(reached, rows, _removes(pa.concat_batches(gone) if gone else rows[:0]))
        before, keys = self._newest.rows(), self._layout.keys
        self._newest = NewestRows(before.schema, changes.since, ROWS_MAX, BYTES_MAX)
        self._newest.add(_copied(changes.rows), changes.cut)
        return Came(None, rows, _removes(_without(before, changes.rows, keys)))

    def _new(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows without received ones, and note the last row of each input."""
        if not rows.num_rows:
            return rows
        inputs, offsets, indexes = rows.columns[:3]
        at, index = offsets.to_numpy(), indexes.to_numpy()
        is_new = np.ones(rows.num_rows, np.bool_)
        for name in pc.unique(inputs).to_pylist():
            mine = np.flatnonzero(pc.equal(inputs, name).to_numpy(zero_copy_only=False))
            if (last := self._last.get(name)) is not None:
                known = np.flatnonzero((at[mine] == last[0]) & (index[mine] == last[1]))
                if len(known):
                    is_new[mine[: known[-1] + 1]] = False
            self._last[name] = int(at[mine[-1]]), int(index[mine[-1]])
        return rows if is_new.all() else rows.filter(pa.array(is_new))


def _copied(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in buffers without other rows."""
    return pa.concat_batches([rows])


def _without(rows: pa.RecordBatch, others: pa.RecordBatch, keys: tuple[str, ...]) -> pa.RecordBatch:
    """Return the rows without the keys of others."""
    if not rows.num_rows or not others.num_rows:
        return rows
    known = set(_keys(others, keys))
    return rows.filter(pa.array([key not in known for key in _keys(rows, keys)]))


def _keys(rows: pa.RecordBatch, keys: tuple[str, ...]) -> zip[tuple[object, ...]]:
    return zip(*(rows.column(name).to_pylist() for name in keys), strict=True)


def _removes(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return Removes of the keys of rows."""
    count, at = rows.num_rows, rows.schema.names.index(OP)
    ops = pa.array(np.full(count, OP_REMOVE, np.int8))
    values = [pa.nulls(count, field.type) for field in rows.schema][at + 1 :]
    return pa.RecordBatch.from_arrays([*rows.columns[:at], ops, *values], schema=rows.schema)
