"""From what a user writes after ``--source`` and ``--sink`` to a source and a sink."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple import log_place
from ripple.connectors.contract import is_sink, is_source
from ripple.connectors.csv.format import CsvFormat
from ripple.connectors.csv.source import CsvSource
from ripple.connectors.cutting import check_batch_rows
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.synthetic import SyntheticSource
from ripple.connectors.target import open_target
from ripple.connectors.text.sink import TextFormat, TextSink
from ripple.errors import InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ripple.connectors.contract import MarkedSource, Sink
    from ripple.pipeline.plan import Plan
    from ripple.schema.checks import Checks
    from ripple.schema.types import Schema
    from ripple.world.ports import Clock, Disk

SOURCE_FORMS = (
    "a .csv or .jsonl file (also .gz, .zst), a .parquet file, a pipe with CSV, -, "
    f"{log_place.FORM} or synthetic:N"
)
SOURCE_OBJECTS = (
    "a path, -, log:DIR/TOPIC, synthetic:N, an Arrow table, a data frame, a list or an iterator of "
    "batches, of mappings or of instances of a record class, or a source"
)
SINK_FORMS = f"a .csv, .jsonl or .parquet file, a pipe or device for CSV, {log_place.FORM} or -"
CUT_SINK_FORMS = f"a .csv or .jsonl file, {log_place.FORM}, a pipe or device, or -"

_COMPRESSED = {".gz", ".zst"}


def open_source(
    place: Any,
    schema: Schema,
    *,
    name: str,
    checks: Mapping[str, Checks] = MappingProxyType({}),
    batch_rows: int = 1000,
    header: bool = False,
    pause: Callable[[], None] | None = None,
) -> MarkedSource:
    """Return the source at ``place`` for records of ``schema``.

    place: a path, ``-`` (CSV on standard input), ``log:DIR/TOPIC[/PARTITION]``, ``synthetic:N``
    (N trades made by rule); a table, or what can be read as one by ``__arrow_c_stream__``; a
    sequence or an iterator of batches, tables, mappings or instances of a record class; or a
    source, which is returned as it is.
    checks: what fields must satisfy besides; records that do not are rejected.
    pause: follow a log for ever, calling this whenever nothing more is there; without it a log is
    read up to its present end.
    """
    check_batch_rows(batch_rows)
    shape = RecordShape(schema, checks)
    if not isinstance(place, (str, os.PathLike)):
        return _held(place, shape, name, batch_rows)
    text = os.fspath(place)
    if text.startswith(log_place.PREFIX):
        from ripple.connectors.log.source import open_log  # noqa: PLC0415 - slow to import

        return open_log(text, shape, name=name, batch_rows=batch_rows, pause=pause)
    if text.startswith("synthetic:"):
        return _synthetic(text, name, batch_rows)
    kind = _suffix(text)
    if kind == ".parquet":
        from ripple.connectors.parquet.files import ParquetSource  # noqa: PLC0415 - slow to import

        return ParquetSource(text, shape, name=name, batch_rows=batch_rows)
    if kind in {".jsonl", ".ndjson"}:
        from ripple.connectors.json.source import JsonSource  # noqa: PLC0415 - slow to import

        return JsonSource(text, shape, name=name, batch_rows=batch_rows)
    if kind == ".csv" or _is_stream(text):
        csv_format = CsvFormat(schema, checks, header=header)
        return CsvSource(text, csv_format, name=name, batch_rows=batch_rows)
    raise InputError(f"cannot tell how to read {text!r}: it must be {SOURCE_FORMS}")


def open_sink(
    place: str | os.PathLike[str] | Sink,
    plan: Plan | None = None,
    output: str = "",
    *,
    continues: bool = False,
    disk_of: Callable[[str], Disk] | None = None,
    clock: Clock | None = None,
    decimals: Mapping[str, int] | None = None,
    header: bool = False,
) -> Sink:
    """Return the sink at ``place``, or a sink as it is.

    place: a path, ``-`` (CSV on standard output), a pipe or a device, or
    ``log:DIR/TOPIC[/PARTITION]``, for which ``plan`` must be given and the name of its output.
    continues: the sink goes on behind what it has committed, whatever crashed, so that it must be
    a .csv or .jsonl file, a log or a stream; otherwise a file is written anew.
    disk_of, clock: from a folder to the disk there, and for the age of a log's segments; the live
    ones by default. header: CSV begins with the names of the columns.

    CSV leaves out Remove rows; JSON lines begin each row with its operation; so do the records of
    a log. Raises OutputError, DiskLockedError and OSError.
    """
    forms = CUT_SINK_FORMS if continues else SINK_FORMS
    if not isinstance(place, (str, os.PathLike)):
        if is_sink(place):
            return place
        raise OutputError(
            f"cannot write to {_shown(place)}: give {forms}, or a sink (ripple.connectors.contract)"
        )
    text = os.fspath(place)
    if plan is not None and text.startswith(log_place.PREFIX):
        from ripple.connectors import cut_sinks  # noqa: PLC0415 - slow to import

        return cut_sinks.open_log(text, plan, output, disk_of, clock, continues=continues)
    if not continues:
        _check_not_continued(text)
    kind = PurePath(text).suffix
    is_json = kind in {".jsonl", ".ndjson", ".json"}
    text_format = (
        TextFormat("json", decimals or {}, removes="mark")
        if is_json
        else TextFormat("csv", decimals or {}, header=header)
    )
    is_stream = _is_stream(text)
    if is_stream and (continues or not kind):
        return TextSink(open_target(text), text_format)
    if continues and (is_json or kind == ".csv"):
        from ripple.connectors import cut_sinks  # noqa: PLC0415 - slow to import

        assert plan is not None, "what is continued has an owner"
        return cut_sinks.open_file(text, text_format, plan, output, disk_of)
    if continues:
        raise OutputError(
            f"cannot write {text!r} so that a restart continues it: it must be {forms}"
        )
    if is_json or kind == ".csv":
        return TextSink(open_target(text), text_format)
    if kind == ".parquet":
        from ripple.connectors.parquet.files import ParquetSink  # noqa: PLC0415 - slow to import

        return ParquetSink(open_target(text))
    raise OutputError(f"cannot tell how to write {text!r}: it must be {forms}")


def _held(place: Any, shape: RecordShape, name: str, batch_rows: int) -> MarkedSource:
    """Return the source of records that are in the program itself."""
    if is_source(place):
        return place
    # slow to import
    from ripple.connectors.memory import IteratorSource, MemorySource  # noqa: PLC0415

    if isinstance(place, (pa.Table, pa.RecordBatch)):
        return MemorySource([place], shape, name=name, batch_rows=batch_rows)
    if hasattr(place, "__arrow_c_stream__"):
        return IteratorSource([place], shape, name=name, batch_rows=batch_rows)
    if isinstance(place, Sequence) and not isinstance(place, (bytes, bytearray, memoryview)):
        return MemorySource(place, shape, name=name, batch_rows=batch_rows)
    if isinstance(place, Iterable) and not isinstance(place, (Mapping, Sequence)):
        return IteratorSource(place, shape, name=name, batch_rows=batch_rows)
    advice = ""
    if isinstance(place, Mapping):
        advice = "; put one record into a list, and columns into a pa.table"
    raise InputError(f"cannot read from {_shown(place)}: give {SOURCE_OBJECTS}{advice}")


def _shown(place: object) -> str:
    if place is None or isinstance(place, type):
        return str(place)
    return f"an object of type {type(place).__name__}"


def _synthetic(text: str, name: str, batch_rows: int) -> MarkedSource:
    digits = text.removeprefix("synthetic:")
    if not digits.isascii() or not digits.isdigit():
        raise InputError(f"{text!r}: after 'synthetic:' comes a number of events")
    return SyntheticSource(int(digits), name=name, batch_rows=batch_rows)


def _check_not_continued(text: str) -> None:
    """Raise OutputError for a file that a restarted pipeline goes on with."""
    try:
        os.stat(f"{text}.cut")
    except OSError:
        return
    raise OutputError(
        f"cannot replace {text}: {text}.cut says that a pipeline continues it; name another file, "
        "or remove both"
    )


def _is_stream(text: str) -> bool:
    """Whether this is a pipe or a device, whose name tells nothing."""
    try:
        mode = os.stat(text).st_mode
    except OSError:
        return text == "-"
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _suffix(text: str) -> str:
    path = PurePath(text)
    return PurePath(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix
