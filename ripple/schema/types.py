"""The closed set of field types, and the records made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class String:
    """UTF-8 text."""


@dataclass(frozen=True, slots=True)
class Int:
    """An integer of the original's native width: 63 bits on the wire, 64 in a column."""


@dataclass(frozen=True, slots=True)
class Int64:
    """A 64-bit signed integer."""


@dataclass(frozen=True, slots=True)
class Float:
    """An IEEE 754 double."""


@dataclass(frozen=True, slots=True)
class Bool:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value known only by its S-expression (the book's ``Sexp_opaque``)."""


@dataclass(frozen=True, slots=True)
class Option:
    """A value of ``of``, or none."""

    of: FieldType


@dataclass(frozen=True, slots=True)
class List:
    """Any number of values of ``of``."""

    of: FieldType


@dataclass(frozen=True, slots=True)
class Record:
    """A nested record without a name of its own."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One alternative of a variant and its positional arguments."""

    name: str
    args: tuple[FieldType, ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """Exactly one of several cases."""

    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of another schema, by name."""

    name: str


FieldType: TypeAlias = (
    String | Int | Int64 | Float | Bool | Opaque | Option | List | Record | Variant | Ref
)


@dataclass(frozen=True, slots=True)
class Field:
    """A named member of a record; an optional one may be absent."""

    name: str
    type: FieldType
    optional: bool = False
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """A record type with a name and a version of 1 or more."""

    name: str
    fields: tuple[Field, ...]
    version: int = 1
    doc: str | None = None
