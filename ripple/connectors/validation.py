"""Validation of records by their schema and declared checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.connectors.coercion import conformed
from ripple.connectors.raw_record import raw_of
from ripple.connectors.record_shape import value_type
from ripple.model.batch import Batch, Rejected
from ripple.model.schema.nested import with_leaves

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.connectors.record_shape import RecordShape
    from ripple.model.schema.types import Field

EMPTY = "empty"
# From a row to the line it was, None where there are no lines, and its raw bytes.
Shown = Callable[[int], tuple[int | None, bytes]]


def screened(
    records: pa.RecordBatch,
    shape: RecordShape,
    first_offset: int,
    refused: Mapping[int, str] | None = None,
    shown: Shown | None = None,
) -> Batch:
    """Reject the rows that break ``shape``, and deliver the wanted columns of the others.

    ``records`` has columns in types that ``check_columns`` takes; they are brought to the declared
    ones. refused: rows of which it is known that they are no records, and why. As with CSV, fields
    are judged in schema order and the first thing wrong is the reason; without ``shown``, ``raw``
    is the row as JSON.
    """
    next_offset = first_offset + records.num_rows
    records = with_leaves(records, shape.paths)
    verdicts = _Verdicts(records.num_rows)
    for row, reason in (refused or {}).items():
        verdicts.note(reason, row)
    columns: dict[str, pa.Array] = {}
    for member in shape.schema.fields:
        if member.name not in records.schema.names:
            continue
        column, lost, failed = conformed(
            records.column(member.name), value_type(member)[0], shape.logical.get(member.name)
        )
        columns[member.name] = column
        if failed is not None:
            verdicts.note(f"{member.name} {lost}", failed)
        for wrong, failed in _failures(column, member, shape):
            if wrong == EMPTY and "." in member.name:
                for record, missing in _records_without_values(member.name, records, failed):
                    verdicts.note(f"{record} is {EMPTY}", missing)
            verdicts.note(f"{member.name} is {wrong}", failed)
    schema = shape.arrow_schema()
    wanted = pa.RecordBatch.from_arrays(
        [
            columns[field.name] if field.name in columns else pa.nulls(records.num_rows, field.type)
            for field in schema
        ],
        schema=schema,
    )
    bad = verdicts.bad_rows()
    if not bad:
        return Batch(wanted, next_offset)
    if shown is None:
        shown = _rows_shown(records, shape)
    rejected = tuple(
        Rejected(first_offset + row, line_number, verdicts.reason(row), raw)
        for row in bad
        for line_number, raw in [shown(row)]
    )
    return Batch(wanted.filter(pa.array(verdicts.good())), next_offset, rejected)


def _records_without_values(
    path: str, records: pa.RecordBatch, failed: npt.NDArray[np.bool_]
) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Yield the records around a field, the outermost first, and in which rows each has nothing."""
    parts = path.split(".")
    for depth in range(1, len(parts)):
        record = ".".join(parts[:depth])
        missing = failed.copy()
        for name in records.schema.names:
            if name.startswith(f"{record}."):
                missing &= records.column(name).is_null().to_numpy(zero_copy_only=False)
        yield record, missing


class _Verdicts:
    """The first thing wrong with each row."""

    def __init__(self, rows: int) -> None:
        self._verdicts = np.zeros(rows, np.int32)
        self._reasons = {"": 0}

    def note(self, reason: str, failed: npt.NDArray[np.bool_] | int) -> None:
        """Note a reason for rows, or for one, that have none yet."""
        verdict = self._reasons.setdefault(reason, len(self._reasons))
        if isinstance(failed, int):
            self._verdicts[failed] = self._verdicts[failed] or verdict
        else:
            self._verdicts[failed & (self._verdicts == 0)] = verdict

    def bad_rows(self) -> list[int]:
        return list(np.flatnonzero(self._verdicts).tolist())

    def good(self) -> npt.NDArray[np.bool_]:
        good: npt.NDArray[np.bool_] = self._verdicts == 0
        return good

    def reason(self, row: int) -> str:
        return list(self._reasons)[int(self._verdicts[row])]


def _rows_shown(records: pa.RecordBatch, shape: RecordShape) -> Shown:
    """Show rows as they came, each wanted field and the judged ones.

    Fields of logical types have stored values here: a topic's.
    """
    delivered = {member.name for member in shape.delivered()}
    columns = {
        member.name: records.column(member.name)
        if member.name in records.schema.names
        else pa.nulls(records.num_rows)
        for member in shape.schema.fields
        if member.name in records.schema.names or member.name in delivered
    }
    rows = pa.RecordBatch.from_pydict(columns)
    return lambda row: (None, raw_of(rows, row, shape.schema.fields))


def _failures(
    column: pa.Array, member: Field, shape: RecordShape
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield possible reasons against a field, in the order of the CSV parser, with their rows."""
    if not value_type(member)[1] and column.null_count:
        yield EMPTY, column.is_null().to_numpy(zero_copy_only=False)
    if member.name in shape.judges:
        yield from shape.judges[member.name].failing(column)
