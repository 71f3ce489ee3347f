"""Schemas derived from Python classes.

========================================  ==========================================
Python                                    schema
========================================  ==========================================
``str``, ``float``, ``bool``              ``String``, ``Float``, ``Bool``
``int``                                   ``Int``
``Timestamp``                             ``Int64``
``datetime.date``, ``datetime.datetime``  ``Date``, ``DateTime``
``uuid.UUID``, ``bytes``                  ``Uuid``, ``Bytes``
``Optional[T]``, or a default of None     an optional field; inside a list ``Option``
``list[T]``, ``tuple[T, ...]``, sequence  ``List``
``dict[str, T]``, mapping                 ``Dict``
a record class                            ``Record``, or ``Ref`` where it contains itself
an ``Enum``, a ``Literal`` of strings     ``Variant`` of cases without arguments
``Union[A, B]``                           ``Variant`` of one case per member, named after it
``Annotated[T, field type]``              that field type; a string there is the field's doc
========================================  ==========================================

A record class is one made by ``@record``, any dataclass, ``msgspec.Struct`` or pydantic model;
neither library is imported here. A default other than None does not make a field optional: it is
always written, so readers may rely on it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import types
import typing
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from ripple.core.arguments import need_text, shown
from ripple.core.errors import SchemaError
from ripple.model.records.declared import check_names
from ripple.model.records.members import (
    Annotation,
    Member,
    docstring_of,
    is_record_class,
    members_of,
    schema_name_of,
    unwrap,
)
from ripple.model.records.record import EventTime, record_info
from ripple.model.schema.document import build, map_of
from ripple.model.schema.types import (
    Bool,
    Bytes,
    Case,
    Date,
    DateTime,
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Logical,
    Option,
    Record,
    Ref,
    Schema,
    String,
    Uuid,
    Variant,
)

_SCALARS: dict[Annotation, FieldType] = {
    str: String(),
    int: Int(),
    float: Float(),
    bool: Bool(),
    dt.date: Date(),
    dt.datetime: DateTime(),
    uuid.UUID: Uuid(),
    bytes: Bytes(),
}

_ADVICE: dict[Annotation, str] = {
    dt.timedelta: "use int nanoseconds",
    decimal.Decimal: "say how many digits, Annotated[decimal.Decimal, rp.Decimal(18, 4)]",
    dict: "say what it has by texts, such as dict[str, int]",
    set: "use list",
    frozenset: "use list",
    list: "say what it is a list of, such as list[str]",
    tuple: "use tuple[T, ...], or a record if the positions differ in meaning",
    Any: "say which type, or Annotated[Any, Opaque()] for a value that is only passed on",
    object: "say which type",
}


def schema_of(cls: type, *, name: str | None = None, version: int | None = None) -> Schema:
    """Return the schema of a record class; ``name`` and ``version`` replace the class's own.

    Raises SchemaError naming class and field for a type that a schema cannot express.
    """
    if not is_record_class(cls):
        raise SchemaError(
            f"{_show(cls)} is not a record class: decorate it with @record, or make it a "
            "dataclass, a msgspec.Struct or a pydantic model"
        )
    if name is not None:
        need_text("schema_of: name", name, SchemaError)
    info = record_info(cls)
    return Schema(
        name=name or schema_name_of(cls),
        fields=_Walk().fields(cls, cls.__name__),
        version=version if version is not None else (info.version if info else 1),
        doc=info.doc if info else docstring_of(cls),
    )


def time_field_of(cls: type) -> str | None:
    """Return the name of the one field that is a required ``Timestamp``, or None without any.

    Without one it is the one required ``datetime``. Raises SchemaError if there are several: which
    one orders the events is for the source to say.
    """
    members = members_of(cls)
    names = [member.name for member in members if _is_event_time(member.annotation)]
    kind = "Timestamp" if names else "datetime"
    names = names or [one.name for one in members if unwrap(one.annotation)[0] is dt.datetime]
    if len(names) > 1:
        raise SchemaError(
            f"{cls.__name__} has several {kind} fields ({', '.join(names)}): say which one "
            "orders the events, with .source(..., time=...)"
        )
    return names[0] if names else None


class _Walk:
    """One derivation: knows the classes it is inside of, so that a recursive one becomes a Ref."""

    def __init__(self) -> None:
        self._inside: list[type] = []
        self._references: dict[str, type] = {}

    def fields(self, cls: type, path: str) -> tuple[Field, ...]:
        check_names(cls)
        self._inside.append(cls)
        members = members_of(cls)
        if not members:
            raise SchemaError(f"{path}: class {cls.__name__} has no fields")
        fields = tuple(self._field(member, path) for member in members)
        self._inside.pop()
        return fields

    def _field(self, member: Member, path: str) -> Field:
        kind = self.kind(member.annotation, f"{path}.{member.name}")
        optional = member.default_none
        if isinstance(kind, Option):
            kind, optional = kind.of, True
        return Field(member.name, kind, optional, member.doc)

    def kind(self, annotation: Annotation, path: str) -> FieldType:
        base, extras = unwrap(annotation)
        # rp.Decimal(18, 2) itself works, too, for those without a type checker.
        for extra in (*extras, base) if isinstance(base, Logical) else extras:
            if isinstance(extra, FieldType):
                return extra
            if isinstance(extra, EventTime):
                return Int64()
        if isinstance(base, type) and base in _SCALARS:
            return _SCALARS[base]
        origin: Annotation = typing.get_origin(base)
        args = typing.get_args(base)
        if origin in (typing.Union, types.UnionType):
            return self._union(args, path)
        if origin is typing.Literal:
            return _literal(args, path)
        if origin in (list, Sequence, dict, Mapping) or (origin is tuple and args[1:] == (...,)):
            return self._items(origin, args, path)
        if isinstance(base, type) and issubclass(base, enum.Enum):
            return _enumeration(base, path)
        if is_record_class(base):
            return self._record(base, path)
        raise _inexpressible(base, origin, path)

    def _items(self, origin: Annotation, args: tuple[Annotation, ...], path: str) -> FieldType:
        is_map = origin in (dict, Mapping)
        if len(args) != 1 + (is_map or origin is tuple):  # typing.List alone has an origin, too
            raise _inexpressible(dict if is_map else list, None, path)
        if not is_map:
            return List(self.kind(args[0], f"{path}[]"))
        if args[0] is not str:
            raise SchemaError(f"{path}: a map has texts as its keys, as in dict[str, int]")
        return map_of(path, self.kind(args[1], f"{path}{{}}"))

    def _record(self, cls: type, path: str) -> FieldType:
        if cls not in self._inside:
            return Record(self.fields(cls, path))
        name = schema_name_of(cls)
        if self._references.setdefault(name, cls) is not cls:
            raise SchemaError(f"{path}: two record classes would both be schema {name!r}")
        return Ref(name)

    def _union(self, members: tuple[Annotation, ...], path: str) -> FieldType:
        present = [member for member in members if member is not types.NoneType]
        if not present:
            raise SchemaError(f"{path}: None alone is not a type of values")
        if len(present) == 1:
            kind = self.kind(present[0], path)
        else:
            kind = build(path, Variant, tuple(self._case(member, path) for member in present))
        # Optional[Optional[T]] is Optional[T] in Python too.
        return kind if len(present) == len(members) or isinstance(kind, Option) else Option(kind)

    def _case(self, member: Annotation, path: str) -> Case:
        base, _ = unwrap(member)
        name = (typing.get_origin(base) or base).__name__
        return Case(name, (self.kind(member, f"{path}|{name}"),))


def _enumeration(cls: type[enum.Enum], path: str) -> FieldType:
    if issubclass(cls, enum.Flag):
        raise SchemaError(f"{path}: {cls.__name__} is a Flag, whose values combine; use int")
    return build(path, Variant, tuple(Case(member.name) for member in cls))


def _literal(values: tuple[Any, ...], path: str) -> FieldType:
    present = [value for value in values if value is not None]
    strange = [value for value in present if not isinstance(value, str)]
    if strange:
        raise SchemaError(f"{path}: a Literal may hold strings and None, not {strange[0]!r}")
    kind = build(path, Variant, tuple(Case(value) for value in present))
    return kind if len(present) == len(values) else Option(kind)


def _inexpressible(base: Annotation, origin: Annotation, path: str) -> SchemaError:
    try:
        advice = _ADVICE.get(origin or base, "no field type can hold it")
    except TypeError:  # something that is not a type need not be hashable
        advice = "this is not a type"
    if isinstance(base, typing.TypeVar):
        advice = "give the generic class its arguments"
    return SchemaError(f"{path}: {_show(base)} cannot be expressed: {advice}")


def _is_event_time(annotation: Annotation) -> bool:
    return any(isinstance(extra, EventTime) for extra in unwrap(annotation)[1])


def _show(annotation: Annotation) -> str:
    return annotation.__name__ if isinstance(annotation, type) else shown(annotation)
