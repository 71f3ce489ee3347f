"""Lossless conversion of columns to the declared types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.connectors.column_names import meant
from ripple.core.errors import SchemaError
from ripple.model.schema.columns import decoded
from ripple.model.schema.logical.lists import ListReading, reading_of
from ripple.model.schema.logical.maps import source_texts
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.nested import leaf_names, with_leaf_types
from ripple.model.schema.text_columns import is_text
from ripple.model.schema.time_form import BEYOND_INT64, UNITS_NS, is_far
from ripple.model.schema.typed_texts import marked
from ripple.model.schema.types import Dict, List, LogicalText, PatternDate, PatternTime, WideDecimal
from ripple.model.schema.well_formed import ill_formed

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from ripple.connectors.record_shape import RecordShape
    from ripple.model.schema.types import Logical

    Mask = npt.NDArray[np.bool_]
    Numbers = npt.NDArray[Any]

MORE_DIGITS = "has more digits than a float holds"
NOT_UTF8 = "is not valid UTF-8"
TYPED_TIME = "a time already, and not a number of its format: leave the format out"


def check_columns(
    found: pa.Schema,
    wanted: pa.Schema,
    source: str,
    *,
    is_empty: bool = False,
    shape: RecordShape | None = None,
) -> None:
    """Raise SchemaError unless every wanted column is there, in a type that can be brought over.

    An optional one may be missing, or without a value and so of no type, as any may be that is
    known to have no rows (``is_empty``). Integers of any width, timestamps and dates become int64
    (the latter as nanoseconds since 1970); integers and floats become float64; every form of text
    becomes string. A name with dots may be the path of a value within structs.
    shape: of the records; its ``units``, ``iso`` and ``logical`` name fields that have columns of
    times or of logical types, or must not have them.
    """
    found = with_leaf_types(found, wanted.names, source)
    units, iso = (shape.units, shape.iso) if shape is not None else (frozenset(), frozenset())
    for field in wanted:
        index = found.get_all_field_indices(field.name)
        if len(index) > 1:
            raise SchemaError(f"{source} has column {field.name!r} {len(index)} times")
        if not index:
            check_absent(field, leaf_names(found), source)
            continue
        declared = found.field(index[0]).type
        kind = _values_of(declared)
        what = f"column {field.name!r} of {source} is {declared}"
        if kinds.is_null(kind) and (field.nullable or is_empty):
            continue
        if field.name in iso and kinds.is_timestamp(kind):
            continue
        logical = None if shape is None else shape.logical.get(field.name)
        if not _can_become(kind, field.type, logical):
            word, way_out = _word(logical, field), _way_out(kind, field, logical)
            raise SchemaError(f"{what}, but the schema declares {word}{way_out}")
        if field.name in units and not kinds.is_integer(kind):
            raise SchemaError(f"{what}, {TYPED_TIME}")


def check_absent(field: pa.Field, found: Iterable[object], source: str) -> None:
    """Raise SchemaError unless a column that is not there is optional."""
    if not field.nullable:
        names = list(dict.fromkeys(map(str, found)))
        listed = ", ".join(names) or "none"
        hint = meant(field.name, names)
        raise SchemaError(f"{source} has no column {field.name!r}: it has {listed}{hint}")


def conformed(
    column: pa.Array, kind: pa.DataType, logical: Logical | List | None = None
) -> tuple[pa.Array, str, Mask | None]:
    """Return a column in another type, and the reasons why rows of it do not convert.

    Those rows are null. The types are such that ``check_columns`` takes them. logical: of which the
    values become texts.
    """
    if kinds.is_dictionary(column.type):
        column = decoded(column)
    column = _with_texts(column, logical)
    if kind == pa.string():
        text = column if column.type == kind else _as_text(column)
        if isinstance(logical, (PatternDate, PatternTime)) and not is_text(column.type):
            text = marked(text)
        return _without(text, NOT_UTF8, ill_formed(text))
    if column.type == kind:
        return column, "", None
    if kinds.is_date(column.type):
        column = column.cast(pa.timestamp("s" if kinds.is_date32(column.type) else "ms"))
    try:
        if kinds.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ns", column.type.tz))
        return column.cast(kind), "", None
    except pa.ArrowInvalid:
        # Arrow says so of the whole column; which rows it is, it does not say.
        if kind == pa.int64():
            whole, phrase, failed = _without(column, BEYOND_INT64, _beyond_int64(column))
            return conformed(whole, kind)[0], phrase, failed
        floats = column.cast(kind, safe=False)
        return _without(floats, MORE_DIGITS, _is_rounded(column, floats))


def _as_text(column: pa.Array) -> pa.Array:
    """Return a column of texts, dates or times as texts that the form of its type reads."""
    if not kinds.is_timestamp(column.type):
        return column.cast(pa.string())
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    # Also those beyond 64 bits of nanoseconds, which are no times then.
    plain = column.cast(pa.timestamp(column.type.unit)).cast(pa.string())
    return pc.binary_join_element_wise(plain, "Z", "")


def _way_out(found: pa.DataType, field: pa.Field, logical: Logical | List | None) -> str:
    """Return the way out for a column of times or records in place of a declared text or map."""
    if isinstance(logical, Dict) and kinds.is_struct(found):
        return ": declare a record class for its members, or give rows as dicts of Python"
    if field.type != pa.string() or not kinds.is_timestamp(found):
        return ""
    return f": declare {field.name}: rp.Timestamp, without a format or with format='iso'"


def _without(
    column: pa.Array, phrase: str, failed: Mask | None
) -> tuple[pa.Array, str, Mask | None]:
    if failed is None or not failed.any():
        return column, "", None
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, rarely wanted

    return pc.if_else(pa.array(failed), None, column), phrase, failed


def _beyond_int64(column: pa.Array) -> Mask:
    """Return for which rows unsigned integers, or timestamps as nanoseconds, need more bits."""
    if not kinds.is_timestamp(column.type):
        big: Mask = _numbers(column) > np.iinfo(np.int64).max
        return big
    return is_far(_numbers(column.cast(pa.int64())), UNITS_NS[column.type.unit])


def _is_rounded(integers: pa.Array, floats: pa.Array) -> Mask:
    """Return for which rows a float is not the integer that it was made of."""
    exact, rounded = _numbers(integers), _numbers(floats)
    limit = 2.0**64 if exact.dtype == np.uint64 else 2.0**63
    is_inside = rounded < limit
    differ: Mask = np.where(is_inside, rounded, 0).astype(exact.dtype) != exact
    return ~is_inside | differ


def _numbers(column: pa.Array) -> Numbers:
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False))


def _with_texts(column: pa.Array, kind: Logical | List | None) -> pa.Array:
    """Return the texts of UUIDs, bytes and lists that come as such; other columns unchanged."""
    if isinstance(kind, List) and not is_text(column.type):
        return ListReading(kind).texts(column)
    if isinstance(kind, Dict):
        return source_texts(column, kind)
    if isinstance(kind, LogicalText) and not isinstance(kind, WideDecimal):
        rule = rule_of(kind)
        return rule.texts(rule.stored(column)) if rule.takes(column.type) else column
    return column


def _values_of(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column's values, also in a dictionary."""
    return kind.value_type if kinds.is_dictionary(kind) else kind


def _word(kind: Logical | List | None, field: pa.Field) -> str:
    return str(field.type) if kind is None else reading_of(kind).word


def _can_become(found: pa.DataType, wanted: pa.DataType, kind: Logical | List | None) -> bool:
    if kind is not None and reading_of(kind).takes(found):
        return True
    if isinstance(kind, List) or kinds.is_list(wanted):
        return bool(found == wanted)
    if wanted == pa.string():
        return is_text(found)
    if wanted == pa.int64():
        return bool(kinds.is_integer(found) or kinds.is_timestamp(found) or kinds.is_date(found))
    if wanted == pa.float64():
        return bool(kinds.is_floating(found) or kinds.is_integer(found))
    return bool(kinds.is_boolean(found))
