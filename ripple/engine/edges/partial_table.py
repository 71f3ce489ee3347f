"""The sender's table of a partial edge: an accumulator for each group of the next fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.row_ops import OP, OP_FINAL, OP_SET
from ripple.engine.edges.edge_changes import targets_of
from ripple.engine.edges.gone import OP_FIELD, Gone, batch_of, ops
from ripple.engine.kernels.states import States
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.groups import MEMBERS, Groups
from ripple.model.keys.slots import SlotSet

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.graph.column import Column
    from ripple.engine.graph.node import Graph
    from ripple.model.pipeline.nodes import Fold

    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]

_NONE = np.empty(0, np.int64)


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
        """Note which groups go, and free them; return the finished ones."""
        expired, emptied = self.expired(retired), self.emptied()
        final = batch_of(self._dumped(expired, OP_FINAL), self._schema)
        if len(expired) or len(emptied):
            ended, left = self._targets(expired), self._targets(emptied)
            for target, gone in enumerate(self._gone):
                gone.add(final.filter(pa.array(ended == target)))
                removed = emptied[left == target]
                gone.add_removed(self.dump_keys(removed), len(removed))
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
        rows = batch_of(self._dumped(live, OP_SET), self._schema)
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
        return batch_of(self._dumped(self.keys.index.live_slots(), OP_SET), self._schema)

    def _dumped(self, groups: Ints, op: int) -> pa.Table:
        columns = {
            **self.dump_keys(groups),
            OP: ops(op, len(groups)),
            MEMBERS: pa.array(self.members.result(groups)),
            **self.states.dump_partial(groups),
        }
        return pa.table(columns)


def partial_schema(fold: Fold) -> pa.Schema:
    """Return the schema of a fold's partial accumulators."""
    partial = States(fold.aggregates, retractable=False).dump_partial(_NONE)
    accumulators = [pa.field(name, array.type) for name, array in partial.items()]
    return pa.schema(
        [*arrow_fields(fold.key), OP_FIELD, pa.field(MEMBERS, pa.int64()), *accumulators]
    )
