"""The checks of CSV records, for records that arrive as columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.connectors.base import RAW_BYTES_MAX, Batch, Rejected
from ripple.connectors.record_shape import value_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.record_shape import RecordShape
    from ripple.schema.types import Field


def screened(records: pa.RecordBatch, shape: RecordShape, first_offset: int) -> Batch:
    """Reject the rows that break ``shape``, and deliver the wanted columns of the others.

    ``records`` has columns of the declared Arrow types. As with CSV, fields are judged in schema
    order and the first thing wrong is the reason; ``raw`` is the row as JSON.
    """
    next_offset = first_offset + records.num_rows
    verdicts = np.zeros(records.num_rows, np.int16)
    reasons = [""]
    for member in shape.schema.fields:
        if member.name in records.schema.names:
            for reason, failed in _failures(records.column(member.name), member, shape):
                verdicts[failed & (verdicts == 0)] = len(reasons)
                reasons.append(f"{member.name} is {reason}")
    schema = shape.arrow_schema()
    wanted = pa.RecordBatch.from_arrays(
        [records.column(name) for name in schema.names], schema=schema
    )
    bad = np.flatnonzero(verdicts)
    if not len(bad):
        return Batch(wanted, next_offset)
    rows = records.take(pa.array(bad)).to_pylist()
    rejected = tuple(
        Rejected(first_offset + int(index), None, reasons[verdicts[index]], _raw(row))
        for index, row in zip(bad, rows, strict=True)
    )
    return Batch(wanted.filter(pa.array(verdicts == 0)), next_offset, rejected)


def _failures(
    column: pa.Array, member: Field, shape: RecordShape
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what may be wrong with a field, in the order of the CSV parser, and for which rows."""
    if not value_type(member)[1] and column.null_count:
        yield "empty", column.is_null().to_numpy(zero_copy_only=False)
    if member.name in shape.judges:
        yield from shape.judges[member.name].failing(column)


def _raw(row: dict[str, object]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()[:RAW_BYTES_MAX]
