"""What a row of changes does to its key: the one set of codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

OP_SET, OP_PATCH, OP_REMOVE, OP_FINAL = 0, 1, 2, 3
"""Final is a Set that is not repeated: the row never changes again, and leaves its table."""

OP_NAMES = ("set", "patch", "remove", "final")


def split_op(changes: pa.RecordBatch) -> tuple[pa.Array | None, pa.RecordBatch]:
    """Separate the leading ``op`` column, if there is one, from the row columns."""
    schema = changes.schema
    if not len(schema) or schema.field(0).name != "op" or schema.field(0).type != pa.int8():
        return None, changes
    return changes.column(0), changes.select(range(1, len(schema)))


def with_named_ops(changes: pa.RecordBatch) -> pa.RecordBatch:
    """Return the changes with ``op`` as text, one of OP_NAMES, as the first column."""
    op, rows = split_op(changes)
    op = pa.array(np.zeros(rows.num_rows, np.int8)) if op is None else op
    # Built here: pa.array of Python values imports pandas where that is installed.
    names = pa.array(OP_NAMES).take(op)
    return pa.RecordBatch.from_arrays([names, *rows.columns], ["op", *rows.schema.names])
