"""A change of a row as a record: its columns, their values before, the operation and its time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ripple.connectors.coercion import TYPED_TIME
from ripple.connectors.postgres.cells import TIMES, cell_of
from ripple.connectors.postgres.messages import Unchanged
from ripple.connectors.raw_record import raw_of_values
from ripple.connectors.record_shape import TYPE_WORDS, value_type
from ripple.core.errors import InputError
from ripple.model.schema.types import Dict, JsonText, List

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.connectors.postgres.cells import Cell
    from ripple.connectors.postgres.messages import Change, Column, Value
    from ripple.connectors.record_shape import RecordShape
    from ripple.model.schema.types import Field, Logical

OPERATION = "operation"
COMMITTED = "committed_ns"
BEFORE = "before_"

_WORDS = {kind: words.split()[-1] for kind, words in TYPE_WORDS.items()} | {
    pa.bool_(): "truth value"
}
_OWN = {OPERATION: pa.string(), COMMITTED: pa.int64()}


class _Taken(NamedTuple):
    """Where a field's value comes from: column ``at`` of a row, and how it is written as JSON."""

    head: str
    of: str
    at: int
    is_key: bool
    is_before: bool
    written: Cell


class Rows:
    """Converts changes of a table with these columns to JSON, for records of a shape.

    A field is a column of its name; ``before_`` and a column's name is its value before;
    ``operation`` and ``committed_ns`` are of the change. Raises InputError for columns that do not
    fit.
    """

    def __init__(self, name: str, columns: Sequence[Column], shape: RecordShape) -> None:
        self._names = [column.name for column in columns]
        places = {column.name: (at, column) for at, column in enumerate(columns)}
        self._own: list[str] = []
        self._taken: list[_Taken] = []
        for field in shape.schema.fields:
            of, is_before = column_of(field.name)
            if of is None:
                _check_own(name, field, self._names)
                self._own.append(field.name)
                continue
            kind, is_optional = value_type(field)
            found = places.get(of)
            if found is None and not is_optional:
                raise InputError(
                    f"{name} has no column {of!r}, and the record has a field {field.name!r}: it "
                    f"has {', '.join(self._names)}"
                )
            if is_before and field.name in places:
                raise InputError(
                    f"{name} has a column {field.name!r}, which is how records call what "
                    f"{of!r} was: leave one of the two out of the publication"
                )
            if found is None:
                continue
            at, column = found
            logical = shape.logical.get(field.name)
            written = cell_of(column.type_number, field, logical)
            if written is None:
                word, way = _needed(kind, logical)
                raise InputError(
                    f"{name} has a column {of!r} of a type that no {word} comes from, which the "
                    f"field {field.name!r} is{way}"
                )
            if field.name in shape.units and column.type_number in TIMES:
                raise InputError(f"{name} has a column {of!r} that is {TYPED_TIME}")
            head = f"{json.dumps(field.name)}: "
            self._taken.append(_Taken(head, of, at, column.is_key, is_before, written))

    @property
    def columns(self) -> frozenset[str]:
        """The columns that are taken."""
        return frozenset(one.of for one in self._taken)

    def document(self, change: Change, committed_ns: int) -> bytes:
        """Return a change as JSON. Raises InputError for a change that is no record."""
        if change.operation == "truncate":
            raise InputError("the table was emptied (TRUNCATE), and its rows are not named")
        row = change.new if change.new is not None else change.old
        if row is None or len(row) != len(self._names):
            raise InputError("the change has other columns than its table")
        members = []
        for name in self._own:
            said = f'"{change.operation}"' if name == OPERATION else str(committed_ns)
            members.append(f'"{name}": {said}')
        for one in self._taken:
            value = row[one.at]
            if one.is_before or isinstance(value, Unchanged):
                value = _looked_up(change, one, value)
            if value is not None:
                members.append(one.head + one.written(one.of, value))
        return f"{{{', '.join(members)}}}".encode()

    def raw(self, change: Change) -> bytes:
        """Return the text of a rejected change, for its dead letter."""
        row = change.new or change.old or ()
        values = {
            name: value.decode("utf-8", "surrogateescape")
            for name, value in zip(self._names, row, strict=False)
            if isinstance(value, bytes)
        }
        return raw_of_values({OPERATION: change.operation, **values})


def column_of(field: str) -> tuple[str | None, bool]:
    """Return the column of a field, if any, and whether it is unchanged."""
    if field in _OWN:
        return None, False
    if field.startswith(BEFORE) and len(field) > len(BEFORE):
        return field.removeprefix(BEFORE), True
    return field, False


def unknown_at_delete(shape: RecordShape, key: frozenset[str]) -> list[str]:
    """Return the columns that records must have and a delete does not tell, which names a key."""
    found = []
    for field in shape.schema.fields:
        of, is_before = column_of(field.name)
        if of is not None and not is_before and of not in key and not value_type(field)[1]:
            found.append(of)
    return found


def _check_own(name: str, field: Field, columns: Sequence[str]) -> None:
    if field.name in columns:
        raise InputError(
            f"{name} has a column {field.name!r}, which is what records call something else of "
            "each change: leave it out of the publication"
        )
    if value_type(field)[0] != _OWN[field.name]:
        raise InputError(f"the field {field.name!r} must be {TYPE_WORDS[_OWN[field.name]]}")


def _needed(kind: pa.DataType, logical: Logical | List | None) -> tuple[str, str]:
    """Return what a field is, and of which columns it comes where that is not plain."""
    if isinstance(logical, List):
        return "list", ": it takes an array of such items, json or jsonb"
    if isinstance(logical, Dict | JsonText):
        return "map" if isinstance(logical, Dict) else "array or object", ": it takes json or jsonb"
    return _WORDS[kind], ""


def _looked_up(change: Change, one: _Taken, value: Value) -> bytes | None:
    """Return a column's old value, or its new one if the old row has it. Raises InputError.

    The old value is None for a new row, and if it was not sent; a key without an old value is
    unchanged.
    """
    old = change.old[one.at] if change.old is not None else None
    if isinstance(value, Unchanged) and change.is_old_whole:
        value = old
    if one.is_before:
        if change.operation == "insert":
            return None
        if change.old is not None:
            value = old
        elif not one.is_key:
            return None
    if isinstance(value, Unchanged):
        raise InputError(
            f"{one.of} is long, stored apart (TOAST) and did not change: the server sends it with "
            "REPLICA IDENTITY FULL alone"
        )
    return value
