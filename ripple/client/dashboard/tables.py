"""The visible part of a table, computed by Arrow, as exact text.

A filter is words: ``price>100 venue=NYSE apple``. ``name OP value`` compares a field, with ``=``,
``!=``, ``<``, ``<=``, ``>``, ``>=`` or ``~`` (contains); any other word is searched in all texts.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ripple.client.dashboard.contract import AskedError
from ripple.model.schema.logical.texts import written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.client.dashboard.contract import Values

ROWS_MAX = 200
CELL_CHARACTERS_MAX = 200
FILTER_CHARACTERS_MAX = 500
_MORE = "…"
_WORD = re.compile(r'(?:(?P<name>\w+)(?P<op>!=|<=|>=|=|<|>|~))?(?P<value>"[^"]*"|[^\s"]+)')
_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def window(
    table: pa.Table,
    keys: Sequence[str],
    *,
    by: str,
    is_down: bool,
    words: str,
    first: int,
    rows: int,
) -> Values:
    """Return some rows of a table, sorted by a field and then by its key, and the count of matches.

    by: "" for the order of the key. Nulls come last. Raises AskedError for an unknown field or a
    wrong value.
    """
    if not (first >= 0 and 0 < rows <= ROWS_MAX):
        raise AskedError(f"at most {ROWS_MAX} rows are shown at once, from 0 on")
    chosen = filtered(table, words)
    if by and by not in table.column_names:
        raise _no_field(by, table)
    order = [(by, "descending" if is_down else "ascending")] if by else []
    order += [(name, "ascending") for name in keys if name != by]
    sortable = [one for one in order if _is_sortable(table.schema.field(one[0]).type)]
    if by and (not sortable or sortable[0][0] != by):
        raise AskedError(f"{by} is a {table.schema.field(by).type}, which has no order")
    if sortable:
        # What comes before the window is found too; two rows that are alike in all of this are not
        # told apart by it, and a key has one row.
        nearest = first + rows <= chosen.num_rows // 4 and len(sortable) == len(order)
        indices = (
            pc.select_k_unstable(chosen, first + rows, sort_keys=sortable)
            if nearest
            else pc.sort_indices(chosen, sort_keys=sortable)
        )
        part = chosen.take(indices.slice(first, rows))
    else:
        part = chosen.slice(first, rows)
    return {
        "total": table.num_rows,
        "chosen": chosen.num_rows,
        "columns": columns_of(table.schema, keys),
        "rows": texts(part),
    }


def filtered(table: pa.Table, words: str) -> pa.Table:
    """Return the rows that match all words. Raises AskedError."""
    if len(words) > FILTER_CHARACTERS_MAX:
        raise AskedError(f"a filter has at most {FILTER_CHARACTERS_MAX} characters")
    for word in _WORD.finditer(words):
        table = table.filter(_mask(table, word["name"], word["op"], word["value"].strip('"')))
    return table


def of_key(table: pa.Table, keys: Sequence[str], key: Sequence[str | None]) -> pa.Table:
    """Return the rows whose fields ``keys`` have these texts, as ``texts`` gives them.

    A shortened text finds each row that it may be of.
    """
    for name, text in zip(keys, key, strict=True):
        table = table.filter(_has_text(table.column(name), text))
    return table


def whole_texts(table: pa.Table) -> list[list[str | None]]:
    """Return rows as exact text, however long."""
    columns = [_cells(column, is_whole=True) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _has_text(column: pa.ChunkedArray, text: str | None) -> Any:
    if text is None:
        return pc.is_null(column)
    if not pa.types.is_string(column.type):
        if pa.types.is_integer(column.type):
            column = column.cast(pa.string())
        else:  # as they are shown: bytes, a NaN, a list
            column = pa.chunked_array([_cells(column, is_whole=True)], pa.string())
    found = pc.equal(column, text)
    if not (len(text) == CELL_CHARACTERS_MAX and text.endswith(_MORE)):
        return found
    is_longer = pc.greater(pc.utf8_length(column), CELL_CHARACTERS_MAX)
    begins = pc.starts_with(column, text.removesuffix(_MORE))
    return pc.or_(found, pc.and_(is_longer, begins))


def _mask(table: pa.Table, name: str | None, op: str | None, value: str) -> Any:
    if name is None or op is None:
        masks = [
            pc.match_substring(table.column(field.name), value, ignore_case=True)
            for field in table.schema
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        if not masks:
            return pa.array([False] * table.num_rows)
        found = masks[0]
        for mask in masks[1:]:
            found = pc.or_kleene(found, mask)
        return found
    if name not in table.column_names:
        raise AskedError(f"no field {name[:40]}: there are {', '.join(table.column_names)}")
    column = table.column(name)
    if op == "~":
        cells = _json_of(column) if pa.types.is_nested(column.type) else column.cast(pa.string())
        return pc.match_substring(cells, value, ignore_case=True)
    try:
        given = pa.scalar(value, pa.string()).cast(column.type)
        return _COMPARE[op](column, given)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise AskedError(f"{name} is a {column.type}, and {value[:40]!r} is not") from error


def _no_field(name: str, table: pa.Table) -> AskedError:
    there = ", ".join(table.column_names) or "none yet"
    return AskedError(f"no field {name[:40]}: there are {there}")


def columns_of(schema: pa.Schema, keys: Sequence[str]) -> list[Values]:
    """Return the description of the fields."""
    return [
        {
            "name": field.name,
            "type": str(field.type),
            "is_key": field.name in keys,
            "is_number": _is_number(field.type),
        }
        for field in schema
    ]


def texts(table: pa.Table) -> list[list[str | None]]:
    """Return rows as exact text: all digits of an integer, the shortest text of a float."""
    columns = [_cells(column) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def for_browser(table: pa.Table) -> pa.Table:
    """Return rows in types of browsers' engines; nanoseconds as times."""
    for place, field in enumerate(table.schema):
        kind = field.type
        if field.name.endswith("_ns") and pa.types.is_int64(kind):
            column = table.column(place).cast(pa.timestamp("ns", "UTC"))
            column = pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms"))
        elif pa.types.is_decimal(kind):
            column = table.column(place).cast(pa.float64())
        elif pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            column = pa.array(_cells(table.column(place)), pa.string())
        else:
            continue
        table = table.set_column(place, field.name, column)
    return table


def _cells(column: pa.ChunkedArray, *, is_whole: bool = False) -> list[str | None]:
    values = _json_of(column) if pa.types.is_nested(column.type) else column
    found = (_text(value) for value in values.to_pylist())
    return list(found) if is_whole else [_shortened(text) for text in found]


def _json_of(column: pa.ChunkedArray) -> pa.Array:
    """Return lists and records as JSON, with dates, times and decimals as in lines of JSON."""
    chunks = (written(chunk) for chunk in column.chunks)
    values = (one for chunk in chunks for one in chunk.to_pylist())
    return pa.array(
        [None if one is None else json.dumps(one, ensure_ascii=False) for one in values],
        pa.string(),
    )


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        value = value.hex()
    return repr(value) if isinstance(value, float) else str(value)


def _shortened(text: str | None) -> str | None:
    if text is None or len(text) <= CELL_CHARACTERS_MAX:
        return text
    return text[: CELL_CHARACTERS_MAX - len(_MORE)] + _MORE


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _is_sortable(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)
