"""Changes as lines of text: CSV or JSON, to a file or a stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.types as kinds

from ripple.connectors.contract import BasicSink
from ripple.connectors.json import text as json_text
from ripple.connectors.text.formatter import RowFormatter
from ripple.errors import OutputError, SchemaError
from ripple.ops import OP_REMOVE, split_op, with_named_ops
from ripple.schema.well_formed import check_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.contract import Commit
    from ripple.connectors.target import Target

Kind = Literal["string", "integer", "float", "bool", "raw"]
Converter = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How changes become lines.

    ``decimals`` gives the digits after the point for a float column, rounded half to even from
    the exact value; others have the fewest digits that read back as the same double. CSV strings
    are quoted only where needed, and a null is an empty field. Columns of other types are written
    as JSON text. In JSON a null, NaN or infinity is ``null``, in lists and structs too. ``removes``
    says what becomes of Remove rows: ``skip`` leaves them out, ``mark`` begins every row with a
    column ``op`` that is ``set``, ``patch`` or ``remove``. ``header`` writes the column names first
    (CSV only).
    """

    form: Literal["csv", "json"] = "csv"
    decimals: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    removes: Literal["skip", "mark"] = "skip"
    header: bool = False


class TextLines:
    """Makes changes into lines.

    All changes have columns of the same names. ``name``, of where they go, is for errors.
    """

    def __init__(self, text_format: TextFormat, name: str) -> None:
        self._format = text_format
        self._name = name
        self._layout: _Layout | None = None

    def of(self, changes: pa.RecordBatch, *, is_first: bool) -> bytes:
        """Return one line per row, in order, the first ones after the header if there is one.

        Raises OutputError when the columns have changed, or a text is not UTF-8.
        """
        try:
            check_text(changes)
        except SchemaError as error:
            raise OutputError(f"cannot write {self._name}: {error}") from error
        rows = self._rows(changes)
        if self._layout is None or self._layout.schema != rows.schema:
            if self._layout is not None and self._layout.schema.names != rows.schema.names:
                raise OutputError(
                    f"{self._name} has columns {', '.join(self._layout.schema.names)}, but "
                    f"changes came with {', '.join(rows.schema.names)}: use a sink for each output"
                )
            self._layout = _Layout(rows, self._format)
        header = self._layout.header if is_first else b""
        return header + self._layout.lines(rows) if rows.num_rows else header

    def _rows(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        """Turn the ops into what the format says of them."""
        if self._format.removes == "mark":
            return with_named_ops(changes)
        op, rows = split_op(changes)
        if op is None:
            return rows
        kept = op.to_numpy() != OP_REMOVE
        return rows if kept.all() else rows.filter(pa.array(kept))


class TextSink(BasicSink):
    """Writes changes to ``target``, one write per batch so that a reader sees them at once."""

    def __init__(self, target: Target, text_format: TextFormat = TextFormat()) -> None:
        self._target = target
        self._lines = TextLines(text_format, target.name)
        self._is_first = True
        self.name, self.promise = target.name, target.promise

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Write one line per row, in order; see Sink."""
        lines = self._lines.of(changes, is_first=self._is_first)
        self._is_first = False
        if lines:
            self._target.write(lines)

    def commit(self, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Complete the target."""
        self._target.commit()

    def close(self) -> None:
        """Release the target, or give it up."""
        self._target.close()


class _Layout:
    """How columns of certain names and types are written."""

    def __init__(self, rows: pa.RecordBatch, text_format: TextFormat) -> None:
        self.schema = rows.schema
        is_json = text_format.form == "json"
        columns: list[tuple[bytes, Kind, int | None]] = []
        self._converters: list[Converter | None] = []
        for name, data_type in zip(rows.schema.names, rows.schema.types, strict=True):
            kind, converter = _written_as(data_type)
            if is_json:
                label = json.dumps(name, ensure_ascii=False)
                prefix = ("," if columns else "{") + label + ":"
            else:
                kind = "string" if kind == "raw" else kind
                prefix = "," if columns else ""
            decimals = text_format.decimals.get(name) if kind == "float" else None
            columns.append((prefix.encode(), kind, decimals))
            self._converters.append(converter)
        self._formatter = RowFormatter(columns, b"}\n" if is_json else b"\n", json=is_json)
        self.header = b""
        if text_format.header and not is_json:
            texts = RowFormatter([(prefix, "string", None) for prefix, _, _ in columns], b"\n")
            self.header = texts.format(1, [pa.array([name]) for name in rows.schema.names])

    def lines(self, rows: pa.RecordBatch) -> bytes:
        columns = [
            column if converter is None else converter(column)
            for column, converter in zip(rows.columns, self._converters, strict=True)
        ]
        return self._formatter.format(rows.num_rows, columns)


def _written_as(data_type: pa.DataType) -> tuple[Kind, Converter | None]:
    """Return how a column of this type is written, and what brings it to the formatter's type."""
    if kinds.is_dictionary(data_type):
        kind, converter = _written_as(data_type.value_type)
        if converter is None:
            return kind, lambda column: column.dictionary_decode()
        return kind, lambda column: converter(column.dictionary_decode())
    for kind, wanted, fits in _PLAIN:
        if data_type == wanted:
            return kind, None
        if fits(data_type):
            return kind, lambda column, wanted=wanted: column.cast(wanted)
    return "raw", _as_json


def _as_json(column: pa.Array) -> pa.Array:
    texts = [None if value is None else json_text.dumps(value) for value in column.to_pylist()]
    return pa.array(texts, pa.string())


_PLAIN: tuple[tuple[Kind, pa.DataType, Callable[[pa.DataType], bool]], ...] = (
    ("string", pa.string(), lambda t: kinds.is_large_string(t) or kinds.is_string_view(t)),
    ("integer", pa.int64(), lambda t: kinds.is_integer(t) and t != pa.uint64()),
    ("float", pa.float64(), kinds.is_floating),
    ("bool", pa.bool_(), kinds.is_boolean),
)
