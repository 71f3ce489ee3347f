"""The messages of PostgreSQL's plugin pgoutput, version 1, as they come one by one.

All integers are in network order; values are text, as the server writes them.
"""

from __future__ import annotations

import struct
from typing import Literal, NamedTuple

from ripple.core.errors import InputError

Operation = Literal["insert", "update", "delete", "truncate"]

# Microseconds from 1970, from where we count, to 2000, from where PostgreSQL does.
EPOCH_US = 946_684_800_000_000

_BEGIN = struct.Struct(">QqI")
_COMMIT = struct.Struct(">BQQq")
_ID = struct.Struct(">I")
_COUNT = struct.Struct(">H")
_COLUMN = struct.Struct(">Ii")
_OPERATIONS: dict[bytes, Operation] = {b"I": "insert", b"U": "update", b"D": "delete"}


class Unchanged:
    """The only value is UNCHANGED: a long value that is stored apart, and not sent again."""


UNCHANGED = Unchanged()
Value = bytes | Unchanged | None


class Begin(NamedTuple):
    """A transaction: where its commit stands in the log, when that was, and its number."""

    lsn: int
    committed_ns: int
    xid: int


class End(NamedTuple):
    """The end of a transaction, with the position in the log after it."""

    lsn: int


class Column(NamedTuple):
    """A column of a relation: its name, the number of its type, and whether it names rows."""

    name: str
    type_number: int
    is_key: bool


class Relation(NamedTuple):
    """A table as it is for the changes that follow."""

    number: int
    schema: str
    name: str
    columns: tuple[Column, ...]


class Change(NamedTuple):
    """A change of one row, or of none (truncate): the values of columns in their order.

    old: the row before it, or its key alone, with None for other values (``is_old_whole``);
    None if the server does not send it.
    """

    operation: Operation
    relations: tuple[int, ...]
    new: tuple[Value, ...] | None = None
    old: tuple[Value, ...] | None = None
    is_old_whole: bool = False


Message = Begin | End | Relation | Change


def message_of(data: bytes) -> Message | None:
    """Parse a message; None for one without rows. Raises InputError."""
    try:
        return _message(data)
    except (struct.error, IndexError, ValueError) as error:
        raise InputError(f"a message of pgoutput cannot be read: {data[:64]!r}") from error


def _message(data: bytes) -> Message | None:
    kind = data[:1]
    if kind in _OPERATIONS:
        return _change(kind, data)
    if kind == b"B":
        lsn, committed_us, xid = _BEGIN.unpack_from(data, 1)
        return Begin(lsn, (committed_us + EPOCH_US) * 1000, xid)
    if kind == b"C":
        return End(_COMMIT.unpack_from(data, 1)[2])
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        (count,) = _ID.unpack_from(data, 1)
        return Change("truncate", struct.unpack_from(f">{count}I", data, 6))
    if kind in (b"O", b"Y", b"M"):  # where it was first written, types, messages
        return None
    raise ValueError(kind)


def _change(kind: bytes, data: bytes) -> Change:
    (relation,) = _ID.unpack_from(data, 1)
    at, new, old, is_old_whole = 5, None, None, False
    while at < len(data):
        what = data[at : at + 1]
        values, at = _row(data, at + 1)
        if what == b"N":
            new = values
        elif what in (b"K", b"O"):
            old, is_old_whole = values, what == b"O"
        else:
            raise ValueError(what)
    return Change(_OPERATIONS[kind], (relation,), new, old, is_old_whole)


def _row(data: bytes, at: int) -> tuple[tuple[Value, ...], int]:
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    values: list[Value] = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == 0x74:  # t: text
            (length,) = _ID.unpack_from(data, at)
            at += 4
            if at + length > len(data):
                raise ValueError(length)
            values.append(data[at : at + length])
            at += length
        elif kind == 0x6E:  # n: null
            values.append(None)
        elif kind == 0x75:  # u: unchanged
            values.append(UNCHANGED)
        else:
            raise ValueError(kind)
    return tuple(values), at


def _relation(data: bytes) -> Relation:
    (number,) = _ID.unpack_from(data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    (count,) = _COUNT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        is_key = bool(data[at] & 1)
        column, at = _text(data, at + 1)
        columns.append(Column(column, _COLUMN.unpack_from(data, at)[0], is_key))
        at += 8
    return Relation(number, schema or "pg_catalog", name, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1
