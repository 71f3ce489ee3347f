"""The sender's table of a row edge: the receiver of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.row_ops import OP_FINAL, OP_SET
from ripple.engine.edges.edge_changes import targets_of
from ripple.engine.edges.gone import OP_FIELD, Gone, ops
from ripple.engine.graph.column import Tap
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.result_rows import row_arrays
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.slots import SlotSet

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.graph.column import Column
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]

_NONE = np.empty(0, np.int64)
_NOBODY = -1


class SentRows:
    """The rows of the last fold of this stage, with the fields that the next one reads.

    Invariant: ``_sent[s]`` is the target that has the row at slot s as of the last take, -1 if none
    has; a slot whose row changed since is in ``_changed``.
    """

    def __init__(self, column: Column, above: Fold, fold: Fold, targets: int) -> None:
        key, values = above.row_key, row_values(above, fold)
        self._column = column
        self._key = [member.name for member in key]
        self._group = [member.name for member in fold.key]
        self._values = [column.names.index(field.name) for field in values]
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
        """Note which rows go; return the finished ones."""
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
            self._gone[target].add_removed(dict(keys), len(removed))
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
        values = row_arrays([every[at] for at in self._values], None)
        columns = [*self._column.keys.arrays(slots), ops(op, len(slots)), *values]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def row_values(above: Fold, fold: Fold) -> tuple[Field, ...]:
    """Return the fields, without the key, that ``fold`` reads of the rows of ``above``."""
    key = {member.name for member in above.row_key}
    read = set(fold.fields_read) - key
    return tuple(member for member in above.row if member.name in read)


def row_schema(above: Fold, fold: Fold) -> pa.Schema:
    """Return the schema of the rows of ``above`` as ``fold`` reads them."""
    return pa.schema(
        [*arrow_fields(above.row_key), OP_FIELD, *arrow_fields(row_values(above, fold))]
    )
