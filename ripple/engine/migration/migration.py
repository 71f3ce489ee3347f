"""State made by a user's function: called once, and checked against the fold's own form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.errors import RippleError
from ripple.engine.operators.windowed_fold import FAILED
from ripple.engine.snapshots.internal import internal
from ripple.model.pipeline.waiting_nodes import StepScan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.model.pipeline.nodes import Fold, Migration


class MigrationError(RippleError):
    """A migration did not return a state that its fold can have; names fold and column."""


def migrated(fold: Fold, migration: Migration, old: pa.Table, layout: pa.Schema) -> pa.Table:
    """Return the state of ``fold`` made from ``old``, in the columns of ``layout``.

    Raises MigrationError when the function fails, or returns anything else than a table with
    these columns and types, in any order, and one row per key.
    """
    made = called(fold, migration, old)
    missing = [name for name in layout.names if name not in made.column_names]
    unknown = [name for name in made.column_names if name not in layout.names]
    twice = [name for name in layout.names if made.column_names.count(name) > 1]
    if missing or unknown or twice:
        raise wrong(
            fold,
            f"the columns must be {', '.join(layout.names)}, each once; missing: "
            f"{', '.join(missing) or 'none'}; too many: {', '.join(unknown + twice) or 'none'}",
        )
    made = made.select(layout.names)
    for field in layout:
        seen = made.schema.field(field.name).type
        if seen != field.type:
            raise wrong(fold, f"column {field.name!r} must be {field.type}, not {seen}")
    try:
        made.validate(full=True)
    except pa.ArrowInvalid as error:
        raise wrong(fold, f"the table is not valid: {error}") from error
    _check_keys(fold, made)
    return made.combine_chunks()


def called(node: Fold | StepScan, migration: Migration, old: pa.Table) -> pa.Table:
    """Return the table that a migration's function makes. Raises MigrationError."""
    assert migration.function is not None, "of a fold there is one"
    try:
        made: Any = migration.function(old)
    except (Exception, SystemExit) as error:  # any error of a user's function
        raise wrong(node, f"the function raised {type(error).__name__}: {error}") from error
    if not isinstance(made, pa.Table):
        raise wrong(node, f"the function must return a pyarrow.Table, not {type(made).__name__}")
    return made


def _check_keys(fold: Fold, made: pa.Table) -> None:
    keys = [name for name in fold.identity if name != "window_end_ns"]
    own = map(internal, ("members", "elements", "shown", "unshown"))
    whole = {*fold.identity, *own} & {*made.column_names}
    refuse_nulls(fold, made, sorted(whole))
    rows = made.group_by(keys).aggregate([]).num_rows if keys else min(made.num_rows, 1)
    if rows != made.num_rows:
        raise wrong(
            fold,
            f"each key ({', '.join(keys) or 'one total'}) must have one row, but "
            f"{made.num_rows} rows have {rows} keys",
        )


def refuse_nulls(
    node: Fold | StepScan,
    made: pa.Table,
    names: Iterable[str],
    where: pa.ChunkedArray | None = None,
) -> None:
    """Raise MigrationError for a null in one of these columns, of rows where ``where`` is true."""
    for name in names:
        of = made.column(name) if where is None else made.column(name).filter(where)
        if of.null_count:
            raise wrong(node, f"column {name!r} must have no nulls, and has {of.null_count}")


def check_accepted(fold: Fold, made: pa.Table, loaded: pa.Table) -> None:
    """Raise MigrationError unless ``loaded``, the fold's dump after it took ``made``, fits."""
    for name in made.column_names:
        if name in FAILED or name.startswith(internal("shown")):
            continue  # of a window that has ended, these are made anew
        seen, own = made.column(name).null_count, loaded.column(name).null_count
        if seen != own:
            raise wrong(fold, f"column {name!r} has {seen} nulls where {own} may be")
    # The end of a window follows from its start, except with sessions, which have both.
    if fold.window is not None:
        order = [(name, "ascending") for name in fold.identity]
        ends = [table.sort_by(order).column("window_end_ns") for table in (made, loaded)]
        if not ends[0].equals(ends[1]):
            raise wrong(fold, "column 'window_end_ns' does not go with 'window_start_ns'")


def wrong(node: Fold | StepScan, text: str) -> MigrationError:
    """Return an error that names the fold or scan."""
    kind = "scan" if isinstance(node, StepScan) else "fold"
    return MigrationError(f"migration of {kind} {node.name!r}: {text}")
