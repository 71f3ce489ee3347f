"""Changes as lines of text: CSV or JSON, to a file or a stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.connectors.contract import BasicSink
from ripple.connectors.files.json import text as json_text
from ripple.connectors.files.text.formatter import RowFormatter
from ripple.core.errors import OutputError, SchemaError
from ripple.core.frozen import frozen
from ripple.core.row_ops import OP, OP_REMOVE, place_of_op
from ripple.model.schema.exported import as_arrow
from ripple.model.schema.logical.texts import is_written, written
from ripple.model.schema.types import Dict, bare_type
from ripple.model.schema.well_formed import check_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.connectors.contract import Commit
    from ripple.connectors.target import Target
    from ripple.model.pipeline.nodes import Output
    from ripple.model.schema.exported import Made

Kind = Literal["string", "integer", "float", "bool", "raw", "op"]
Converter = Callable[[pa.Array], pa.Array]


@frozen
class TextFormat:
    """The format of changes as lines.

    ``decimals`` gives the digits after the point for a float column, rounded half to even from
    the exact value; others have the fewest digits that read back as the same double. CSV strings
    are quoted only where needed, and a null is an empty field. Columns of other types are written
    as JSON text. In JSON a null, NaN or infinity is ``null``, in lists and structs too. ``removes``
    is the treatment of Remove rows: ``skip`` leaves them out, ``mark`` begins every row with a
    column ``op`` that is ``set``, ``patch`` or ``remove``. ``header`` writes the column names first
    (CSV only). ``columns``: which are written, in this order; without, all are. ``objects``:
    columns of texts that are objects of JSON, and such in JSON.
    """

    form: Literal["csv", "json"] = "csv"
    decimals: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    removes: Literal["skip", "mark"] = "skip"
    header: bool = False
    columns: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()


PLAIN = TextFormat()
_CHANGES, _EVENTS = TextFormat("json", removes="mark"), TextFormat("json")


def json_of(output: Output) -> TextFormat:
    """Return the format of an output's rows as JSON: of changes with their operations."""
    return replace(_EVENTS if output.is_stream else _CHANGES, objects=maps_of(output))


def maps_of(output: Output) -> tuple[str, ...]:
    """Return the fields of an output that are maps."""
    return tuple(one.name for one in output.fields if isinstance(bare_type(one.type), Dict))


class TextLines:
    """Formats changes as lines.

    All changes have columns of the same names. ``name``, of the target, is for errors; ``end``
    follows each row.
    """

    def __init__(self, text_format: TextFormat, name: str, end: bytes = b"\n") -> None:
        self._format = text_format
        self._name = name
        self._end = end
        self._layout: _Layout | None = None

    def of(self, changes: pa.RecordBatch | Made, *, is_first: bool) -> bytes:
        """Return one line per row, in order, the first ones after the header if there is one.

        Raises OutputError when the columns have changed, or a text is not UTF-8.
        """
        layout = self._laid_out(changes)
        try:
            lines = layout.lines(changes)
        except SchemaError as error:
            raise OutputError(f"cannot write {self._name}: {error}") from error
        return layout.header + lines if is_first else lines

    def heading(self, names: Sequence[str]) -> bytes:
        """Return the header of a target without rows, empty where the format has none."""
        is_headed = self._format.header and self._format.form == "csv"
        return _header(names, self._end) if is_headed and names else b""

    def values(self, changes: pa.RecordBatch) -> pa.Array:
        """Return each row by itself, as binary: null where it is left out. Raises OutputError."""
        layout = self._laid_out(changes)
        try:
            return layout.values(changes)
        except SchemaError as error:
            raise OutputError(f"cannot write {self._name}: {error}") from error

    def _laid_out(self, changes: pa.RecordBatch | Made) -> _Layout:
        layout, schema = self._layout, changes.schema
        if layout is None or (layout.schema is not schema and layout.schema != schema):
            layout = _Layout(schema, self._format, self._end)
            if self._layout is not None and self._layout.names != layout.names:
                raise OutputError(
                    f"{self._name} has columns {', '.join(self._layout.names)}, but "
                    f"changes came with {', '.join(layout.names)}: use a sink for each output"
                )
            self._layout = layout
        return layout


class TextSink(BasicSink):
    """Writes changes to ``target``, one write per batch so that a reader sees them at once.

    names: of the columns, for a header where no row comes.
    """

    takes_made = True  # see OutputStatus

    def __init__(
        self, target: Target, text_format: TextFormat = PLAIN, names: Sequence[str] = ()
    ) -> None:
        self._target = target
        self._lines = TextLines(text_format, target.name)
        self._names = names
        self._is_first = True
        self.name, self.promise = target.name, target.promise

    def write(self, changes: pa.RecordBatch | Made, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Write one line per row, in order; see Sink."""
        lines = self._lines.of(changes, is_first=self._is_first)
        self._is_first = False
        if lines:
            self._target.write(lines)

    def commit(self, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Complete the target."""
        if self._is_first and (heading := self._lines.heading(self._names)):
            self._is_first = False
            self._target.write(heading)
        self._target.commit()

    def close(self) -> None:
        """Release the target, or give it up."""
        self._target.close()


def _header(names: Sequence[str], end: bytes) -> bytes:
    """Return the line of CSV with the names of columns."""
    titles = pa.record_batch([pa.array([name]) for name in names], list(names))
    columns: list[tuple[int, bytes, Kind, int | None]]
    columns = [(at, b"," if at else b"", "string", None) for at in range(len(names))]
    return RowFormatter(columns, end).format(titles)


class _Layout:
    """How columns of certain names and types are written."""

    def __init__(self, schema: pa.Schema, text_format: TextFormat, end: bytes) -> None:
        self.schema = schema
        op_at, is_json = place_of_op(schema), text_format.form == "json"
        marks = text_format.removes == "mark"
        fields = [(at, field.name, *_written_as(field.type)) for at, field in enumerate(schema)]
        if is_json and text_format.objects:
            fields = [
                (at, name, "raw", _as_objects) if name in text_format.objects else one
                for one in fields
                for at, name, *_ in [one]
            ]
        if op_at >= 0:
            del fields[op_at]
        if text_format.columns:
            by_name = {field[1]: field for field in fields}
            fields = [by_name[name] for name in text_format.columns]
        self._converters = {at: converter for at, _, _, converter in fields if converter}
        if marks:
            fields.insert(0, (op_at, OP, "op", None))
        self.names = [name for _, name, _, _ in fields]
        columns: list[tuple[int, bytes, Kind, int | None]] = []
        for at, name, kind, _ in fields:
            if is_json:
                label = json.dumps(name, ensure_ascii=False)
                prefix = ("," if columns else "{") + label + ":"
            else:
                prefix = "," if columns else ""
            written: Kind = "string" if kind == "raw" and not is_json else kind
            decimals = text_format.decimals.get(name) if kind == "float" else None
            columns.append((at, prefix.encode(), written, decimals))
        left_out = -1 if marks else op_at
        suffix = b"}" + end if is_json else end
        self._op_at = left_out
        self._formatter = RowFormatter(columns, suffix, json=is_json, left_out=left_out)
        self.header = b""
        if text_format.header and not is_json:
            self.header = _header(self.names, suffix)

    def lines(self, changes: pa.RecordBatch | Made) -> bytes:
        """Return the lines of changes; raises SchemaError for a text that is not UTF-8."""
        rows = self._converted(as_arrow(changes)) if self._converters else changes
        try:
            return self._formatter.format(rows)
        except UnicodeError:
            check_text(as_arrow(changes))
            raise

    def values(self, changes: pa.RecordBatch) -> pa.Array:
        """Return each row as binary, null where it is left out; raises as ``lines``."""
        ends = np.empty(changes.num_rows + 1, np.int32)
        rows = self._converted(changes) if self._converters else changes
        try:
            data = self._formatter.values(rows, ends)
        except UnicodeError:
            check_text(changes)
            raise
        valid = None
        if self._op_at >= 0:
            is_there = changes.column(self._op_at).to_numpy() != OP_REMOVE
            if not is_there.all():
                valid = pa.py_buffer(np.packbits(is_there, bitorder="little"))
        buffers = [valid, pa.py_buffer(ends), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.binary(), changes.num_rows, buffers)

    def _converted(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        check_text(changes)
        columns = changes.columns
        for at, converter in self._converters.items():
            columns[at] = converter(columns[at])
        return pa.record_batch(columns, self.schema.names)


def _written_as(data_type: pa.DataType) -> tuple[Kind, Converter | None]:
    """Return the format of a column of this type, and the conversion to the formatter's type."""
    if kinds.is_dictionary(data_type):
        kind, converter = _written_as(data_type.value_type)
        if converter is None:
            return kind, lambda column: column.dictionary_decode()
        return kind, lambda column: converter(column.dictionary_decode())
    if is_written(data_type) and not kinds.is_nested(data_type):
        return "string", written
    for kind, wanted, fits in _PLAIN:
        if data_type == wanted:
            return kind, None
        if fits(data_type):
            return kind, lambda column, wanted=wanted: column.cast(wanted)
    return "raw", _as_json


def _as_objects(column: pa.Array) -> pa.Array:
    """Return stored maps as JSON, which has no NaN and no infinities."""
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, and few have maps

    odd = np.asarray(pc.fill_null(pc.match_substring_regex(column, "NaN|Infinity"), False))
    if not odd.any():
        return column
    texts = column.to_pylist()
    for row in np.flatnonzero(odd).tolist():
        texts[row] = json_text.dumps(json.loads(texts[row]))
    return pa.array(texts, pa.string())


def _as_json(column: pa.Array) -> pa.Array:
    texts = [
        None if value is None else json_text.dumps(value) for value in written(column).to_pylist()
    ]
    return pa.array(texts, pa.string())


_PLAIN: tuple[tuple[Kind, pa.DataType, Callable[[pa.DataType], bool]], ...] = (
    (
        "string",
        pa.string(),
        lambda t: kinds.is_large_string(t) or kinds.is_string_view(t) or kinds.is_date32(t),
    ),
    ("integer", pa.int64(), lambda t: kinds.is_integer(t) and t != pa.uint64()),
    ("float", pa.float64(), kinds.is_floating),
    ("bool", pa.bool_(), kinds.is_boolean),
)
