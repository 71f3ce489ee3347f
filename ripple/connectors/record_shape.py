"""The shape of a source's records: fields, checks, and Arrow types."""

from __future__ import annotations

from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.core.errors import SchemaError
from ripple.core.frozen import frozen
from ripple.model.schema.checks import form_of
from ripple.model.schema.enumerations import instead_of_enumeration
from ripple.model.schema.failing import judges_of
from ripple.model.schema.logical.fields import stored_type
from ripple.model.schema.logical.lists import is_read
from ripple.model.schema.nested import flattened, paths_in
from ripple.model.schema.types import (
    DECIMALS,
    Bool,
    Dict,
    Field,
    Float,
    Int,
    Int64,
    JsonText,
    List,
    Option,
    Schema,
    String,
    bare_type,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.pipeline.nodes import SourceSpec, TableSpec
    from ripple.model.schema.checks import Checks, Form
    from ripple.model.schema.failing import Judge
    from ripple.model.schema.types import FieldType, Logical

TIMESTAMP_NS_END = 1 << 62

_ARROW = {
    String: pa.string(),
    Int: pa.int64(),
    Int64: pa.int64(),
    Float: pa.float64(),
    Bool: pa.bool_(),
}
# The names of types in rejections.
TYPE_WORDS = {
    pa.string(): "text",
    pa.int64(): "an integer",
    pa.float64(): "a number",
    pa.bool_(): "true or false",
}


@frozen
class RecordShape:
    """The records of ``schema`` that a source delivers.

    ``checks`` are per field, beyond the type, and become fitted to it. ``columns`` names
    the fields to deliver, all by default. ``units``: the fields that are numbers of another unit
    than nanoseconds, unlike columns of times. ``logical``: the fields of text for a logical type,
    or columns of that type in a source. ``iso``: the fields of text that are times of
    ISO 8601, or columns of times. ``table``: how the records become a table, if
    they do; then an engine has the checks, which are not for deletions. Records within are
    flattened; ``paths``: the parts of the fields that are found by path. Raises SchemaError when a
    name is no field, a check does not fit its field, or a field's type is not String, Int, Int64,
    Float, Bool or a logical one, optional or not.
    """

    schema: Schema
    checks: Mapping[str, Checks] = field(default_factory=lambda: MappingProxyType({}))
    columns: tuple[str, ...] | None = None
    table: TableSpec | None = None
    units: frozenset[str] = frozenset()
    iso: frozenset[str] = frozenset()
    logical: Mapping[str, Logical | List] = field(default_factory=lambda: MappingProxyType({}))
    judges: Mapping[str, Judge] = field(init=False, repr=False, compare=False)
    paths: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

    @classmethod
    def of(cls, source: SourceSpec) -> RecordShape:
        """Return the shape of a source's records; raises SchemaError."""
        if source.table is None:
            return cls(source.schema, source.checks)
        return cls(source.schema, table=source.table)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", flattened(self.schema))
        known = {member.name: member for member in self.schema.fields}
        for member in self.schema.fields:
            value_type(member)
        for name in (*self.checks, *(self.columns or ())):
            if name not in known:
                raise SchemaError(
                    f"schema {self.schema.name} has no field {name!r}: it has {', '.join(known)}"
                )
        fitted = {name: checks.fitted(known[name]) for name, checks in self.checks.items()}
        object.__setattr__(self, "checks", fitted)
        object.__setattr__(self, "judges", judges_of(fitted, self.schema.fields))
        object.__setattr__(self, "paths", paths_in(known))

    @property
    def forms(self) -> dict[str, Form]:
        """The forms of times, dates and decimals by field, without fields that need none."""
        members = self.schema.fields
        found = {one.name: form_of(one.type, self.checks.get(one.name)) for one in members}
        found |= {
            one.name: _list_form(one.type, self.checks.get(one.name))
            for one in members
            if is_read(bare_type(one.type))
        }
        return {name: form for name, form in found.items() if form is not None}

    @property
    def by_source_text(self) -> tuple[frozenset[str], frozenset[str]]:
        """The text fields that also take numbers, and the ones for arrays or objects."""
        lists = (
            name for name, kind in self.logical.items() if isinstance(kind, List | Dict | JsonText)
        )
        return self.digits, frozenset(lists)

    @property
    def digits(self) -> frozenset[str]:
        """The fields of text that also take numbers, by their source text: decimals."""
        return frozenset(name for name, kind in self.logical.items() if isinstance(kind, DECIMALS))

    def delivered(self) -> tuple[Field, ...]:
        """Return the fields of the delivered records, in schema order."""
        return tuple(
            member
            for member in self.schema.fields
            if self.columns is None or member.name in self.columns
        )

    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema of the delivered records."""
        return arrow_schema_of(self.delivered())

    def read_schema(self) -> pa.Schema:
        """Return the Arrow schema of the delivered fields and those with checks."""
        delivered = self.delivered()
        members = self.schema.fields
        return arrow_schema_of(
            tuple(one for one in members if one in delivered or one.name in self.checks)
        )


def _list_form(kind: FieldType, checks: Checks | None) -> Form:
    from ripple.model.schema.list_form import ListForm  # noqa: PLC0415 - few have lists

    bare = bare_type(kind)
    assert isinstance(bare, List)
    return ListForm(bare, form_of(bare.of, checks))


def arrow_schema_of(members: tuple[Field, ...]) -> pa.Schema:
    """Return the Arrow schema of records with these fields."""
    return pa.schema(
        pa.field(member.name, kind, nullable=optional)
        for member in members
        for kind, optional in [value_type(member)]
    )


def value_type(member: Field) -> tuple[pa.DataType, bool]:
    """Return a field's Arrow type, and whether it may be none.

    Raises SchemaError when a source cannot deliver it.
    """
    optional, kind = member.optional, member.type
    if isinstance(kind, Option):
        optional, kind = True, kind.of
    arrow = _ARROW.get(type(kind))
    if arrow is not None:
        return arrow, optional
    arrow = _ARROW.get(type(stored_type(kind)))
    if isinstance(kind, List) and is_read(kind):
        arrow = pa.list_(pa.field("item", _ARROW[type(stored_type(kind.of))], nullable=False))
    if arrow is None:
        raise SchemaError(
            instead_of_enumeration(member.name, kind)
            or f"field {member.name!r} has type {type(member.type).__name__}, which has no "
            "column here; use String, Int, Int64, Float, Bool, Date, DateTime, Decimal,"
            " Uuid or Bytes, a list of one of them, a map of one of the first five, or str with"
            " rp.field(format='json') for any array or object"
        )
    return arrow, optional
