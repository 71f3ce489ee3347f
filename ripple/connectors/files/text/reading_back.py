"""Reads a sink's lines of JSON back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.world.ports import File

READ_BYTES = 1 << 20


def rows_in(file: File, length: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield fields of the rows of a file's first bytes, which are whole lines.

    Raises OutputError.
    """
    left = b""
    for at in range(0, length, READ_BYTES):
        *lines, left = (left + file.read(at, min(READ_BYTES, length - at))).split(b"\n")
        if lines:
            yield _rows(lines, names)


def _rows(lines: list[bytes], names: Sequence[str]) -> pa.RecordBatch:
    try:
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return pa.record_batch({name: pa.array([row[name] for row in rows]) for name in names})
    except (ValueError, KeyError, OverflowError, pa.ArrowException) as error:
        raise OutputError(f"a line that was written cannot be read back: {error}") from error
