"""The sender's end of an edge: what changed, for which partition of the next stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.engine.arrow_types import arrow_fields
from ripple.engine.edge_changes import EdgeChanges, Retained, targets_of
from ripple.engine.groups import MEMBERS, Groups
from ripple.fold.states import States
from ripple.fold.view import View
from ripple.keys.space import key_space
from ripple.ops import OP_FINAL, OP_REMOVE, OP_SET
from ripple.pipeline.plan import OP_FIELD
from ripple.pipeline.stages import EdgeKind

if TYPE_CHECKING:
    from ripple.cut import Cut
    from ripple.graph.column import Column
    from ripple.graph.node import Graph
    from ripple.pipeline.plan import Fold, Plan
    from ripple.pipeline.stages import Stage
    from ripple.schema.types import Field

Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)


class Table(Protocol):
    """The rows that an edge keeps its receivers up to date with."""

    def take(self, retired: Ints, targets: int) -> list[pa.RecordBatch]:
        """Return for each target what changed since the last call; frees what is over.

        retired: slots of the fold above that are final and about to be freed.
        """

    def whole(self) -> pa.RecordBatch:
        """Return all rows, each a Set."""


class PartialTable(Groups):
    """One accumulator per group of the next stage's fold, of this partition's rows alone."""

    def __init__(self, graph: Graph, fold: Fold, parent: Column) -> None:
        super().__init__(graph, fold, parent, ())
        self._changed: list[Ints] = []
        self._schema = partial_schema(fold)

    def recompute_now(self) -> None:
        """Note which groups changed."""
        self._changed += self.take_touched()

    def take(self, retired: Ints, targets: int) -> list[pa.RecordBatch]:
        """Return for each target the groups that changed, and free those that are over."""
        expired = self.expired(retired)
        groups = np.unique(np.concatenate((expired, *self._changed)))
        self._changed.clear()
        present = self.members.result(groups) > 0
        ops = np.where(np.isin(groups[present], expired), OP_FINAL, OP_SET)
        gone = {**self.dump_keys(groups[~present]), OP_FIELD: _ops(OP_REMOVE, (~present).sum())}
        tables = [self._dumped(groups[present], ops), pa.table(gone)]
        rows = _batch(pa.concat_tables(tables, promote_options="default"), self._schema)
        self.free(expired)
        numbers = targets_of(rows, [field.name for field in self.fold.key], targets)
        return [rows.filter(pa.array(numbers == target)) for target in range(targets)]

    def whole(self) -> pa.RecordBatch:
        """Return all groups, each a Set."""
        groups = self.keys.index.live_slots()
        return _batch(self._dumped(groups, np.full(len(groups), OP_SET)), self._schema)

    def _dumped(self, groups: Ints, ops: Ints) -> pa.Table:
        columns = {
            **self.dump_keys(groups),
            OP_FIELD: pa.array(ops, pa.int8()),
            MEMBERS: pa.array(self.members.result(groups)),
            **self.states.dump_partial(groups),
        }
        return pa.table(columns)


class RowTable:
    """The rows of the last fold of this stage, with the fields that the next one reads."""

    def __init__(self, column: Column, above: Fold, fold: Fold) -> None:
        key = row_key(above)
        values = [member for member in above.row if member.name in column.names]
        types = arrow_fields(key), arrow_fields(values)
        self._column = column
        self._view = View(column, types, retractions=True, in_order=False)
        self._key = [member.name for member in key]
        self._group = [member.name for member in fold.key]
        self._schema = row_schema(above, fold)

    def take(self, retired: Ints, targets: int) -> list[pa.RecordBatch]:
        """Return for each target the rows that changed, by the groups that they were and are in.

        A row whose group belongs to another target now is a Remove to the one and a Set to the
        other.
        """
        changed, old = self._view.take(), self._view.take_retracted()
        final = self._view.rows(retired[self._column.has_rows(retired)])
        changed = changed.filter(pa.array(changed.column(OP_FIELD).to_numpy() == OP_SET))
        space = key_space(self._column.keys.fields)

        def slots(rows: pa.RecordBatch) -> Ints:
            found = space.slots([rows.column(name) for name in self._key] or [_NONE])
            space.adopt(found)
            return found

        is_final = np.isin(slots(changed), slots(final))
        now = pa.concat_batches(
            [
                self._with_op(changed.filter(pa.array(~is_final)), OP_SET),
                self._with_op(final, OP_FINAL),
            ]
        )
        at_now = targets_of(now, self._group, targets)
        at_old = targets_of(old, self._group, targets)
        slots_now, slots_old = slots(now), slots(old)
        stays_at = np.full(space.capacity, -1)
        stays_at[slots_now] = at_now
        left = at_old != stays_at[slots_old]
        gone, at_gone = old.filter(pa.array(left)), at_old[left]
        return [
            _batch(
                pa.concat_tables(
                    [
                        pa.Table.from_batches([now.filter(pa.array(at_now == target))]),
                        self._removes(gone.filter(pa.array(at_gone == target))),
                    ],
                    promote_options="default",
                ),
                self._schema,
            )
            for target in range(targets)
        ]

    def whole(self) -> pa.RecordBatch:
        """Return all rows, each a Set."""
        return self._with_op(self._view.rows(self._column.present_slots()), OP_SET)

    def _with_op(self, rows: pa.RecordBatch, op: int) -> pa.RecordBatch:
        columns = [
            _ops(op, rows.num_rows) if name == OP_FIELD else rows.column(name)
            for name in self._schema.names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _removes(self, rows: pa.RecordBatch) -> pa.Table:
        keys = {name: rows.column(name) for name in self._key}
        return pa.table({**keys, OP_FIELD: _ops(OP_REMOVE, rows.num_rows)})


class Outgoing:
    """What a partition has for those of the next stage: changes as they come, tables if asked.

    Of an edge on which groups end with their windows, final rows are retained until the receiver
    has released them: it may need them to begin again.
    """

    def __init__(self, plan: Plan, stage: Stage, graph: Graph, column: Column) -> None:
        """Send over the edge that leads into ``stage`` what ``column`` has."""
        assert stage.edge is not None
        assert stage.partitions is not None
        fold = plan.fold(stage.edge.to)
        above = plan.fold(stage.edge.of)
        self.of = above.name
        self.targets = stage.partitions
        self._key = [member.name for member in fold.key]
        self.partial: PartialTable | None = None
        self._table: Table
        if stage.edge.kind is EdgeKind.PARTIAL:
            self._table = self.partial = PartialTable(graph, fold, column)
        else:
            self._table = RowTable(column, above, fold)
        self._retained: list[Retained] = []
        if stage.edge.kind.is_state and plan.frees(fold):
            schema = edge_schema(plan, stage)
            closes_after_ns = plan.closes_after_ns
            self._retained = [Retained(schema, closes_after_ns) for _ in range(self.targets)]

    def take(
        self, retired: Ints, since: Cut | None, cut: Cut, watermark_ns: int
    ) -> list[EdgeChanges]:
        """Return what changed for each target since the last call, which was at ``since``."""
        taken = self._table.take(retired, self.targets)
        for retained, rows in zip(self._retained, taken, strict=False):
            retained.add(rows)
        return [EdgeChanges(since, cut, watermark_ns, rows) for rows in taken]

    def table(self, target: int, cut: Cut, watermark_ns: int) -> EdgeChanges:
        """Return all that ``target`` needs to begin: rows as they are, and retained final ones."""
        rows = self._table.whole()
        numbers = targets_of(rows, self._key, self.targets)
        rows = rows.filter(pa.array(numbers == target))
        if self._retained:
            rows = pa.concat_batches([rows, self._retained[target].rows()])
        return EdgeChanges(None, cut, watermark_ns, rows)

    def release(self, target: int, watermark_ns: int) -> None:
        """Forget final rows that ``target`` has made durable, up to its watermark."""
        if self._retained:
            self._retained[target].release(watermark_ns)

    def retained(self) -> pa.Table | None:
        """Return all final rows that are retained, for a snapshot; None if there never are any."""
        if not self._retained:
            return None
        return pa.Table.from_batches([one.rows() for one in self._retained])

    def retain(self, table: pa.Table) -> None:
        """Take over what ``retained`` returned."""
        for rows in table.to_batches():
            numbers = targets_of(rows, self._key, self.targets)
            for target, retained in enumerate(self._retained):
                retained.add(rows.filter(pa.array(numbers == target)))


def row_key(fold: Fold) -> tuple[Field, ...]:
    """Return what tells one row of a fold from another: with windows also their start."""
    if fold.window is None:
        return fold.key
    return (*fold.key, *(member for member in fold.row if member.name == "window_start_ns"))


def row_values(above: Fold, fold: Fold) -> tuple[Field, ...]:
    """Return the fields beside the key that ``fold`` reads of the rows of ``above``."""
    key = {member.name for member in row_key(above)}
    read = set(fold.fields_read) - key
    return tuple(member for member in above.row if member.name in read)


def edge_schema(plan: Plan, stage: Stage) -> pa.Schema:
    """Return the schema of what flows into ``stage``: the key, ``op``, the values."""
    assert stage.edge is not None
    fold = plan.fold(stage.edge.to)
    if stage.edge.kind is EdgeKind.PARTIAL:
        return partial_schema(fold)
    return row_schema(plan.fold(stage.edge.of), fold)


def partial_schema(fold: Fold) -> pa.Schema:
    """Return the schema of a fold's partial accumulators."""
    partial = States(fold.aggregates, retractable=False).dump_partial(_NONE)
    accumulators = [pa.field(name, array.type) for name, array in partial.items()]
    return pa.schema([*arrow_fields(fold.key), _OP, pa.field(MEMBERS, pa.int64()), *accumulators])


def row_schema(above: Fold, fold: Fold) -> pa.Schema:
    """Return the schema of the rows of ``above`` as ``fold`` reads them."""
    return pa.schema([*arrow_fields(row_key(above)), _OP, *arrow_fields(row_values(above, fold))])


_OP = pa.field(OP_FIELD, pa.int8(), nullable=False)


def _ops(op: int, rows: int) -> pa.Array:
    return pa.array(np.full(rows, op, np.int8))


def _batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Return a table in one piece, with the columns of ``schema``."""
    columns = [table.column(name).combine_chunks() for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
