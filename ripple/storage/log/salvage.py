"""Salvage of readable records from an intact frame with invalid content.

An older release accepted text that is not UTF-8. The checksums are right, so no copy is better: the
invalid records are lost, or all of the frame where they cannot be separated, and reading continues
after it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.batch import RAW_BYTES_MAX, Rejected
from ripple.storage.log.frame import FrameError

if TYPE_CHECKING:
    from ripple.storage.log.frame import Header

UNREADABLE = "its frame cannot be read"


def salvaged(
    body: memoryview, columns: pa.Schema, header: Header, error: FrameError
) -> tuple[pa.RecordBatch, tuple[Rejected, ...]]:
    """Return the readable records, and one Rejected for each of the others.

    error: why the body as a whole is unreadable. Raises FrameError when its columns are not the
    topic's: the file belongs to another topic.
    """
    why: Exception = error
    is_ours = True
    try:
        with pa.ipc.open_stream(pa.py_buffer(bytes(body))) as stream:
            is_ours = stream.schema.equals(columns)
            if is_ours:
                return _without_ill_formed(stream.read_next_batch(), header)
    except Exception as again:  # Arrow's errors for malformed bytes have no common root
        why = again
    if not is_ours:
        raise error
    return lost(columns, header, f"{UNREADABLE}: {why}")


def lost(
    columns: pa.Schema, header: Header, reason: str
) -> tuple[pa.RecordBatch, tuple[Rejected, ...]]:
    """Return no records, and a Rejected for each of the frame's."""
    offsets = range(header.first_offset, header.next_offset)
    empty = pa.RecordBatch.from_pylist([], schema=columns)
    return empty, tuple(Rejected(offset, None, reason, b"") for offset in offsets)


def _without_ill_formed(
    records: pa.RecordBatch, header: Header
) -> tuple[pa.RecordBatch, tuple[Rejected, ...]]:
    """Leave out the rows with text that is not UTF-8; raises for anything else."""
    if records.num_rows != header.record_count:
        raise FrameError(f"{records.num_rows} records where the header says {header.record_count}")
    columns = {}
    reasons: dict[int, str] = {}
    for field, column in zip(records.schema, records.columns, strict=True):
        if kinds.is_string(column.type):
            column = column.view(pa.binary())  # noqa: PLW2901 - the same column, not yet claimed to be UTF-8
            for row in _ill_formed_rows(column):
                reasons.setdefault(row, f"{field.name} is not valid UTF-8")
        column.validate(full=True)
        columns[field.name] = column
    is_good = np.ones(records.num_rows, np.bool_)
    is_good[list(reasons)] = False
    kept = records.filter(pa.array(is_good))
    kept.validate(full=True)
    rejected = tuple(
        Rejected(header.first_offset + row, None, reasons[row], _raw(columns, row))
        for row in sorted(reasons)
    )
    return kept, rejected


def _ill_formed_rows(texts: pa.BinaryArray) -> list[int]:
    texts.validate(full=True)
    return [row for row, text in enumerate(texts.to_pylist()) if not _is_well_formed(text)]


def _is_well_formed(text: bytes | None) -> bool:
    try:
        (text or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _raw(columns: dict[str, pa.Array], row: int) -> bytes:
    """Return a row as JSON; text that is not UTF-8 keeps its bytes."""
    values = {name: column[row].as_py() for name, column in columns.items()}
    shown: dict[str, Any] = {
        name: value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
        for name, value in values.items()
    }
    text = json.dumps(shown, ensure_ascii=False, default=str)
    return text.encode("utf-8", "surrogateescape")[:RAW_BYTES_MAX]
