"""Records that came as mappings, one by one, brought into columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.python_values import as_texts, column_of, values_at, word_of
from ripple.connectors.record_shape import arrow_schema_of
from ripple.connectors.validation import screened

if TYPE_CHECKING:
    from ripple.connectors.record_shape import RecordShape
    from ripple.connectors.validation import Shown
    from ripple.model.batch import Batch

_IS_OF: dict[pa.DataType, Callable[[Any], bool]] = {
    pa.string(): lambda value: isinstance(value, str),
    pa.int64(): lambda value: isinstance(value, int) and not isinstance(value, bool),
    pa.float64(): lambda value: isinstance(value, (float, int)) and not isinstance(value, bool),
    pa.bool_(): lambda value: isinstance(value, bool),
}


def batch_of_rows(
    rows: Sequence[Mapping[str, Any]], refused: dict[int, str], shape: RecordShape, shown: Shown
) -> Batch:
    """Return rows as a batch, with their numbers as offsets.

    refused: rows that are rejected already, which are empty here. A value of another type than its
    field's rejects its record, as in lines of JSON.
    """
    schema = arrow_schema_of(shape.schema.fields)
    columns = []
    for field in schema:
        values, astray = values_at(rows, field.name, shape.paths)
        for number, path in astray.items():
            refused.setdefault(number, f"{path} is not a record")
        kind = shape.logical.get(field.name)
        values = values if kind is None else as_texts(values, kind)
        is_of = _IS_OF[field.type]
        for number, value in enumerate(values):
            if value is not None and not is_of(value):
                values[number] = None
                refused.setdefault(number, f"{field.name} is not {word_of(field.type, kind)}")
        column, lost = column_of(values, field)
        columns.append(column)
        for number, phrase in lost.items():
            refused.setdefault(number, f"{field.name} {phrase}")
    records = pa.RecordBatch.from_arrays(columns, schema.names)
    return screened(records, shape, 0, refused, shown)
