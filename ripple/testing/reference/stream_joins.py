"""The reference of joins of streams: each row of one side beside each row of the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.testing.reference.interpreter import END_NS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ripple.model.pipeline.waiting_nodes import AsofJoin, IntervalJoin
    from ripple.testing.reference.held import Held
    from ripple.testing.reference.steps import Row


def matched(node: AsofJoin, row: Held, others: Sequence[Held]) -> Row | None:
    """Return a row of the left side with its match so far; None without one, if inner.

    others: all rows of the right side, in their order.
    """
    matches = [other for other in others if _is_same_key(row, other) and _counts(node, row, other)]
    best = _best(node, row, matches)
    if best is not None and node.deleted is not None and best.row[node.deleted.name]:
        best = None
    if best is None and node.how == "inner":
        return None
    return row.row | added(node, {} if best is None else best.row)


def added(node: AsofJoin | IntervalJoin, match: Mapping[str, Any]) -> Row:
    """Return the fields of a match under the names of the result; null without one, {}."""
    pairs = zip(node.added, node.right_fields, strict=True)
    return {one.name: match.get(of.name) for one, of in pairs}


def is_certain(node: AsofJoin, time_ns: int, ends: Sequence[int | None]) -> bool:
    """Return whether no row that still comes, of either side, can come before or match better."""
    left_ns, right_ns = (END_NS if end is None else end for end in ends)
    if node.strategy == "backward":
        return left_ns > time_ns and right_ns + node.is_strict > time_ns
    return left_ns > time_ns and (
        right_ns == END_NS or right_ns > time_ns + (node.tolerance_ns or 0)
    )


def is_pair(node: IntervalJoin, row: Held, other: Held) -> bool:
    """Return whether a row of the left side and one of the right are partners."""
    is_near = node.lo_ns <= other.time_ns - row.time_ns <= node.hi_ns
    return is_near and _is_same_key(row, other)


def right_alone(node: IntervalJoin, row: Held) -> Held:
    """Return a row of the right side as one of the result, without one of the left side."""
    alone: Row = {one.name: None for one in node.left_fields}
    alone |= {mine.name: row.row[theirs.name] for mine, theirs in node.on}
    return replace(row, row=alone | added(node, row.row))


def _is_same_key(row: Held, other: Held) -> bool:
    return row.key == other.key and None not in row.key


def _counts(node: AsofJoin, row: Held, other: Held) -> bool:
    """Return whether a row of the right side counts at the time of one of the left."""
    behind_ns = row.time_ns - other.time_ns
    if node.is_strict and not behind_ns:
        return False
    if node.tolerance_ns is not None and abs(behind_ns) > node.tolerance_ns:
        return False
    return {"backward": behind_ns >= 0, "forward": behind_ns <= 0, "nearest": True}[node.strategy]


def _best(node: AsofJoin, row: Held, matches: Sequence[Held]) -> Held | None:
    """Return the one of the matches, which are in their order, None if there are none."""
    before = [one for one in matches if one.time_ns <= row.time_ns]
    after = [one for one in matches if one.time_ns >= row.time_ns]
    if node.strategy == "forward":
        return after[0] if after else None
    if node.strategy == "backward" or not after:
        return before[-1] if before else None
    if not before or after[0].time_ns - row.time_ns < row.time_ns - before[-1].time_ns:
        return after[0]
    return before[-1]
