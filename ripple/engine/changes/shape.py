"""How a value is seen by a delta: as a record with declared fields, as a map, or as a whole.

====================================  ==========================================
value                                 seen as
====================================  ==========================================
any, with a schema given              a record with that schema's fields
an instance of a record class         a record with its class's fields
any other ``Mapping``                 a map from keys to values
anything else                         a whole, which only Set can change
====================================  ==========================================

An absent optional field is None in an instance and a missing key in a dict. A dict may also say
None there: that is the same value.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.core.errors import DeltaError
from ripple.engine.changes.equality import class_field_names, field_names
from ripple.model.records.derive import schema_of
from ripple.model.schema import types

if TYPE_CHECKING:
    from collections.abc import Callable

Fields: TypeAlias = Mapping[str, types.Field]

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def fields_of(value: Any, schema: types.Schema | None) -> Fields | None:
    """Return the declared fields of a record, or None for a map or a whole.

    Raises :class:`DeltaError` if ``schema`` is given and ``value`` is no record, and
    SchemaError for a record class that no schema can express.
    """
    cls: Any = type(value)
    if schema is None:
        return _class_fields(cls)
    if not isinstance(value, Mapping) and field_names(value) is None:
        raise DeltaError(
            f"{cls.__name__} is not a record of schema {schema.name}: "
            "give a dict of its fields, or an instance"
        )
    return {field.name: field for field in schema.fields}


@lru_cache(maxsize=1024)
def _class_fields(cls: Any) -> Fields | None:
    if class_field_names(cls) is None:
        return None
    return {field.name: field for field in schema_of(cls).fields}


def reader(value: Any) -> Callable[[Any, str], Any]:
    """Return the function that reads a field of records like ``value``; None for an absent one."""
    return _get_entry if isinstance(value, Mapping) else getattr


def _get_entry(value: Mapping[str, Any], name: str) -> Any:
    return value.get(name)


def read(value: Any, name: str) -> Any:
    """Return a field of a record; None for an absent one."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def replaced(value: Any, changes: Mapping[str, Any], fields: Fields) -> Any:
    """Return a copy of a record with some fields changed; None makes an optional one absent."""
    if isinstance(value, Mapping):
        absent = {name for name, held in changes.items() if held is None and fields[name].optional}
        return {name: held for name, held in {**value, **changes}.items() if name not in absent}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **changes)
    if hasattr(value, "__struct_fields__"):
        # Such an instance means that the library is there.
        return importlib.import_module("msgspec.structs").replace(value, **changes)
    return value.model_copy(update=dict(changes))


def check_record(value: Any, fields: Fields) -> None:
    """Raise :class:`DeltaError` unless ``value`` has every required field and fits every type."""
    names = value if isinstance(value, Mapping) else field_names(value) or ()
    for name in names:
        if name not in fields:
            raise unknown_field(name, fields)
    for field in fields.values():
        check_field(field, read(value, field.name))


def check_field(field: types.Field, value: Any) -> None:
    """Raise :class:`DeltaError` unless ``value`` fits the field; None is an absent value."""
    if (value is None and field.optional) or fits(value, field.type):
        return
    if value is None:
        raise DeltaError(f"field {field.name!r} is required, but the delta leaves it absent")
    raise DeltaError(
        f"field {field.name!r} is {field.type!r}, but the delta holds "
        f"{value!r} of type {type(value).__name__}"
    )


def unknown_field(name: str, fields: Fields) -> DeltaError:
    """Return the error for a field that the record does not declare."""
    return DeltaError(f"no field {name!r}; the fields are {', '.join(fields)}")


def fits(value: Any, kind: types.FieldType) -> bool:
    """Tell whether ``value`` is of type ``kind``. An ``int`` is not a Float, nor a bool an Int."""
    check = _CHECKS.get(type(kind))
    if check is not None:
        return check(value)
    match kind:
        case types.Option(of):
            return value is None or fits(value, of)
        case types.List(of):
            return isinstance(value, list | tuple) and all(fits(item, of) for item in value)
        case types.Record(members):
            return _fits_record(value, members)
        case types.Variant(cases):
            return _fits_variant(value, cases)
        case _:  # another schema's value: its own fields are not known here
            return isinstance(value, Mapping) or field_names(value) is not None


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and INT_MIN <= value <= INT_MAX


_CHECKS: dict[type[types.FieldType], Callable[[Any], bool]] = {
    types.String: lambda value: isinstance(value, str),
    types.Int: _is_int,
    types.Int64: _is_int,
    types.Date: _is_int,
    types.DateTime: _is_int,
    types.Decimal: _is_int,
    types.Uuid: lambda value: isinstance(value, str),
    types.Bytes: lambda value: isinstance(value, str),
    types.WideDecimal: lambda value: isinstance(value, str),
    types.Dict: lambda value: isinstance(value, str),
    types.Float: lambda value: isinstance(value, float),
    types.Bool: lambda value: isinstance(value, bool),
    types.Opaque: lambda value: value is not None,
}


def _fits_record(value: Any, members: tuple[types.Field, ...]) -> bool:
    names = value if isinstance(value, Mapping) else field_names(value)
    if names is None or not {member.name for member in members}.issuperset(names):
        return False
    return all(
        fits(held, member.type) or (held is None and member.optional)
        for member in members
        for held in (read(value, member.name),)
    )


def _fits_variant(value: Any, cases: tuple[types.Case, ...]) -> bool:
    name, args = case_of(value)
    for case in cases:
        if case.name == name and len(case.args) == len(args):
            return all(fits(arg, kind) for arg, kind in zip(args, case.args, strict=True))
    return False


def case_of(value: Any) -> tuple[str, tuple[Any, ...]]:
    """Return the case that a variant's value is in and its arguments.

    The value is an ``Enum`` member, a case's name, ``(name, *args)``, or an instance of one of a
    union's classes.
    """
    if isinstance(value, enum.Enum):
        return value.name, ()
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return value[0], value[1:]
    if isinstance(value, str):
        return value, ()
    return type(value).__name__, (value,)
