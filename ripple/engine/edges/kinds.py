"""The kinds of edges. When a plan has which one: ``ripple.model.pipeline.stages``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.engine.edges.edge import Edge
from ripple.engine.edges.partial_table import PartialTable, partial_schema
from ripple.engine.edges.remote_groups import RemoteGroups
from ripple.engine.edges.remote_rows import RemoteRows
from ripple.engine.edges.sent_rows import SentRows, row_schema
from ripple.model.pipeline.stages import EdgeKind
from ripple.model.pipeline.topology import stages_after, stages_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ripple.engine.graph.column import Column
    from ripple.engine.graph.node import Graph
    from ripple.model.pipeline.plan import Plan


class PartialEdge(Edge):
    """A sender keeps accumulators of its own rows, and a receiver merges those of all senders."""

    carries = "accumulators"

    @property
    def schema(self) -> pa.Schema:
        """The schema of its rows."""
        return partial_schema(self.fold)

    def sender(self, graph: Graph, column: Column) -> PartialTable:
        """Return the sender's accumulators."""
        return PartialTable(graph, self.fold, column, self.targets)

    def receiver(self, graph: Graph, senders: Sequence[str]) -> RemoteGroups:
        """Return the merged groups."""
        return RemoteGroups(graph, self.fold, len(senders), self.closes_ns)


class RowEdge(Edge):
    """A receiver has a copy of those rows that belong to its groups, and folds them."""

    carries = "rows"

    @property
    def schema(self) -> pa.Schema:
        """The schema of its rows."""
        return row_schema(self.above, self.fold)

    def sender(self, graph: Graph, column: Column) -> SentRows:
        """Return which receiver has which row."""
        del graph
        return SentRows(column, self.above, self.fold, self.targets)

    def receiver(self, graph: Graph, senders: Sequence[str]) -> RemoteRows:
        """Return the copy of the rows."""
        return RemoteRows(graph, self.above, self.fold, self.closes_ns, sorted(senders))


_KINDS: dict[EdgeKind, type[Edge]] = {
    EdgeKind.PARTIAL: PartialEdge,
    EdgeKind.ROW: RowEdge,
    EdgeKind.EVENT: RowEdge,
}


def edge_into(plan: Plan, stage: int) -> Edge | None:
    """Return the edge into a stage of a plan; None for the first stage."""
    found = stages_of(plan)[stage]
    return None if found.edge is None else _KINDS[found.edge.kind](plan, found)


def edges_from(plan: Plan, stage: int) -> list[Edge]:
    """Return the edges from a stage of a plan to the next ones."""
    found = (edge_into(plan, after.number) for after in stages_after(plan, stage))
    return [edge for edge in found if edge is not None]
