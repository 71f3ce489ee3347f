"""Rows that are given to an engine by hand, as one batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.arguments import shown
from ripple.core.errors import InputError
from ripple.model.records.members import field_names, is_record_class

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import SourceSpec

_NO_ARROW = (pa.ArrowException, TypeError, ValueError, OverflowError)


def batch_of(given: Any, source: SourceSpec) -> pa.RecordBatch:
    """Return a table, a frame, a row or a list of rows as one batch, in types of its own.

    A row is a mapping or an instance of a record class. Raises InputError for anything else.
    """
    if isinstance(given, pa.RecordBatch):
        return given
    try:
        if hasattr(given, "__arrow_c_stream__"):
            table = pa.RecordBatchReader.from_stream(given).read_all()
        else:
            rows = given if isinstance(given, (list, tuple)) else [given]
            names = [one.name.partition(".")[0] for one in source.fields_taken]
            table = _table_of([_row_of(row, source) for row in rows], names)
            if not table.num_columns:
                listed = ", ".join(dict.fromkeys(names))
                raise _no_rows(source, f"{shown(given)}, which has none of the fields {listed}")
    except _NO_ARROW as error:
        raise _no_rows(source, f"{shown(given)}: {error}") from error
    return pa.RecordBatch.from_struct_array(table.to_struct_array().combine_chunks())


def _row_of(row: Any, source: SourceSpec) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if is_record_class(type(row)):
        return {name: getattr(row, name) for name in field_names(type(row))}
    raise _no_rows(source, shown(row))


def _table_of(rows: list[Mapping[str, Any]], names: list[str]) -> pa.Table:
    """Return the columns of rows that a source takes; one that no row has is absent."""
    there = [name for name in dict.fromkeys(names) if not rows or any(name in row for row in rows)]
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in there})


def _no_rows(source: SourceSpec, what: str) -> InputError:
    return InputError(
        f"source {source.name!r}: apply takes a row as a dict or an instance of a record class, a "
        f"list of rows, or a table or a frame of Arrow, not {what}"
    )
