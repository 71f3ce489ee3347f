"""Operations of rows of changes: the column ``op``, and its codes.

Changes are a record batch of the key, ``op`` (int8), and the values.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

OP = "op"
"""The column's name: no field of a result row may be called so."""

OP_SET, OP_PATCH, OP_REMOVE, OP_FINAL = 0, 1, 2, 3
"""Final is a Set that is not repeated: the row never changes again, and leaves its table."""

OP_NAMES = ("set", "patch", "remove", "final")


def place_of_op(schema: pa.Schema) -> int:
    """Return which column holds the operations, -1 if none does: then each row is a Set."""
    at: int = schema.get_field_index(OP)
    return at if at >= 0 and schema.field(at).type == pa.int8() else -1


def op_first(changes: pa.RecordBatch) -> pa.RecordBatch:
    """Return the changes with ``op``, if they have it, as the first column: as it is written."""
    at = place_of_op(changes.schema)
    if at <= 0:
        return changes
    return changes.select([at, *(i for i in range(changes.num_columns) if i != at)])


def with_named_ops(changes: pa.RecordBatch) -> pa.RecordBatch:
    """Return the changes with ``op`` as text, one of OP_NAMES, as the first column."""
    if place_of_op(changes.schema) < 0:
        op, rows = pa.array(np.zeros(changes.num_rows, np.int8)), changes.columns
        names = changes.schema.names
    else:
        op, *rows = op_first(changes).columns
        names = op_first(changes).schema.names[1:]
    # Built here: pa.array of Python values imports pandas where that is installed.
    return pa.RecordBatch.from_arrays([pa.array(OP_NAMES).take(op), *rows], [OP, *names])
