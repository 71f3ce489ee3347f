"""One output of a partition, as those outside follow it: changes as they come, tables if asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.row_ops import OP, OP_FINAL, OP_SET
from ripple.engine.changes.columns import compose
from ripple.engine.changes.layout import layout_of
from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.engine.operators.arrow_types import arrow_fields

if TYPE_CHECKING:
    from collections.abc import Collection

    from ripple.core.cut import Cut
    from ripple.engine.kernels.view import View
    from ripple.engine.machine.partition import Partition
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan

# Rows that changed and were not taken, before the whole table is given instead.
WAITING_ROWS_MIN = 1 << 16


def shown_schema(plan: Plan, output: Output) -> pa.Schema:
    """Return the columns of an output's changes: its key, ``op``, the values."""
    key = plan.key_of(output)
    values = [field for field in output.fields if field not in key]
    return pa.schema([*arrow_fields(key), _OP, *arrow_fields(values)])


class OutputStream:
    """Changes of one output of a partition for its subscribers: an ``Outgoing`` with one target.

    Invariant: waiting changes lead from ``_since`` to the last stabilize; where the table is due
    none wait, and none are kept.
    """

    def __init__(self, partition: Partition, view: View) -> None:
        self._partition = partition
        self._view = view
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._since: Cut | None = None

    @property
    def keeps(self) -> bool:
        """Whether a subscriber gets the next changes."""
        return self._since is not None

    def add(self, changed: pa.RecordBatch, final: pa.RecordBatch | None) -> None:
        """Keep the rows that a stabilize has changed or freed."""
        for rows in (changed, None if final is None else _with_op(final, self._view, OP_FINAL)):
            if rows is not None and rows.num_rows:
                self._waiting.append(rows)
                self._rows += rows.num_rows
        if self._rows > max(WAITING_ROWS_MIN, len(self._view.column)):
            self.restart(0)

    def restart(self, target: int) -> None:
        """Give the whole table next, and keep nothing until then."""
        del target
        self._waiting, self._rows, self._since = [], 0, None

    def given_to(self, target: int) -> Cut | None:
        """Return the cut of the last batch; None if the table is due."""
        del target
        return self._since

    def outgoing_to(self, targets: Collection[int]) -> dict[int, EdgeChanges]:
        """Return the changes since the last batch, or the table: of the one target."""
        (target,) = targets
        given = self.table_for(target) if self._since is None else self._changes(self._since)
        self._waiting, self._rows, self._since = [], 0, self.cut
        return {target: given}

    def table_for(self, target: int) -> EdgeChanges:
        """Return the rows that are shown now, each a Set."""
        del target
        table = self._view.table().combine_chunks()
        batches = table.to_batches()
        rows = batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
        rows = _with_op(rows, self._view, OP_SET)
        return EdgeChanges(None, self.cut, self.watermark_ns, rows)

    def release(self, target: int, watermark_ns: int) -> None:
        """Do nothing: final rows are not retained for those outside."""

    @property
    def cut(self) -> Cut:
        """The partition's."""
        return self._partition.cut

    @property
    def watermark_ns(self) -> int:
        """The partition's."""
        return self._partition.watermark_ns

    def _changes(self, since: Cut) -> EdgeChanges:
        return EdgeChanges(since, self.cut, self.watermark_ns, self._taken())

    def _taken(self) -> pa.RecordBatch:
        """Return the waiting changes, each key once."""
        schema, rows = self._view.schema, self._waiting
        if len(rows) < 2:
            return rows[0] if rows else pa.RecordBatch.from_pylist([], schema)
        layout = layout_of(schema)
        while len(rows) > 1:  # pairs, then pairs of pairs: composing is associative
            pairs = zip(rows[::2], rows[1::2], strict=False)
            rows = [compose(layout, *pair) for pair in pairs] + rows[len(rows) & ~1 :]
        columns = [rows[0].column(name) for name in schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


_OP = pa.field(OP, pa.int8(), nullable=False)


def _with_op(rows: pa.RecordBatch, view: View, op: int) -> pa.RecordBatch:
    """Return rows of a view as deltas of this operation."""
    ops = pa.array(np.full(rows.num_rows, op, np.int8))
    columns = [ops if name == OP else rows.column(name) for name in view.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=view.schema)
