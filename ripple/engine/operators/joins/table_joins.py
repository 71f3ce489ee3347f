"""The column of a join of tables, of the kind that its compared fields need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.engine.operators.joins.paired_rows import PairedRows
from ripple.engine.operators.joins.referring_rows import ReferringRows
from ripple.engine.operators.joins.table_join_rows import TableJoinRows

if TYPE_CHECKING:
    from ripple.engine.graph.column import Column
    from ripple.engine.graph.node import Graph
    from ripple.model.pipeline.nodes import TableJoin


def table_join_rows(
    graph: Graph,
    join: TableJoin,
    left: Column,
    right: Column,
    *,
    stays: tuple[bool, bool],
    is_side: bool,
) -> TableJoinRows:
    """Return the column of a join of tables.

    stays: whether no row of the left becomes final, and of the right. is_side: of another join.
    """
    if join.is_by_key:
        rows = TableJoinRows(graph, join, left, right)
    else:
        kind = PairedRows if join.is_many else ReferringRows
        rows = kind(graph, join, left, right, shares=stays[0])
    if all(stays) and not is_side:
        rows.link()
    return rows
