"""Changes as rows of Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import OutputError, SchemaError
from ripple.core.row_ops import with_named_ops
from ripple.model.schema.well_formed import check_text

if TYPE_CHECKING:
    import pyarrow as pa


def as_rows(changes: pa.RecordBatch, name: str, *, has_op: bool) -> pa.RecordBatch:
    """Return changes as they are written. Raises OutputError for text that is no UTF-8.

    name: of the output, for errors. has_op: whether a column of text, the first, names operations.
    """
    try:
        check_text(changes)
    except SchemaError as error:
        raise OutputError(f"cannot write {name}: {error}") from error
    return with_named_ops(changes) if has_op else changes
