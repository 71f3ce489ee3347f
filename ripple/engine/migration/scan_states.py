"""States of a scan made from former ones: by their fields' names, or by a user's function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ripple.engine.migration.migration import called, refuse_nulls, wrong
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.rows import made_by
from ripple.engine.snapshots.internal import internal
from ripple.model.pipeline.nodes import type_of
from ripple.model.schema.types import Option
from ripple.model.window.watermark import EVENT_TIME_NS_MAX

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import Migration
    from ripple.model.pipeline.waiting_nodes import StepScan

_OF_STATE = internal("state.")
_LAST = internal("last")
_BEGINS_WITH = {PLACE: 0, internal("fired"): 0, _LAST: False}
"""Columns of timers and of the last row, of states without one so far."""


def migrated_states(
    scan: StepScan, migration: Migration, old: pa.Table, layout: pa.Schema
) -> pa.Table:
    """Return the states of ``scan`` made from ``old``, in the columns of ``layout``.

    A column that is missing has the default of its field; without a function one of a field that
    is gone is left out. Raises MigrationError.
    """
    made = old if migration.function is None else called(scan, migration, old)
    unknown = [name for name in made.column_names if name not in layout.names]
    if migration.function is not None and unknown:
        raise wrong(scan, f"the state has no column {unknown[0]!r}: leave it out")
    twice = [name for name in layout.names if made.column_names.count(name) > 1]
    if twice:
        raise wrong(scan, f"column {twice[0]!r} is there twice")
    first = {
        f"{_OF_STATE}{field.name}": value
        for field, value in zip(scan.state_fields, scan.initial, strict=True)
    }
    columns = [_column(scan, made, field, first | _BEGINS_WITH) for field in layout]
    found = pa.Table.from_arrays(columns, schema=layout)
    keys = [field.name for field in scan.key]
    refuse_nulls(scan, found, [*keys, TIME])
    required = [one.name for one in scan.state_fields if not isinstance(type_of(one), Option)]
    refuse_nulls(scan, found, [f"{_OF_STATE}{name}" for name in required])
    for name, _ in scan.timers:
        of = f"{_OF_STATE}{name}"
        # Not pc.abs: it overflows.
        bounds = pc.min_max(found.column(of)).as_py()
        if any(abs(one or 0) > EVENT_TIME_NS_MAX for one in bounds.values()):
            raise wrong(scan, f"column {of!r} has a time at which no event is: write null for none")
    if scan.is_last:
        made_fields = [one.name for one in made_by(scan) if not isinstance(type_of(one), Option)]
        has_last = found.column(_LAST)
        refuse_nulls(scan, found, [f"{_LAST}.{name}" for name in made_fields], has_last)
    if found.group_by(keys).aggregate([]).num_rows != found.num_rows:
        raise wrong(scan, f"each key ({', '.join(keys)}) must have one row")
    return found.combine_chunks()


def _column(
    scan: StepScan, made: pa.Table, field: pa.Field, first: dict[str, Any]
) -> pa.ChunkedArray:
    """Return a column of a type, if it fits there without a loss. Raises MigrationError."""
    name = field.name
    if name in made.column_names:
        column = made.column(name)
    elif name in first or name.startswith(f"{_LAST}."):
        value, count = pa.scalar(first.get(name), field.type), len(made)
        # Arrow repeats no list 0 times.
        column = pa.chunked_array([pa.repeat(value, count)] if count else [], field.type)
    else:
        raise wrong(scan, f"column {name!r} is missing: return it from a function")
    if column.type != field.type:
        if not _widens(column.type, field.type):
            raise wrong(
                scan,
                f"column {name!r} must be {field.type}, not {column.type}: cast it in a function",
            )
        try:
            column = pc.cast(column, field.type)
        except pa.ArrowInvalid as error:
            raise wrong(scan, f"column {name!r}: {error}") from error
    return column


def _widens(was: pa.DataType, of: pa.DataType) -> bool:
    """Return whether each number of a type has an equal one in another, or the cast says so."""
    return bool(pa.types.is_integer(was) and pa.types.is_floating(of))
