"""Types that describe themselves: schemas, how they are derived, compared and fingerprinted."""

from __future__ import annotations

from ripple.schema.derive import schema_of, schemas_of, time_field_of
from ripple.schema.record import Timestamp, record
from ripple.schema.types import (
    Bool,
    Case,
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Opaque,
    Option,
    Record,
    Ref,
    Schema,
    String,
    Variant,
)

__all__ = [
    "Bool",
    "Case",
    "Field",
    "FieldType",
    "Float",
    "Int",
    "Int64",
    "List",
    "Opaque",
    "Option",
    "Record",
    "Ref",
    "Schema",
    "String",
    "Timestamp",
    "Variant",
    "record",
    "schema_of",
    "schemas_of",
    "time_field_of",
]
