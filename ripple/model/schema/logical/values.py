"""Numbers as the values that users' functions get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.model.schema.logical.fields import has_logical
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import FieldType, List, Logical, Record, bare_type

if TYPE_CHECKING:
    import numpy.typing as npt


def array_of(numbers: npt.NDArray[Any], kind: FieldType) -> npt.NDArray[Any]:
    """Return a column without nulls as users' functions get it."""
    return rule_of(kind).array(numbers) if isinstance(kind, Logical) else numbers


def values_of(listed: list[Any], kind: FieldType) -> list[Any]:
    """Return the numbers of a column as Python values of its type; None stays."""
    if not has_logical(kind):
        return listed
    return [_value_of(one, kind) for one in listed]


def _value_of(one: Any, kind: FieldType) -> Any:
    kind = bare_type(kind)
    if one is None or not has_logical(kind):
        return one
    if isinstance(kind, Logical):
        return rule_of(kind).value(one)
    if isinstance(kind, List):
        return [_value_of(item, kind.of) for item in one]
    if isinstance(kind, Record):
        types = {field.name: field.type for field in kind.fields}
        return {name: _value_of(item, types[name]) for name, item in one.items()}
    return one
