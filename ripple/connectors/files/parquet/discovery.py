"""Discovery of the columns of a Parquet file."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq

from ripple.connectors.settings import Stream
from ripple.core.errors import InputError


def check(path: str) -> str:
    """Return the streams; raises InputError."""
    about = _metadata(path)
    return f"{about.num_rows} rows in {about.num_row_groups} groups, {about.num_columns} columns"


def discover(path: str) -> list[Stream]:
    """Return the file, with its columns; raises InputError."""
    return [Stream(f"parquet:{path}", _metadata(path).schema.to_arrow_schema())]


def _metadata(path: str) -> pq.FileMetaData:
    try:
        os.stat(path)  # the system's error text is shorter than Arrow's
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    try:
        return pq.read_metadata(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"cannot read {path}: {error}") from error
