"""The logical types among fields, and the storage types of their columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.model.schema.types import (
    Case,
    DateTime,
    Field,
    FieldType,
    Int64,
    List,
    Logical,
    LogicalText,
    Option,
    Record,
    String,
    Variant,
    bare_type,
    inner_types,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def logical_in(fields: Iterable[Field]) -> dict[str, Logical]:
    """Return the fields of logical types, by name; optional ones too."""
    found = {field.name: bare_type(field.type) for field in fields}
    return {name: kind for name, kind in found.items() if isinstance(kind, Logical)}


def has_logical(kind: FieldType) -> bool:
    """Tell whether values of a type are, or have in them, values of a logical type."""
    return isinstance(kind, Logical) or any(map(has_logical, inner_types(kind)))


def has_time(kind: FieldType) -> bool:
    """Tell whether values of a type are, or have in them, times."""
    return isinstance(kind, DateTime) or any(map(has_time, inner_types(kind)))


def stored_type(kind: FieldType) -> FieldType:
    """Return the type of a column that holds values of a type: of logical ones, as stored."""
    if not has_logical(kind):
        return kind
    match kind:
        case Option():
            return Option(stored_type(kind.of))
        case List():
            return List(stored_type(kind.of))
        case Record():
            return Record(stored_fields(kind.fields))
        case Variant():
            cases = [Case(one.name, tuple(map(stored_type, one.args))) for one in kind.cases]
            return Variant(tuple(cases))
        case LogicalText():
            return String()
        case _:
            return Int64()


def stored_fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Return fields of the types of the columns that hold their values."""
    return tuple(
        replace(field, type=stored_type(field.type)) if has_logical(field.type) else field
        for field in fields
    )
