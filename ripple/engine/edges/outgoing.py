"""The sender's end of an edge: changes by partition of the next stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from ripple.core.row_ops import OP, OP_FINAL, OP_REMOVE, OP_SET
from ripple.engine.edges.edge_changes import EdgeChanges, Retained, targets_of
from ripple.engine.graph.column import Tap
from ripple.engine.kernels.states import States
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.groups import MEMBERS, Groups
from ripple.engine.operators.result_rows import row_arrays
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.slots import SlotSet
from ripple.model.keys.space import key_space
from ripple.model.pipeline.topology import EdgeKind
from ripple.model.schema.types import Bool, Field, Int64, String

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import numpy.typing as npt

    from ripple.core.cut import Cut
    from ripple.engine.graph.column import Column
    from ripple.engine.graph.node import Graph
    from ripple.model.pipeline.plan import Fold, Plan
    from ripple.model.pipeline.topology import Stage

    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]


GONE_ROWS_MIN = 1 << 16  # fewer unsent removed rows are kept in any case

_NONE = np.empty(0, np.int64)
_NOBODY = -1


class Table(Protocol):
    """The rows of an edge, and their changes that receivers have not got yet."""

    def part_with(self, retired: Ints) -> pa.RecordBatch:
        """Note the slots that this stabilize frees; return the rows that are final.

        retired: slots of the fold above that are final and about to be freed.
        """

    def take(self, ready: Bools) -> list[pa.RecordBatch]:
        """Return the changes of each ready target since its last batch; bool[targets].

        Of the others it is noted which slots changed, and which keys have gone.
        """

    def forget(self, target: int) -> None:
        """Forget the unsent removed rows of a target, which gets the whole table next."""

    def gone_rows(self, target: int) -> int:
        """Return how many removed rows a target has not got yet."""

    def whole(self) -> pa.RecordBatch:
        """Return all rows, each a Set."""


class PartialTable(Groups):
    """One accumulator per group of the next stage's fold, of this partition's rows alone."""

    def __init__(self, graph: Graph, fold: Fold, parent: Column, targets: int) -> None:
        super().__init__(graph, fold, parent, ())
        self._changed = SlotSet()
        self._schema = partial_schema(fold)
        self._key = [field.name for field in fold.key]
        self._gone = [Gone(self._schema) for _ in range(targets)]

    def recompute_now(self) -> None:
        """Note which groups changed."""
        live, _ = self.take_touched()
        self._changed.add(live, self.keys.capacity)

    def part_with(self, retired: Ints) -> pa.RecordBatch:
        """Note which groups go, and free them; return those that are over."""
        expired, emptied = self.expired(retired), self.emptied()
        final = _batch(self._dumped(expired, OP_FINAL), self._schema)
        if len(expired) or len(emptied):
            ended, left = self._targets(expired), self._targets(emptied)
            for target, gone in enumerate(self._gone):
                gone.add(final.filter(pa.array(ended == target)))
                gone.add_removed(self.dump_keys(emptied[left == target]))
        self.free(expired)
        return final

    def take(self, ready: Bools) -> list[pa.RecordBatch]:
        """Return for each target that is ready the groups that changed since it was last."""
        changed = self._changed.take()
        live = changed[self.members.result(changed) > 0]
        numbers = self._targets(live)
        if not ready.all():
            self._changed.add(live[~ready[numbers]], self.keys.capacity)
            live, numbers = live[ready[numbers]], numbers[ready[numbers]]
        rows = _batch(self._dumped(live, OP_SET), self._schema)
        return [
            gone.take(rows.filter(pa.array(numbers == target))) if ready[target] else rows[:0]
            for target, gone in enumerate(self._gone)
        ]

    def _targets(self, groups: Ints) -> Ints:
        """Return the target of each group."""
        if not self._key or len(self._gone) == 1:
            return np.zeros(len(groups), np.int64)
        keys = pa.table(self.dump_keys(groups)).to_batches()
        return targets_of(keys[0], self._key, len(self._gone)) if keys else groups[:0]

    def forget(self, target: int) -> None:
        """Forget the unsent removed rows of a target."""
        self._gone[target] = Gone(self._schema)

    def gone_rows(self, target: int) -> int:
        """Return how many removed groups a target has not got yet."""
        return self._gone[target].rows

    def whole(self) -> pa.RecordBatch:
        """Return all groups, each a Set."""
        return _batch(self._dumped(self.keys.index.live_slots(), OP_SET), self._schema)

    def _dumped(self, groups: Ints, op: int) -> pa.Table:
        columns = {
            **self.dump_keys(groups),
            OP: _ops(op, len(groups)),
            MEMBERS: pa.array(self.members.result(groups)),
            **self.states.dump_partial(groups),
        }
        return pa.table(columns)


class RowTable:
    """The rows of the last fold of this stage, with the fields that the next one reads.

    Invariant: ``_sent[s]`` is the target that has the row at slot s as of the last take, -1 if none
    has; a slot whose row changed since is in ``_changed``.
    """

    def __init__(self, column: Column, above: Fold, fold: Fold, targets: int) -> None:
        key, values = above.row_key, row_values(above, fold)
        self._column = column
        self._key = [member.name for member in key]
        self._group = [member.name for member in fold.key]
        self._values = [(column.names.index(f.name), f) for f in arrow_fields(values)]
        self._schema = row_schema(above, fold)
        self._targets = targets
        self._sent = np.empty(0, np.int64)
        self._now: Ints = _NONE
        self._changed = SlotSet()
        self._gone = [Gone(self._schema) for _ in range(targets)]
        Tap(column, self._note)

    def _note(self, column: Column) -> None:
        slots, _, _ = column.changes()
        self._now = np.union1d(self._now, slots)
        self._changed.add(slots, column.keys.capacity)

    def part_with(self, retired: Ints) -> pa.RecordBatch:
        """Note which rows go; return those that are over."""
        self._sent = grown(self._sent, self._column.keys.capacity, _NOBODY)
        final = retired[self._column.has_rows(retired)]
        gone = self._now[~self._column.has_rows(self._now)]
        self._now = _NONE
        rows = self._rows(final, OP_FINAL)
        self._withdraw(gone, np.full(len(gone), _NOBODY))
        at = self._withdraw(final, targets_of(rows, self._group, self._targets))
        for target, one in enumerate(self._gone):
            one.add(rows.filter(pa.array(at == target)))
        self._sent[retired] = _NOBODY
        return rows

    def _withdraw(self, slots: Ints, to: Ints) -> Ints:
        """Let targets that have rows at ``slots`` remove them, unless they get them; return to."""
        before = self._sent[slots]
        for target in np.unique(before[(before != to) & (before >= 0)]).tolist():
            removed = slots[(before == target) & (to != target)]
            keys = zip(self._key, self._column.keys.arrays(removed), strict=True)
            self._gone[target].add_removed(dict(keys))
        self._sent[slots] = to
        return to

    def take(self, ready: Bools) -> list[pa.RecordBatch]:
        """Return for each target that is ready the rows that changed since it was last.

        A row with a group that belongs to another target now is a Remove to the one and a Set to
        the other, each when that is ready.
        """
        self._sent = grown(self._sent, self._column.keys.capacity, _NOBODY)
        changed = self._changed.take()
        live = changed[self._column.has_rows(changed)]
        rows = self._rows(live, OP_SET)
        at = targets_of(rows, self._group, self._targets)
        if ready.all():
            self._withdraw(live, at)
        else:
            later = ~ready[at]
            stays = later & (self._sent[live] == at)
            self._withdraw(live, np.where(later & ~stays, _NOBODY, at))
            self._changed.add(live[later], self._column.keys.capacity)
        return [
            gone.take(rows.filter(pa.array(at == target))) if ready[target] else rows[:0]
            for target, gone in enumerate(self._gone)
        ]

    def forget(self, target: int) -> None:
        """Forget the unsent removed rows of a target."""
        self._gone[target] = Gone(self._schema)

    def gone_rows(self, target: int) -> int:
        """Return how many removed rows a target has not got yet."""
        return self._gone[target].rows

    def whole(self) -> pa.RecordBatch:
        """Return all rows, each a Set."""
        return self._rows(self._column.present_slots(), OP_SET)

    def _rows(self, slots: Ints, op: int) -> pa.RecordBatch:
        every = self._column.rows(slots)
        values = row_arrays(
            [f for _, f in self._values], [every[at] for at, _ in self._values], None
        )
        columns = [*self._column.keys.arrays(slots), _ops(op, len(slots)), *values]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


class Gone:
    """Rows that left a table since a receiver's last batch: final, or removed."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._key = schema.names[: schema.names.index(OP)]
        self._final: list[pa.RecordBatch] = []
        self._removed: list[pa.Table] = []
        self.rows = 0

    def add(self, final: pa.RecordBatch) -> None:
        """Add final rows."""
        if final.num_rows:
            self._final.append(final)
            self.rows += final.num_rows

    def add_removed(self, keys: Mapping[str, pa.Array]) -> None:
        """Add keys that have no row any more; of no fields where there is one row, or none."""
        rows = pa.table(dict(keys))
        if rows.num_rows:
            self._removed.append(rows)
            self.rows += rows.num_rows

    def take(self, present: pa.RecordBatch) -> pa.RecordBatch:
        """Return the ``present`` rows with the removed ones, each key once, and forget them."""
        rows = pa.concat_batches([present, *self._final])
        removed = self._removed
        self._final, self._removed = [], []
        self.rows = 0
        if not removed:
            return rows
        keys = pa.concat_tables(removed).combine_chunks()
        space = key_space([_key_field(keys.schema.field(name)) for name in self._key])
        there, slots = (
            space.slots([_whole(table.column(name)) for name in self._key])
            for table in (rows, keys)
        )
        first = np.unique(slots, return_index=True)[1]
        first = first[~np.isin(slots[first], there)]
        gone = keys.take(pa.array(first)).append_column(OP, _ops(OP_REMOVE, len(first)))
        both = [pa.Table.from_batches([rows]), gone]
        return _batch(pa.concat_tables(both, promote_options="default"), self.schema)


class Outgoing:
    """What a partition has for those of the next stage: changes as they come, tables if asked.

    Of an edge on which groups end with their windows, final rows are retained until the receiver
    has released them: it may need them to begin again.

    Invariant: ``_since[t]`` is the cut of target t's last batch; a target in ``_due`` is
    given the whole table next, and nothing is kept for it until then.
    """

    def __init__(self, plan: Plan, stage: Stage, graph: Graph, column: Column) -> None:
        """Send the rows of ``column`` over the edge into ``stage``."""
        assert stage.edge is not None
        assert stage.partitions is not None
        fold = plan.fold(stage.edge.to)
        above = plan.fold(stage.edge.of)
        self.of = above.name
        self.targets = stage.partitions
        self._key = [member.name for member in fold.key]
        self._is_state = stage.edge.kind.is_state
        self._since: list[Cut | None] = [None] * self.targets
        self._due: set[int] = set()
        self.partial: PartialTable | None = None
        self._table: Table
        if stage.edge.kind is EdgeKind.PARTIAL:
            self._table = self.partial = PartialTable(graph, fold, column, self.targets)
        else:
            self._table = RowTable(column, above, fold, self.targets)
        self._retained: list[Retained] = []
        if stage.edge.kind.is_state and plan.frees(fold):
            schema = edge_schema(plan, stage)
            closes_after_ns = plan.closes_after_ns
            self._retained = [Retained(schema, closes_after_ns) for _ in range(self.targets)]

    def as_log(self) -> None:
        """Keep no row once it was taken: the log keeps it, in order."""
        self._is_state = False
        self._retained = []

    def retire(self, retired: Ints) -> None:
        """Note final rows, which are about to be freed."""
        final = self._table.part_with(retired)
        if self._retained and final.num_rows:
            self._retain(final)
        for target in range(self.targets) if self._is_state else ():
            gone = self._table.gone_rows(target)
            if gone and target in self._due:
                self._table.forget(target)
            elif gone > GONE_ROWS_MIN and gone > self._table.whole().num_rows:
                self.restart(target)

    def _retain(self, final: pa.RecordBatch) -> None:
        numbers = targets_of(final, self._key, self.targets)
        for target, retained in enumerate(self._retained):
            retained.add(final.filter(pa.array(numbers == target)))

    def take(
        self, cut: Cut, watermark_ns: int, targets: Collection[int] | None = None
    ) -> dict[int, EdgeChanges]:
        """Return the changes for ``targets``, or all, since the last batch of each."""
        ready = np.full(self.targets, targets is None)
        ready[list(targets or ())] = True
        taken = self._table.take(ready)
        given = {}
        for target in np.flatnonzero(ready).tolist():
            if target in self._due:
                given[target] = self.table(target, cut, watermark_ns)
            else:
                since = self._since[target]
                given[target] = EdgeChanges(since, cut, watermark_ns, taken[target])
            self._since[target] = cut
        self._due.difference_update(given)
        return given

    def restart(self, target: int) -> None:
        """Give ``target`` the whole table next, and keep nothing for it until then."""
        self._due.add(target)
        self._table.forget(target)

    def since(self, target: int) -> Cut | None:
        """Return the cut of ``target``'s last batch; None if the table is due."""
        return None if target in self._due else self._since[target]

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

    def resume(self, retained: pa.Table | None, cut: Cut) -> None:
        """Resume from a snapshot: from here on changes are those since its cut."""
        self._table.part_with(_NONE)
        self._table.take(np.ones(self.targets, np.bool_))
        self._since = [cut] * self.targets
        for rows in [] if retained is None else retained.to_batches():
            self._retain(rows)


def row_values(above: Fold, fold: Fold) -> tuple[Field, ...]:
    """Return the fields, without the key, that ``fold`` reads of the rows of ``above``."""
    key = {member.name for member in above.row_key}
    read = set(fold.fields_read) - key
    return tuple(member for member in above.row if member.name in read)


def edge_schema(plan: Plan, stage: Stage) -> pa.Schema:
    """Return the schema of rows into ``stage``: the key, ``op``, the values."""
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
    return pa.schema([*arrow_fields(above.row_key), _OP, *arrow_fields(row_values(above, fold))])


_OP = pa.field(OP, pa.int8(), nullable=False)


def _ops(op: int, rows: int) -> pa.Array:
    return pa.array(np.full(rows, op, np.int8))


def _key_field(field: pa.Field) -> Field:
    if pa.types.is_string(field.type):
        return Field(field.name, String())
    return Field(field.name, Bool() if pa.types.is_boolean(field.type) else Int64())


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Return a table in one piece, with the columns of ``schema``."""
    columns = [table.column(name).combine_chunks() for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
