"""Opens files and streams for changes as lines."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from ripple.connectors.files.csv.dialect import parsed
from ripple.connectors.files.csv.format import PLAIN
from ripple.connectors.files.remote.address import is_remote
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.files.text.file import FileSink, look_at
from ripple.connectors.files.text.sink import TextFormat, TextSink, json_of
from ripple.connectors.files.text.uses import COMPRESSED
from ripple.connectors.registry import is_stream
from ripple.connectors.target import open_target
from ripple.core.errors import InputError, OutputError
from ripple.core.row_ops import OP
from ripple.world.live_disk import LiveDisk

if TYPE_CHECKING:
    from ripple.connectors.connector import Writing
    from ripple.connectors.contract import Sink


def open_csv(path: str, writing: Writing) -> TextSink:
    """Return the sink of CSV; raises OutputError."""
    return _open(*_csv(path, writing), writing)


def open_json(path: str, writing: Writing) -> TextSink:
    """Return the sink of JSON lines; raises OutputError."""
    return _open(path, json_of(writing.output), writing)


def continue_csv(path: str, writing: Writing) -> Sink:
    """Return the sink of CSV, continued where it is a file; raises as FileSink does."""
    return _continue(*_csv(path, writing), writing)


def continue_json(path: str, writing: Writing) -> Sink:
    """Return the sink of JSON lines, continued where it is a file; raises as FileSink does."""
    return _continue(path, json_of(writing.output), writing)


def look_csv(path: str, writing: Writing) -> int:
    """Raise as ``continue_csv`` does, with nothing changed; no owner of a file has an epoch."""
    return _look(*_csv(path, writing), writing)


def look_json(path: str, writing: Writing) -> int:
    """Raise as ``continue_json`` does, with nothing changed; see ``look_csv``."""
    return _look(path, json_of(writing.output), writing)


def _csv(text: str, writing: Writing) -> tuple[str, TextFormat]:
    """Return the path and the form; of the options of CSV, outputs have one. Raises OutputError.

    A file begins with the names of its columns unless told otherwise, a stream does not: its
    reader has often begun before.
    """
    try:
        path, options = parsed(text)
        is_plain = options.dialect(path) == PLAIN and options.comments is None
    except InputError as error:
        raise OutputError(str(error)) from None
    if not is_plain:
        raise OutputError(f"{text}: CSV is written in one form: of the options it takes header")
    header = writing.header if options.header is None else options.header
    return path, TextFormat("csv", header=not is_stream(path) if header is None else header)


def _open(path: str, text_format: TextFormat, writing: Writing) -> TextSink:
    _check_name(path)
    names = [member.name for member in writing.output.fields]
    return TextSink(open_target(path), text_format, names)


def _continue(path: str, text_format: TextFormat, writing: Writing) -> Sink:
    _check_local(path)
    if is_stream(path):
        return _open(path, text_format, writing)
    _check_name(path)
    file, owner, columns = _file(path, text_format, writing)
    try:
        disk = LiveDisk(file.parent, make=False)
        return FileSink(disk, file.name, text_format, owner, columns, name=path)
    except FileNotFoundError as error:
        raise OutputError(f"cannot write {path}: there is no folder {file.parent}") from error


def _look(path: str, text_format: TextFormat, writing: Writing) -> int:
    _check_local(path)
    if not is_stream(path):
        _check_name(path)
        file, owner, columns = _file(path, text_format, writing)
        disk = LiveDisk(file.parent, make=False)
        if not disk.exists(""):
            raise OutputError(f"cannot write {path}: there is no folder {file.parent}")
        look_at(disk, file.name, owner, columns, path)
    return 0


def _file(
    path: str, text_format: TextFormat, writing: Writing
) -> tuple[PurePath, Owner, list[str]]:
    """Return the file, its owner, and its columns."""
    columns = [OP] if text_format.removes == "mark" else []
    columns += [member.name for member in writing.output.fields]
    return PurePath(path), Owner(writing.plan.name, writing.output.name), columns


def _check_local(path: str) -> None:
    if is_remote(path):
        raise OutputError(
            f"cannot write {path} as text so that a restart continues it: an object of S3 cannot "
            "be continued. Write a folder of Parquet files, parquet:s3://BUCKET/FOLDER"
        )


def _check_name(path: str) -> None:
    if path.endswith(COMPRESSED):
        raise OutputError(f"cannot write {path}: it would be read as compressed, and it is not")
