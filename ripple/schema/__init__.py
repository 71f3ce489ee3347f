"""Types that describe themselves: schemas, how they are derived, compared and fingerprinted."""

from __future__ import annotations

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
    "Variant",
]
