"""Numbers as the values that users' functions get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import FieldType, List, Logical, Record, bare_type

if TYPE_CHECKING:
    import numpy.typing as npt

Reader: TypeAlias = Callable[[Any], Any]
"""Makes the Python value of a stored, non-null one."""


def array_of(numbers: npt.NDArray[Any], kind: FieldType) -> npt.NDArray[Any]:
    """Return a column without nulls as users' functions get it."""
    return rule_of(kind).array(numbers) if isinstance(kind, Logical) else numbers


def values_of(listed: list[Any], kind: FieldType) -> list[Any]:
    """Return the numbers of a column as Python values of its type; None stays."""
    return read_all(listed, _reader(kind))


def numbers_of(values: list[Any], kind: FieldType) -> list[Any]:
    """Return values of a flat type, or lists of one, as columns store them; None stays."""
    bare = bare_type(kind)
    if isinstance(bare, List):
        return [None if one is None else numbers_of(one, bare.of) for one in values]
    if not isinstance(bare, Logical):
        return values
    number = rule_of(bare).number
    return [None if one is None else number(one) for one in values]


def _reader(kind: FieldType) -> Reader | None:
    kind = bare_type(kind)
    if isinstance(kind, Logical):
        return rule_of(kind).value
    if isinstance(kind, List):
        return list_reader(_reader(kind.of))
    if isinstance(kind, Record):
        return record_reader({field.name: _reader(field.type) for field in kind.fields})
    return None


def read_all(listed: list[Any], each: Reader | None) -> list[Any]:
    """Return values as a reader makes them; None stays, and without a reader all do."""
    return listed if each is None else [None if one is None else each(one) for one in listed]


def list_reader(each: Reader | None) -> Reader | None:
    """Return the reader of lists, from their items' reader."""
    return None if each is None else lambda items: read_all(items, each)


def record_reader(readers: Mapping[str, Reader | None]) -> Reader | None:
    """Return the reader of dicts, from their values' readers; a missing value stays so."""
    found = {name: each for name, each in readers.items() if each is not None}

    def read(row: dict[str, Any]) -> dict[str, Any]:
        there = ((name, each, row.get(name)) for name, each in found.items())
        return row | {name: each(value) for name, each, value in there if value is not None}

    return read if found else None
