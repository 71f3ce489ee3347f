"""The tables of the rows of a join or a scan from their reading on: all, or the last by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import check_result_field
from ripple.model.pipeline.nodes import WINDOW_FIELD_NAMES, LastTable, RowTable

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import Fields
    from ripple.model.pipeline.waiting_nodes import AsofJoin, BookScan, IntervalJoin, StepScan

ROWS, LAST = ".rows", ".last"
"""The endings of the names of these tables, after the name of the node."""


def row_table(
    node: AsofJoin | IntervalJoin | StepScan | BookScan, key: Fields, eager: str, final: str
) -> RowTable:
    """Return the table of a node's rows from their reading on. Raises PlanError.

    eager, final: how the node was asked for it, and for a stream.
    """
    taken = [field.name for field in key]
    for field in node.fields_out:
        if field.name in (*taken, *WINDOW_FIELD_NAMES):
            mine = "of the key of its rows" if field.name in taken else "of windows"
            raise PlanError(
                f"{field.name!r} is the name of a field {mine}, which {eager} cannot show: "
                f"rename it with .map(..., into=...), or say {final}"
            )
        check_result_field(field.name)
    name, row = f"{node.name}{ROWS}", (*key, *node.fields_out)
    path = f"{node.node_key}/{name}"
    return RowTable(name, node.name, "", key, None, (), (), row, node.fields_out, path, node.name)


def last_table(node: StepScan) -> LastTable:
    """Return the table of the last row of each key of a scan. Raises PlanError."""
    for field in node.fields_out:
        if field.name in WINDOW_FIELD_NAMES:
            raise PlanError(
                f"{field.name!r} is the name of a field of windows, which show='last' cannot show: "
                "rename it with .map(..., into=...), or say settled=True"
            )
    name, row = f"{node.name}{LAST}", node.fields_out
    path = f"{node.node_key}/{name}"
    return LastTable(name, node.name, "", node.key, None, (), (), row, row, path, node.name)
