"""Answers to rows as Arrow has them, an entry of a log of answers each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.engine.kernels.columns import Columns
from ripple.engine.operators.answer_names import INDEX, INPUT, OFFSET, REASON
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.uncomputable import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.model.pipeline.waiting_nodes import Ask

    Ints = npt.NDArray[np.int64]

ANSWER_BYTES_MAX = 1 << 20


class Identity(NamedTuple):
    """The identity of an asked row: its input, its offset there, its number in its record."""

    input: str
    offset: int
    number: int


class Outcome(NamedTuple):
    """The end of the calls for a row: the function's result, or the reason why there is none."""

    row: Identity
    returned: Any
    failure: str = ""


def answer_schema(ask: Ask) -> pa.Schema:
    """Return the schema of answers: the identity of the row, the fields, or a reason."""
    own = [(INPUT, pa.string()), (OFFSET, pa.int64()), (INDEX, pa.int64()), (REASON, pa.string())]
    return pa.schema([*(pa.field(*one) for one in own), *arrow_fields(ask.schema.fields)])


def answer_rows(ask: Ask, outcomes: Sequence[Outcome]) -> pa.RecordBatch:
    """Return outcomes as answers; a result unlike ``ask.schema``, or too large, is a failure."""
    reasons = {at: one.failure for at, one in enumerate(outcomes) if one.failure}
    returned = [one.returned for one in outcomes]
    rows = Rows(Columns({}), len(outcomes), None)
    rows.reject(reasons, ask.name)
    rows.take_returned(ask, [one for at, one in enumerate(returned) if at not in reasons])
    fields = arrow_fields(ask.schema.fields)
    columns = [arrow_column(rows.columns[field.name], field.type) for field in fields]
    large = np.flatnonzero(_sizes(columns, rows.count) > ANSWER_BYTES_MAX)
    too_large = f"the answer has more than {ANSWER_BYTES_MAX} bytes"
    refused = {bad.row: bad.reason for bad in rows.rejected}
    refused |= dict.fromkeys(rows.origins[large].tolist(), too_large)
    source = np.full(len(outcomes), -1)
    source[rows.origins] = np.arange(rows.count)
    source[list(refused)] = -1
    taken = pa.array(source, mask=source < 0)
    identities = zip(*(one.row for one in outcomes), strict=True) if outcomes else ((), (), ())
    why = [
        Failure.of("", refused[at]).reason if at in refused else None for at in range(len(source))
    ]
    own = (*identities, why)
    schema = answer_schema(ask)
    arrays = [pa.array(one, schema.field(at).type) for at, one in enumerate(own)]
    return pa.RecordBatch.from_arrays(
        [*arrays, *(one.take(taken) for one in columns)], schema=schema
    )


def _sizes(columns: Sequence[pa.Array], count: int) -> Ints:
    """Return the bytes of each row, as far as texts and lists make them many."""
    sizes = np.zeros(count, np.int64)
    for column in columns:
        if pa.types.is_string(column.type):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    return sizes
