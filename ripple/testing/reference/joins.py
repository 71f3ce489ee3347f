"""The reference of joins: every row of one table beside every row of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.model.schema.types import TEXTS, Bool
from ripple.testing.reference.interpreter import View
from ripple.testing.reference.steps import FunctionFailed, RefusedRow, Row, run_steps

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import Fold, TableJoin
    from ripple.model.schema.types import Field
    from ripple.testing.reference.windows import Key


def joined_view(join: TableJoin, left: View, right: View) -> View:
    """Return the view of a join of two tables, by the definition in relational algebra."""
    found: list[tuple[Row | None, Row | None]] = []
    partners: set[Key] = set()
    for row in left.rows.values():
        matches = [key for key, theirs in right.rows.items() if _match(join, row, theirs)]
        partners.update(matches)
        found += [(row, right.rows[key]) for key in matches]
        if not matches and join.how in ("left", "full"):
            found.append((row, None))
    if join.how in ("right", "full"):
        found += [(None, theirs) for key, theirs in right.rows.items() if key not in partners]
    view = View()
    for mine, theirs in found:
        row = _beside(join, mine, theirs)
        key = tuple(row[field.name] for field in join.key)
        view.put(key, shown_row(join, row))
    return view


def shown_row(fold: Fold, row: Row) -> Row | RefusedRow | None:
    """Return a row after the steps; None if a filter drops it, or why it cannot be computed."""
    try:
        stepped = run_steps(fold.steps, row)
    except RefusedRow as refused:
        return refused
    except FunctionFailed as failed:
        return RefusedRow(failed.step, failed.reason)
    return stepped and {field.name: stepped[field.name] for field in fold.row}


def _match(join: TableJoin, mine: Row, theirs: Row) -> bool:
    """Return whether all fields are equal: null is equal to nothing."""
    pairs = [(mine[left], theirs[right]) for left, right in join.pairs]
    return all(one is not None and other is not None and one == other for one, other in pairs)


def _beside(join: TableJoin, mine: Row | None, theirs: Row | None) -> Row:
    """Return the fields of two rows: the key, the rest of the left, the rest of the right."""
    row: Row = {field.name: None for field in join.fields_in}
    for left, right in () if join.is_many else join.pairs:
        if theirs is not None and left in (field.name for field in join.key):
            row[left] = theirs[right]
    row |= mine or {}
    if theirs is not None:
        matched, key = join.hidden, [one.name for one in join.right_key]
        rest = [name for name in key if name not in matched]
        others = [name for name in theirs if name not in matched and name not in key]
        names = [field.name for field in join.fields_in]
        key_count = len(join.key) - join.has_sides
        places = names[key_count - len(rest) : key_count]
        places += names[len(names) - len(others) :]
        row |= {place: theirs[name] for place, name in zip(places, [*rest, *others], strict=True)}
    if join.has_sides:
        one = "left_only" if theirs is None else "right_only"
        row["sides"] = one if theirs is None or mine is None else "both"
        for field in join.key:
            if row[field.name] is None:  # of a missing row
                row[field.name] = _nothing(field)
    return row


def _nothing(field: Field) -> str | int | bool:
    """Return what the key of a row without a partner has for a field of the other side."""
    if isinstance(field.type, Bool):
        return False
    return "" if isinstance(field.type, TEXTS) else 0
