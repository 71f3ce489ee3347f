"""The text of rejected records that did not arrive as lines."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as kinds

from ripple.connectors.files.json import text as json_text
from ripple.model.batch import RAW_BYTES_MAX
from ripple.model.schema.columns import decoded
from ripple.model.schema.logical.columns import text_of_number
from ripple.model.schema.logical.lists import read_by_text
from ripple.model.schema.text_columns import is_text
from ripple.model.schema.types import List, Logical

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ripple.model.schema.types import Field, FieldType


def raw_of(
    records: pa.RecordBatch, row: int, fields: Iterable[Field] = (), lists: Iterable[str] = ()
) -> bytes:
    """Return a row as JSON, cut to RAW_BYTES_MAX; text that is not UTF-8 keeps its bytes.

    fields: of an engine's columns; dates, times and decimals are texts then. lists: text columns
    with arrays or objects of JSON, which they are in the result.
    """
    columns = zip(records.schema.names, records.columns, strict=True)
    values = {name: _value(column.slice(row, 1)) for name, column in columns}
    for name, kind in read_by_text(fields).items():
        if values.get(name) is not None:
            with suppress(TypeError, ValueError):  # such a value stays unchanged
                values[name] = _text_of(values[name], kind)
    for name in lists:
        values[name] = _array(values.get(name))
    return _dumped(values)


def raw_of_values(values: Mapping[str, Any]) -> bytes:
    """Return values by name as JSON, cut to RAW_BYTES_MAX."""
    return _dumped(
        {
            name: _escaped(value.encode("utf-8", "surrogatepass"))
            if isinstance(value, str)
            else value
            for name, value in values.items()
        }
    )


def _dumped(values: Mapping[str, Any]) -> bytes:
    return json_text.dumps(values, spelled=True).encode("utf-8", "surrogateescape")[:RAW_BYTES_MAX]


def _value(column: pa.Array) -> Any:
    """Return the only value of a column."""
    if kinds.is_dictionary(column.type):
        column = decoded(column)
    if is_text(column.type):
        text = column.cast(pa.large_binary())[0].as_py()
        return None if text is None else _escaped(text)
    if kinds.is_timestamp(column.type):
        column = column.cast(pa.int64())  # there are more of them than Python has dates
    if kinds.is_date(column.type):
        column = column.cast(pa.int32() if kinds.is_date32(column.type) else pa.int64())
    return column[0].as_py()


def _text_of(number: Any, kind: FieldType) -> Any:
    """Return a stored value as its text, and a list of such as a list of texts."""
    if isinstance(kind, List):
        return [_text_of(one, kind.of) for one in number]
    return text_of_number(number, kind) if isinstance(kind, Logical) else number


def _array(text: Any) -> Any:
    """Return the array or object that a text of JSON is; other values as they are."""
    try:
        found = json.loads(text)
        json_text.dumps(found).encode("utf-8", "surrogateescape")  # halves of characters fail
    except (TypeError, ValueError, RecursionError):
        return text
    return found if isinstance(found, list | dict) else text


def _escaped(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
