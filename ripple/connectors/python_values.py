"""Lossless conversion of Python values to Arrow columns."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.connectors.coercion import MORE_DIGITS, NOT_UTF8
from ripple.connectors.record_shape import TYPE_WORDS, value_type
from ripple.core.arguments import shown
from ripple.core.errors import SchemaError
from ripple.model.records.members import field_names, is_record_class
from ripple.model.schema.logical.lists import reading_of
from ripple.model.schema.time_form import BEYOND_INT64

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ripple.model.schema.types import Field, List, Logical

# What Arrow takes as it is, or raises for.
_PLAIN: dict[pa.DataType, set[type]] = {
    pa.int64(): {int, type(None)},
    pa.float64(): {float, int, type(None)},
    pa.bool_(): {bool, type(None)},
    pa.string(): {str, type(None)},
}
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")


class _LostError(ValueError):
    """A value of the right type that the column cannot hold."""


def column_of(
    values: Sequence[Any], field: pa.Field, first: int = 0, kind: Logical | List | None = None
) -> tuple[pa.Array, dict[int, str]]:
    """Return values (None is null) as a column, and the reasons why some do not convert.

    Misfits are null. An integer is not a truth value, a float, even 1.0, is not an integer; NumPy's
    numbers count as Python's. Raises SchemaError for a value of another type than ``field``,
    naming its row, which counts from ``first``. kind: the logical type of the texts.
    """
    if set(map(type, values)) <= _PLAIN[field.type]:
        try:
            return pa.array(values, field.type), {}
        except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
            pass  # which value it is, is found out below
    made: list[Any] = []
    failed: dict[int, str] = {}
    for row, value in enumerate(values):
        try:
            made.append(None if value is None else _CONVERTED[field.type](value))
        except _LostError as error:
            made.append(None)
            failed[row] = str(error)
        except TypeError:
            raise SchemaError(
                f"row {first + row}: the field {field.name!r} must be {word_of(field.type, kind)}, "
                f"not {shown(value)}{_hint(value, field.type)}"
            ) from None
    return pa.array(made, field.type), failed


def _hint(value: Any, kind: pa.DataType) -> str:
    """Return how a time is declared, where one stands for an integer, else ""."""
    if not pa.types.is_integer(kind):
        return ""
    if isinstance(value, dt.datetime):
        return ": declare a time as datetime.datetime, without a unit as its format"
    if isinstance(value, str) and _ISO_TIME.match(value):
        return ': rp.field(format="iso") of an rp.Timestamp reads it'
    return ""


def plain_types(fields: Iterable[Field]) -> dict[str, set[type]]:
    """Return by field the types of values that become a column without a conversion."""
    return {field.name: _PLAIN[value_type(field)[0]] for field in fields}


def as_texts(values: Iterable[Any], kind: Logical | List) -> list[Any]:
    """Return values with texts for values of a logical type; others are unchanged."""
    rule = reading_of(kind)
    return [value if text is None else text for value in values for text in [rule.text(value)]]


def word_of(arrow: pa.DataType, kind: Logical | List | None) -> str:
    """Return the word for a column's values in rejections. kind: the logical type of its texts."""
    return TYPE_WORDS[arrow] if kind is None else reading_of(kind).word


def values_at(
    rows: Sequence[Mapping[str, Any]], name: str, paths: Mapping[str, tuple[str, ...]]
) -> tuple[list[Any], dict[int, str]]:
    """Return a field's value in each row, and the rows where a value is, and a record is meant.

    Of those the path that leads nowhere. A member of the whole name comes before a path; records
    are mappings or instances of a record class; what is not there is None.
    """
    parts = paths.get(name)
    if parts is None:
        return [row.get(name) for row in rows], {}
    found: list[Any] = []
    astray: dict[int, str] = {}
    for number, row in enumerate(rows):
        value: Any = row
        if name in row:
            found.append(row[name])
            continue
        for at, part in enumerate(parts):
            if isinstance(value, Mapping):
                value = value.get(part)
            elif is_record_class(type(value)):
                value = getattr(value, part, None)
            else:
                if value is not None:
                    astray[number] = ".".join(parts[:at])
                    value = None
                break
        found.append(value)
    return found, astray


def has_path(row: Mapping[str, Any], parts: Sequence[str]) -> bool:
    """Tell whether a row may have a value at a path: a record around it that is None may."""
    value: Any = row
    for part in parts:
        if isinstance(value, Mapping):
            if part not in value:
                return False
            value = value[part]
        elif is_record_class(type(value)):
            if part not in field_names(type(value)):
                return False
            value = getattr(value, part)
    return True


def _integer(value: Any) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError
    if not -(1 << 63) <= int(value) < 1 << 63:
        raise _LostError(BEYOND_INT64)
    return int(value)


def _float(value: Any) -> float:
    if not isinstance(value, (float, int, np.floating, np.integer)) or isinstance(value, bool):
        raise TypeError
    # As Python's own: NumPy compares integers with floats as floats.
    exact = int(value) if isinstance(value, np.integer) else value
    try:
        made = float(exact)
    except OverflowError:
        raise _LostError(MORE_DIGITS) from None
    if made != exact and not math.isnan(made):
        raise _LostError(MORE_DIGITS)
    return made


def _truth(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _LostError(NOT_UTF8) from None
    return value


_CONVERTED: dict[pa.DataType, Callable[[Any], Any]] = {
    pa.int64(): _integer,
    pa.float64(): _float,
    pa.bool_(): _truth,
    pa.string(): _text,
}
