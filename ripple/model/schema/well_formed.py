"""Text that is UTF-8, as every reader of it expects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.core.errors import SchemaError

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]


def ill_formed(text: pa.StringArray) -> Mask | None:
    """Return which rows are not UTF-8, None if all are. ``text`` has sound offsets."""
    if _is_ascii(text):
        return None
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return np.array([_is_ill_formed(value) for value in text.cast(pa.binary()).to_pylist()])
    return None


def check_text(records: pa.RecordBatch) -> None:
    """Raise SchemaError naming the first field that holds text, at any depth, that is not UTF-8."""
    for name, column in zip(records.schema.names, records.columns, strict=True):
        if column.type == pa.string():
            failed = ill_formed(column)
            if failed is not None and failed.any():
                raise SchemaError(f"field {name!r} of record {failed.argmax()} is not valid UTF-8")
            continue
        if kinds.is_floating(column.type) or kinds.is_integer(column.type):
            continue  # any bits are a number
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise SchemaError(f"field {name!r} cannot be kept: {error}") from error


def _is_ascii(text: pa.StringArray) -> bool:
    _, offsets, data = text.buffers()
    if data is None or not len(text):
        return True
    ends = np.frombuffer(offsets, np.int32)
    used = np.frombuffer(data, np.uint8)[ends[text.offset] : ends[text.offset + len(text)]]
    return bool(used.max(initial=0) < 0x80)


def _is_ill_formed(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return True
    return False
