"""A column's value as JSON, for a field of a type."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.record_shape import value_type
from ripple.core.errors import InputError
from ripple.model.schema.types import (
    Bytes,
    Dict,
    Field,
    HexBytes,
    JsonText,
    List,
    Logical,
    String,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Cell = Callable[[str, bytes], str]  # of a column's name and a value

# Numbers of PostgreSQL's types.
TIMES = (1082, 1114, 1184)
_BOOLEAN, _BYTES, _INTEGERS = 16, 17, (20, 21, 23, 26)
_NUMERIC, _FLOATS, _JSON = 1700, (700, 701), (114, 3802)
_TYPES = {
    pa.bool_(): (_BOOLEAN,),
    pa.int64(): (*_INTEGERS, _NUMERIC, *TIMES),
    pa.float64(): (*_INTEGERS, _NUMERIC, *_FLOATS),
}
# Of arrays, those of their items.
_ITEMS = {
    1000: _BOOLEAN, 1001: _BYTES, 1005: 21, 1007: 23, 1016: 20, 1028: 26, 1231: _NUMERIC,
    1021: 700, 1022: 701, 1182: 1082, 1115: 1114, 1185: 1184, 2951: 2950,
    1002: 18, 1009: 25, 1014: 1042, 1015: 1043,
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_BARE = re.compile(rb"-?[0-9][0-9.eE+-]*|NaN|-?Infinity")
_ITEM = re.compile(rb'(?:"((?:[^"\\]|\\.)*)"|([^",{}\\]+))([,}])', re.DOTALL)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_BOUNDS = re.compile(rb"\[-?[0-9]+:-?[0-9]+\]=")


def cell_of(number: int, field: Field, logical: Logical | List | None) -> Cell | None:
    """Return how values of a column's type are written for a field; None where none is one.

    number: of the type. logical: what the field's texts are, see ``RecordShape``.
    """
    if isinstance(logical, List):
        if number in _JSON:
            return _document
        if number not in _ITEMS:
            return None
        of = logical.of
        item = Field("item", String() if isinstance(of, Logical) else of)
        cell = cell_of(_ITEMS[number], item, of if isinstance(of, Logical) else None)
        return cell and _array(cell)
    if isinstance(logical, Dict | JsonText):
        return _document if number in _JSON else None
    if isinstance(logical, Bytes) and number == _BYTES:
        return _digits if isinstance(logical, HexBytes) else _base64
    kind, _ = value_type(field)
    if kind == pa.string():
        return None if number == _BOOLEAN else _text
    if number not in _TYPES[kind]:
        return None
    if number == _BOOLEAN:
        return _truth
    return _time if number in TIMES else _number


def _text(name: str, value: bytes) -> str:
    try:
        return json.dumps(value.decode(), ensure_ascii=False)
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not valid UTF-8") from error


def _truth(_: str, value: bytes) -> str:
    return "true" if value == b"t" else "false"


def _number(name: str, value: bytes) -> str:
    if not _BARE.fullmatch(value):
        raise InputError(f"{name} is no number")
    return value.decode()


def _time(name: str, value: bytes) -> str:
    """Return a time as nanoseconds since 1970; one without a zone is UTC."""
    try:
        time = datetime.fromisoformat(value.decode())
    except ValueError as error:  # infinity, and years that no datetime has
        raise InputError(f"{name} is a time that no nanoseconds hold") from error
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return str((time - _EPOCH) // _MICROSECOND * 1000)


def _document(name: str, value: bytes) -> str:
    """Return an array or an object as it is: the server has validated it."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not valid UTF-8") from error


def _digits(name: str, value: bytes) -> str:
    """Return bytes in hexadecimal digits, which is how the server sends them by default."""
    if not value.startswith(b"\\x"):
        raise InputError(
            f"{name} is not in hexadecimal digits: set the server's bytea_output to hex"
        )
    return f'"{value[2:].decode()}"'


def _base64(name: str, value: bytes) -> str:
    return f'"{base64.b64encode(bytes.fromhex(_digits(name, value)[1:-1])).decode()}"'


def _array(cell: Cell) -> Cell:
    """Return how an array is written, of one dimension and with any bounds."""

    def written(name: str, value: bytes) -> str:
        bounds = _BOUNDS.match(value)
        at = bounds.end() if bounds else 0
        if value[at:] == b"{}":
            return "[]"
        found, last = [], b"{"[: value.startswith(b"{", at)]
        at += 1
        while last in (b"{", b",") and (item := _ITEM.match(value, at)):
            quoted, bare, last = item.groups()
            at = item.end()
            if bare == b"NULL":
                found.append("null")
            else:
                found.append(cell(name, bare if quoted is None else _ESCAPED.sub(rb"\1", quoted)))
        if last != b"}" or at != len(value):
            raise InputError(f"{name} is no array of one dimension")
        return f"[{', '.join(found)}]"

    return written
