"""Repartitioning one source of a plan with branches or several sources.

It judges the records once, for all readers, and does the steps and checks of all branches: so it
knows the counted records, with the rows of each. It folds and shows nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.machine.counters import Counters
from ripple.engine.machine.divider import Divider, watermarks_after
from ripple.engine.machine.engine import names_of
from ripple.engine.machine.fate import Fate
from ripple.engine.machine.graph_engine import GraphEngine
from ripple.engine.machine.inputs import Input
from ripple.engine.machine.port import Port
from ripple.engine.machine.row_origins import RowOrigins
from ripple.engine.machine.waiting_rows import WaitingRows
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.stream_rows import StreamRows
from ripple.model.pipeline.input_names import source_of
from ripple.model.pipeline.waiting_nodes import sides_of
from ripple.model.schema.exported import Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.machine.partition import Leaf
    from ripple.engine.machine.targets import Targets
    from ripple.engine.operators.event_fold import EventFold
    from ripple.engine.operators.joins.eager_rows import EagerRows
    from ripple.engine.operators.rows import RejectedRow
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan

    Ints = npt.NDArray[np.int64]


class SourceRouter(Divider, GraphEngine):
    """One partition of the stage that repartitions a source: that of its inputs.

    Its targets are those of ``WaitingRows``. Counters are those of the source, with its dead
    letters. Each receiver of a record counts it again, without a repetition of these checks.
    """

    targets: ClassVar[Targets]
    _shares = True

    @property
    def counters_by_source(self) -> Mapping[str, Counters]:
        """The counts of its source's records, and none of the others'."""
        none = {source.name: Counters() for source in self.plan.sources}
        return none | {self._port.source.name: self.counters}

    def _prepare(self, plan: Plan, inputs: Sequence[str] | None, start: Mapping[str, int]) -> None:
        names = names_of(plan, inputs, start)
        self._port = Port(plan, source_of(plan, names[0]), names)
        source, limit = self._port.source, self._port.offset_max
        self._ports = {source.name: self._port}
        self._port_of = dict.fromkeys(names, self._port)
        self._inputs = {name: Input.of(source, name, start.get(name, 0), limit) for name in names}
        self._only = next(iter(self._inputs.values())) if len(names) == 1 else None
        self._orders = True
        self._origins = RowOrigins([])  # no rows are taken here
        self._divisions = {}
        self._watermarks_ns = None
        self._waiting = WaitingRows(self._inputs, source, self.targets.partitions)

    def _begin(
        self, plan: Plan, graph: Graph, *, staged: bool
    ) -> tuple[Sequence[Leaf], Sequence[Fold], Mapping[str, StreamRows]]:
        folds, above, streams = super()._begin(plan, graph, staged=staged)
        self._settling, self._holders = [], []  # nothing is held here
        return folds, above, streams

    def _lay(self, plan: Plan, graph: Graph, folds: Mapping[str, EventFold]) -> list[EagerRows]:
        """Make the nodes, for their refusals; all of them wait for this router's inputs."""
        mine = self._feeds_of([*self._inputs.values()])
        self.waiting = {}
        of_joins = {table.input: table for table in plan.row_tables}
        self._feeds = dict.fromkeys((*folds, *(one.name for one in of_joins.values())), mine)
        holders = {
            node.name: self._holder(node, [mine for _ in sides_of(node)]) for node in plan.holding
        }
        return [
            self._row_table(graph, of_joins[node.name], node, holders[node.name])
            for node in plan.holding
            if node.name in of_joins
        ]

    def _consume(
        self, given: Input, batch: pa.RecordBatch | Part, offsets: Ints | None
    ) -> list[RejectedRow]:
        """Judge records of one input, find their rows, and send them on."""
        assert offsets is not None, "every row has a place"
        count, port = batch.num_rows, self._port
        rows = Rows(Columns(batch, port.layout), count, port.places(given.name, offsets))
        port.admit(rows, given)
        before_ns = given.watermark_ns
        _, too_late = self._judged(given, port, rows, count)
        after_ns = watermarks_after(
            rows.origin, rows.times_ns, count, given.out_of_order_ns, before_ns
        )
        fate = Fate(count, rows)
        branches = port.branches(rows, fate)
        found, targets = port.taken(branches, fate, too_late), self.targets
        numbered = ((one.rows, targets.of_rows(one, offsets)) for one in found.keyed)
        at, numbers = targets.pairs(numbered, [taken for _, taken in found.shown], offsets)
        if len(at):
            own = [pa.array(offsets[at]), pa.array(after_ns[at])]
            whole = batch.arrow() if isinstance(batch, Part) else batch
            self._waiting.add(given.name, [*whole.take(pa.array(at)).columns, *own], numbers)
        self._count(count, fate.dead, fate.very_late)
        return fate.dead


def source_router(targets: Targets) -> type[SourceRouter]:
    """Return the engine that repartitions records among these targets."""
    return type("SourceRouter", (SourceRouter,), {"targets": targets})
