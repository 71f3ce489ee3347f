"""The closed set of field types, and the records made of them.

A value of a type, outside columns, is: ``str``, ``int``, ``float`` or ``bool``; for ``Opaque`` an
S-expression; for ``Option`` None or the value; for ``List`` a list; for a record a dict by field
name, in which an absent optional field has no entry; for ``Variant`` a tuple of the case's name
and its arguments, such as ``("limit", 101.5)`` or ``("market",)``.

A schema or a record may be without fields, and a variant without cases: the original writes such
ones, and a peer's must be readable. They cannot be declared, imported or filled with rows here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ripple.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

# Far below Python's own recursion limit, so that code which walks a schema may simply recurse.
DEPTH_MAX = 48


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
    """A nested record without a name of its own; the names of its fields are distinct."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        _check_names("a record", "field", (field.name for field in self.fields))


@dataclass(frozen=True, slots=True)
class Case:
    """One alternative of a variant and its positional arguments."""

    name: str
    args: tuple[FieldType, ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """Exactly one of several cases, their names distinct."""

    cases: tuple[Case, ...]

    def __post_init__(self) -> None:
        _check_names("a variant", "case", (case.name for case in self.cases))


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
    """A record type: a name, a version of 1 or more, and fields.

    Field names are distinct and types nest at most ``DEPTH_MAX`` deep; raises
    :class:`ripple.errors.SchemaError` otherwise.
    """

    name: str
    fields: tuple[Field, ...]
    version: int = 1
    doc: str | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise SchemaError("a schema needs a name, not an empty one")
        if isinstance(self.version, bool) or not isinstance(self.version, int) or self.version < 1:
            raise SchemaError(
                f"schema {self.name}: the version is {self.version!r}, but versions are whole "
                "numbers from 1 on"
            )
        _check_names(f"schema {self.name}", "field", (field.name for field in self.fields))
        for field in self.fields:
            if _depth(field.type) > DEPTH_MAX:
                raise SchemaError(
                    f"{self.name}.{field.name}: nested deeper than {DEPTH_MAX} (DEPTH_MAX); "
                    "give the inner part a schema of its own and refer to it"
                )


def inner_types(kind: FieldType) -> tuple[FieldType, ...]:
    """Return the types that ``kind`` is directly made of."""
    if isinstance(kind, Option | List):
        return (kind.of,)
    if isinstance(kind, Record):
        return tuple(field.type for field in kind.fields)
    if isinstance(kind, Variant):
        return tuple(arg for case in kind.cases for arg in case.args)
    return ()


def _depth(kind: FieldType) -> int:
    # Level by level: a type too deep for the limit must not exhaust the stack first.
    level, depth = inner_types(kind), 1
    while level and depth <= DEPTH_MAX:
        level, depth = tuple(inner for outer in level for inner in inner_types(outer)), depth + 1
    return depth


def _check_names(owner: str, member: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name:
            raise SchemaError(f"{owner} has a {member} with an empty name")
        if any("\ud800" <= char <= "\udfff" for char in name):
            raise SchemaError(f"{owner} has a {member} whose name is not UTF-8: {name!r}")
        if name in seen:
            raise SchemaError(f"{owner} has two {member}s named {name!r}; rename one")
        seen.add(name)
