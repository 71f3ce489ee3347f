"""The reference of rows from their reading on: of all rows that ever came to a node, in order."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ripple.model.pipeline.nodes import FLAT_ROWS_MAX
from ripple.testing.reference.held import counted
from ripple.testing.reference.interpreter import View
from ripple.testing.reference.joins import shown_row
from ripple.testing.reference.scans import States, applied, applied_message, is_over
from ripple.testing.reference.steps import RefusedRow
from ripple.testing.reference.stream_joins import added, is_pair, matched, right_alone
from ripple.testing.reference.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.pipeline.nodes import LastTable, RowTable
    from ripple.model.pipeline.waiting_nodes import (
        AsofJoin,
        BookScan,
        IntervalJoin,
        Scan,
        StepScan,
    )
    from ripple.testing.reference.held import Held
    from ripple.testing.reference.steps import Row
    from ripple.testing.reference.windows import Key


def match_table(
    fold: RowTable, node: AsofJoin, left: Sequence[Held], right: Sequence[Held]
) -> View:
    """Return each row of the left side of a join, with its match so far."""
    view = View()
    for row in left:
        _put(view, fold, row.origin, matched(node, row, right))
    return view


def pair_table(
    fold: RowTable, node: IntervalJoin, left: Sequence[Held], right: Sequence[Held]
) -> View:
    """Return all pairs of rows of a join, and the rows without a partner."""
    near = [(row, other) for row in left for other in right if is_pair(node, row, other)]
    paired = [{id(pair[side]) for pair in near} for side in range(2)]
    made: list[tuple[Held | None, Held | None]] = list(near)
    if node.how in ("left", "full"):
        made += [(row, None) for row in left if id(row) not in paired[0]]
    if node.shows_right:
        made += [(None, row) for row in right if id(row) not in paired[1]]
    of = Counter(_record_of(*pair) for pair in made)
    view = View()
    for row, other in made:
        if of[_record_of(row, other)] > FLAT_ROWS_MAX:
            continue
        if row is None:
            assert other is not None
            joined = right_alone(node, other).row
        else:
            joined = added(node, {} if other is None else other.row) | row.row
        origins = [("", 0, 0) if one is None else one.origin for one in (row, other)]
        _put(view, fold, (*origins[0], *origins[1]), joined)
    return view


def scan_table(fold: RowTable, node: Scan, rows: Sequence[Held]) -> View:
    """Return the results of the rows of a scan."""
    view, states = View(), States()
    for row, values in counted(node, rows):
        made = applied(node, states, row.key, row.time_ns, values)
        if isinstance(made, RefusedRow):
            view.put(row.origin, RefusedRow(fold.name, made.reason))
        else:
            _put(view, fold, row.origin, made)
    return view


def timed_rows(
    fold: RowTable, node: StepScan, rows: Sequence[Held], reached_ns: int | None, *, has_ended: bool
) -> View:
    """Return the results of the rows of a scan, and of its timers up to a watermark.

    reached_ns: the watermark, for which the end of inputs is no time.
    """
    view, timers = View(), Timers(node)
    found = timers.before(counted(node, rows))
    if has_ended:
        found += timers.ended(reached_ns, None)
    elif reached_ns is not None:
        found += timers.take([], reached_ns, reached_ns)
    for row, made in found:
        if isinstance(made, RefusedRow):
            view.put(row.origin, RefusedRow(fold.name, made.reason))
        else:
            _put(view, fold, row.origin, made)
    return view


def book_table(fold: RowTable, node: BookScan, rows: Sequence[Held]) -> View:
    """Return the rows of the messages of a book."""
    view, states = View(), States()
    for row in rows:
        lost, shown = applied_message(node, states, row.key, row.time_ns, row.row)
        for made in shown:
            _put(view, fold, row.origin, made)
        if lost and not shown:
            view.put(row.origin, RefusedRow(fold.name, lost[0].reason))
    return view


def last_table(fold: LastTable, node: Scan, rows: Sequence[Held], mark_ns: int | None) -> View:
    """Return the newest result of each key with a lasting state.

    mark_ns: up to where rows are final, where the end of inputs is no time.
    """
    view, states = View(), States()
    for row, values in counted(node, rows):
        if row.key in states and is_over(node, states[row.key][0], row.time_ns):
            view.put(row.key, None)
        made = applied(node, states, row.key, row.time_ns, values)
        if made is not None and not isinstance(made, RefusedRow):
            view.put(row.key, shown_row(fold, made))
    for key, (last_ns, _) in states.items():
        if mark_ns is not None and is_over(node, last_ns, mark_ns):
            view.put(key, None)
    return view


def timed_table(
    fold: LastTable,
    node: StepScan,
    rows: Sequence[Held],
    reached_ns: int | None,
    mark_ns: int | None,
    *,
    has_ended: bool,
) -> View:
    """Return the newest result of each key, of its rows or of timers up to a watermark.

    reached_ns: the watermark, for which the end of inputs is no time. mark_ns: as for
    ``last_table``.
    """
    view, timers = View(), Timers(node)
    before: dict[Key, int] = {}
    found: list[tuple[Held, Row | RefusedRow | None]] = []
    for row, values in counted(node, rows):
        *called, made = timers.before([(row, values)])
        found += called
        if row.key in before and is_over(node, before[row.key], row.time_ns):
            found = [one for one in found if one[0].key != row.key]
        before[row.key] = row.time_ns
        found.append(made)
    if has_ended:
        found += timers.ended(reached_ns, mark_ns)
    elif reached_ns is not None:
        found += timers.take([], reached_ns, reached_ns)
    for row, result in found:
        if result is not None and not isinstance(result, RefusedRow):
            view.put(row.key, shown_row(fold, result))
    for key, last_ns in before.items():
        if mark_ns is not None and is_over(node, last_ns, mark_ns):
            view.put(key, None)
    return view


def _put(view: View, fold: RowTable, key: Key, made: Row | None) -> None:
    """Let a row be shown by its origins, after the steps; None for no row."""
    names = (field.name for field in fold.key)
    view.put(key, made and shown_row(fold, dict(zip(names, key, strict=True)) | made))


def _record_of(row: Held | None, other: Held | None) -> tuple[Any, ...]:
    """Return the record of a pair: its left row's, or an unmatched right row's."""
    one = row or other
    assert one is not None
    return one.time_ns, one.name, one.place[:3]
