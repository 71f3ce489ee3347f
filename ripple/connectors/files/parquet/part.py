"""One Parquet file of a folder that a restarted pipeline continues: its name, and its commit."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ripple.connectors.files.text.cut_record import CutRecord, Owner, from_json, to_json
from ripple.core.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Sequence

PART_BYTES_MAX = 1 << 30
PART_ROWS = 1 << 17
"""Of a full file, which the next commit does not replace."""
PART = re.compile(r"part-(\d{12})\.parquet")
_KEY = b"ripple.commit"
_GROUP_ROWS = 1 << 17


def named(part: int) -> str:
    """Return the name of a file, by its number from 1."""
    return f"part-{part:012d}.parquet"


def encoded(rows: pa.Table, record: CutRecord) -> pa.Buffer:
    """Return a file with rows, and the commit that they reach."""
    told = {
        "number": record.end,
        **record.owner._asdict(),
        "columns": record.columns,
        "reached": to_json(record.reached),
    }
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, compression="zstd") as writer:
        writer.write_table(rows, row_group_size=_GROUP_ROWS)
        writer.add_key_value_metadata({_KEY: json.dumps(told, sort_keys=True).encode()})
    return sink.getvalue()


def parsed(data: bytes, name: str) -> pq.ParquetFile:
    """Return a file; raises OutputError, which names it."""
    try:
        return pq.ParquetFile(pa.BufferReader(data))
    except pa.ArrowInvalid as error:
        first = str(error).partition("\n")[0]
        raise OutputError(f"{name} cannot be read: {first}: restore it from a copy") from error


def record_in(file: pq.ParquetFile, name: str) -> CutRecord:
    """Return the commit of a file; raises OutputError for one of others. name: of the folder."""
    told = (file.metadata.metadata or {}).get(_KEY)
    if told is None:
        raise OutputError(f"{name} holds Parquet files that are not of this output: name another")
    held: dict[str, Any] = json.loads(told)
    owner = Owner(held["pipeline"], held["output"])
    return CutRecord(owner, tuple(held["columns"]), from_json(held["reached"]), held["number"])


def check_whole(parts: Sequence[int], name: str, way_out: str) -> None:
    """Raise OutputError unless these numbers, ascending, are those from 1 on."""
    for at, part in enumerate(parts, 1):
        if at != part:
            raise OutputError(f"{name}/{named(at)} is gone: {way_out}")


def too_large(name: str, length_bytes: int) -> OutputError:
    """Return the error for a commit with too many rows."""
    return OutputError(
        f"{name}: the rows of one commit take {length_bytes} bytes, more than {PART_BYTES_MAX}: "
        "commit more often, by --commit-interval"
    )
