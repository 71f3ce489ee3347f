"""The table of the rows of a join or a scan from their reading on, until they are final."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import check_result_field
from ripple.model.pipeline.nodes import WINDOW_FIELD_NAMES, RowTable

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import AsofJoin, Fields, IntervalJoin, StepScan


def row_table(
    node: AsofJoin | IntervalJoin | StepScan, key: Fields, eager: str, final: str
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
    name, row = f"{node.name}.rows", (*key, *node.fields_out)
    path = f"{node.node_key}/{name}"
    return RowTable(name, node.name, "", key, None, (), (), row, node.fields_out, path, node.name)
