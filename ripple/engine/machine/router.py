"""Repartitioning in front of a pipeline, where the input has another key than the first fold.

It judges records and does the steps before the first fold, to find the rows left and their keys,
and gives each record, as it came, to the partition of its key. It folds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.edges.edge_changes import targets_of
from ripple.engine.machine.divider import Divider, watermarks_after
from ripple.engine.machine.waiting_rows import WaitingRows
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.engine.operators.event_fold import EventFold
from ripple.engine.operators.rows import RejectedRow
from ripple.model.pipeline.division import divided_into
from ripple.model.schema.exported import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.machine.inputs import Input
    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.exported import Lent

    Ints = npt.NDArray[np.int64]


class Router(Divider):
    """One partition of the stage that divides records anew.

    Its targets are numbered by (input, partition of the first stage): ``input * N + partition``, so
    that a target's batch is of one input, in the order of its offsets. The rows have the source's
    fields, and two of the engine's own: their offset, and the input's watermark after each.
    """

    def __init__(
        self,
        plan: Plan,
        partition: int = 0,
        inputs: Sequence[str] | None = None,
        **rest: object,
    ) -> None:
        """Make an empty partition; as an engine of the first stage."""
        super().__init__(plan, partition, inputs, **{**rest, "staged": True})  # type: ignore[arg-type]
        self._outgoing = {}
        self._key = pa.schema(arrow_fields(plan.folds[0].key))
        self._waiting = WaitingRows(self._inputs, plan.source, divided_into(plan))
        self._judged: tuple[Ints | None, Ints | Lent | None] = None, None

    def _folds_here(self, plan: Plan, *, staged: bool) -> tuple[Fold, ...]:
        return super()._folds_here(plan, staged=staged)[:1]

    def _first_fold(self, graph: Graph, fold: Fold) -> EventFold:
        return Divided(graph, fold)

    def _consume(
        self, given: Input, batch: pa.RecordBatch | Part, offsets: Ints | None
    ) -> list[RejectedRow]:
        assert isinstance(self._fold, Divided)
        self._fold.left, before_ns = None, given.watermark_ns
        rejected = super()._consume(given, batch, offsets)
        left = self._fold.left
        if left is not None and left.count:
            if offsets is None:
                offsets = np.arange(given.next_offset - batch.num_rows, given.next_offset)
            at = left.origins
            after_ns = watermarks_after(
                *self._judged, batch.num_rows, given.out_of_order_ns, before_ns
            )
            own = [pa.array(offsets[at]), pa.array(after_ns[at])]
            taken = batch.arrow() if isinstance(batch, Part) else batch
            if len(at) < batch.num_rows:
                taken = taken.take(pa.array(at))
            keys = [arrow_column(left.columns[one.name], one.type) for one in self._key]
            of_key = pa.RecordBatch.from_arrays(keys, schema=self._key)
            numbers = targets_of(of_key, self._key.names, self._waiting.partitions)
            self._waiting.add(given.name, [*taken.columns, *own], numbers)
        return rejected

    def _judge(self, given: Input, rows: Rows) -> int:
        """Judge as ever, and note the rows that count: those dropped here move no watermark."""
        crossing = super()._judge(given, rows)
        self._judged = rows.origin, rows.times_ns
        return crossing


class Divided(EventFold):
    """Takes the first fold's place, rejects the rows that it would reject, and folds nothing."""

    def __init__(self, graph: Graph, fold: Fold) -> None:
        super().__init__(graph, fold)
        self.left: Rows | None = None
        """The rows of a batch left after the steps."""

    def apply(self, rows: Rows, crossing: int) -> None:
        """Take the rows left."""
        del crossing
        self.left = rows
