"""Outputs at ``s3://BUCKET/PATH``; the format follows from the name, as for local files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.contract import is_sink
from ripple.connectors.files.parquet.opening import continue_parts, look_at_parts, reached_parts
from ripple.connectors.registry import of_written_file
from ripple.core.errors import OutputError

if TYPE_CHECKING:
    from ripple.connectors.connector import Writing
    from ripple.connectors.contract import Commit, Sink


def open_sink(path: str, writing: Writing) -> Sink:
    """Return the sink of an object; raises OutputError."""
    sink: Sink = of_written_file(f"s3:{path}").opened(writing, is_sink)
    return sink


def continue_sink(path: str, writing: Writing) -> Sink:
    """Return the sink of a folder of Parquet files; raises as ``continue_parts`` does."""
    return continue_parts(_folder(path), writing)


def look(path: str, writing: Writing) -> int:
    """Raise as ``continue_sink`` does, with nothing changed; no owner of a folder has an epoch."""
    return look_at_parts(_folder(path), writing)


def reached(path: str, writing: Writing) -> Commit | None:
    """Return the last commit of a folder, None without one; raises as ``continue_sink`` does."""
    return reached_parts(_folder(path), writing)


def _folder(path: str) -> str:
    address = f"s3:{path}"
    if not address.rstrip("/").endswith(".parquet"):
        raise OutputError(
            f"cannot write {address} so that a restart continues it: in S3 that is a folder of "
            f"Parquet files; name one that ends in .parquet, or write parquet:{address}"
        )
    return address
