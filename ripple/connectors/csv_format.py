"""What the lines of a CSV file must look like to be records, and which columns to deliver."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.checks import Check, Finite, InRange, NonEmpty, Positive
from ripple.errors import SchemaError
from ripple.schema.types import Bool, Field, Float, Int, Int64, Option, Schema, String

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMESTAMP_NS_END = 1 << 62

_ARROW = {
    String: pa.string(),
    Int: pa.int64(),
    Int64: pa.int64(),
    Float: pa.float64(),
    Bool: pa.bool_(),
}


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """How a line becomes a record of ``schema``.

    Records are lines: a quoted field may contain commas and doubled quotes but no line break, so
    that one stray quote costs one line. Lines end in LF or CRLF; the last end may be missing.
    Empty lines and lines that begin with ``#`` are no records. Blanks around numbers and truth
    values are ignored, in strings they count. ``-?digits`` is an integer; floats are decimal, with
    an exponent or not, or ``nan``, ``inf``, ``-inf``; ``true``, ``false``, ``1``, ``0`` are truth
    values. An empty field is none if optional, the empty string if a required string, and an error
    otherwise; ``""`` is always the empty string.

    ``checks`` are per field, beyond the type; they pass where the field is none. ``columns`` names
    the fields to deliver, all by default; the others are checked all the same, so that which lines
    are records does not depend on it. With ``header`` the first line that is no comment names the
    columns, in any order; columns that the schema does not have are ignored, and an optional
    field's column may be missing.
    """

    schema: Schema
    checks: Mapping[str, tuple[Check, ...]] = field(default_factory=lambda: MappingProxyType({}))
    columns: tuple[str, ...] | None = None
    header: bool = False

    def __post_init__(self) -> None:
        known = {member.name: value_type(member)[0] for member in self.schema.fields}
        for name in (*self.checks, *(self.columns or ())):
            if name not in known:
                raise SchemaError(
                    f"schema {self.schema.name} has no field {name!r}: it has {', '.join(known)}"
                )
        for name, checks in self.checks.items():
            for check in checks:
                if known[name] not in _APPLIES_TO[type(check)]:
                    raise SchemaError(f"field {name!r} of type {known[name]} cannot be {check}")

    def delivered(self) -> tuple[Field, ...]:
        """Return the fields of the delivered records, in schema order."""
        return tuple(
            member
            for member in self.schema.fields
            if self.columns is None or member.name in self.columns
        )

    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema of the delivered records."""
        return pa.schema(
            pa.field(member.name, kind, nullable=optional)
            for member in self.delivered()
            for kind, optional in [value_type(member)]
        )


def value_type(member: Field) -> tuple[pa.DataType, bool]:
    """Return a field's Arrow type, and whether it may be none.

    Raises SchemaError when one cell of a CSV file cannot hold it.
    """
    optional, kind = member.optional, member.type
    if isinstance(kind, Option):
        optional, kind = True, kind.of
    arrow = _ARROW.get(type(kind))
    if arrow is None:
        raise SchemaError(
            f"field {member.name!r} has type {type(member.type).__name__}, which a CSV file cannot "
            "hold; use String, Int, Int64, Float or Bool, optional or not"
        )
    return arrow, optional


_NUMBERS = (pa.int64(), pa.float64())
_APPLIES_TO: dict[type, tuple[pa.DataType, ...]] = {
    Finite: (pa.float64(),),
    Positive: _NUMBERS,
    InRange: _NUMBERS,
    NonEmpty: (pa.string(),),
}

TRADE_SCHEMA = Schema(
    "trade",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int()),
        Field("timestamp_ns", Int64()),
        Field("venue", String()),
    ),
)
TRADE_CHECKS: Mapping[str, tuple[Check, ...]] = MappingProxyType(
    {
        "symbol": (NonEmpty(),),
        "price": (Finite(),),
        "size": (Positive(),),
        "timestamp_ns": (InRange(0, TIMESTAMP_NS_END),),
    }
)
TRADES = CsvFormat(TRADE_SCHEMA, TRADE_CHECKS)
