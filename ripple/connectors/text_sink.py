"""Changes as lines of text: CSV or JSON, to a file or a stream."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.base import OP_REMOVE, split_op
from ripple.connectors.row_formatter import RowFormatter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.target import Target

_Kind = Literal["string", "integer", "float", "bool", "raw"]
_OP_NAMES = pa.array(["set", "patch", "remove"])


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How changes become lines.

    ``decimals`` gives the digits after the point for a float column, rounded half to even from
    the exact value; others have the fewest digits that read back as the same double. CSV strings
    are quoted only where needed, and a null is an empty field. In JSON a null, NaN or infinity is
    ``null``. Columns of other types are written as JSON text. ``removes`` says what becomes of
    Remove rows: ``skip`` leaves them out, ``mark`` begins every row with a column ``op`` that is
    ``set``, ``patch`` or ``remove``. ``header`` writes the column names first (CSV only).
    """

    form: Literal["csv", "json"] = "csv"
    decimals: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    removes: Literal["skip", "mark"] = "skip"
    header: bool = False


class TextSink:
    """Writes changes to ``target``, one write per batch so that a reader sees them at once.

    All batches of a run have the columns of the first one.
    """

    def __init__(self, target: Target, text_format: TextFormat = TextFormat()) -> None:
        self._target = target
        self._format = text_format
        self._formatter: RowFormatter | None = None
        self._schema: pa.Schema | None = None

    def write(self, changes: pa.RecordBatch) -> None:
        """Write one line per row, in order; see Sink."""
        rows = self._rows(changes)
        if self._formatter is None or self._schema is None:
            self._begin(rows)
        if rows.num_rows:
            assert self._formatter is not None
            columns = [_plain(column)[1] for column in rows.columns]
            self._target.write(self._formatter.format(rows.num_rows, columns))

    def finish(self) -> None:
        """Complete the target."""
        self._target.finish()

    def abort(self) -> None:
        """Give up the target."""
        self._target.abort()

    def _rows(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        op, rows = split_op(changes)
        if self._format.removes == "mark":
            op = pa.nulls(rows.num_rows, pa.int8()).fill_null(0) if op is None else op
            names = _OP_NAMES.take(op)
            return pa.RecordBatch.from_arrays([names, *rows.columns], ["op", *rows.schema.names])
        if op is None:
            return rows
        return rows.filter(pc.not_equal(op, OP_REMOVE))

    def _begin(self, rows: pa.RecordBatch) -> None:
        """Settle how each column is written."""
        is_json = self._format.form == "json"
        columns: list[tuple[bytes, _Kind, int | None]] = []
        for index, name in enumerate(rows.schema.names):
            kind = _plain(rows.column(index))[0]
            if kind == "raw" and not is_json:
                kind = "string"
            if is_json:
                prefix = ("{" if index == 0 else ",") + json.dumps(name, ensure_ascii=False) + ":"
            else:
                prefix = "" if index == 0 else ","
            decimals = self._format.decimals.get(name) if kind == "float" else None
            columns.append((prefix.encode(), kind, decimals))
        self._schema = rows.schema
        self._formatter = RowFormatter(columns, b"}\n" if is_json else b"\n", json=is_json)
        if self._format.header and not is_json:
            names = [pa.array([name]) for name in rows.schema.names]
            header = RowFormatter([(p, "string", None) for p, _, _ in columns], b"\n", json=False)
            self._target.write(header.format(1, names))


def _plain(column: pa.Array) -> tuple[_Kind, pa.Array]:
    """Return the column in one of the types that the formatter writes."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "string", column.cast(pa.string())
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return "integer", column.cast(pa.int64())
    if pa.types.is_floating(kind):
        return "float", column.cast(pa.float64())
    if pa.types.is_boolean(kind):
        return "bool", column
    texts = [
        None if value is None else json.dumps(value, ensure_ascii=False, default=str)
        for value in column.to_pylist()
    ]
    return "raw", pa.array(texts, pa.string())
