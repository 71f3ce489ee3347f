"""Types that describe themselves: schemas, how they are compared, projected and fingerprinted.

types       the closed set of field types; checks: beyond the type; document: from outside, bounded
logical     types with columns of numbers or texts: the rule of each, their columns and values
compat      may one read another's records; projection: reads it; fingerprint
arrow, avro, json_schema, notation  as others write schemas; avro_times: their units
time_form   how sources write times; date_form, uuid_form, bytes_form
time_texts, byte_texts  loops over texts
values, columns, well_formed    values and columns of users' code, where nothing is lost
exported, inside, failing   columns where they lie, and whether all of their values pass
"""

from __future__ import annotations

from ripple.model.schema.checks import Checks, TimedChecks
from ripple.model.schema.compat import (
    Compatibility,
    Compatible,
    Incompatibility,
    IncompatibilityKind,
    Incompatible,
    check_backward,
    check_forward,
    check_full,
    check_readable,
)
from ripple.model.schema.fingerprint import fingerprint, layout_hash
from ripple.model.schema.projection import project
from ripple.model.schema.types import (
    Bool,
    Bytes,
    Case,
    Date,
    DateTime,
    Decimal,
    Dict,
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
    Uuid,
    Variant,
)

__all__ = [
    "Bool",
    "Bytes",
    "Case",
    "Checks",
    "Compatibility",
    "Compatible",
    "Date",
    "DateTime",
    "Decimal",
    "Dict",
    "Field",
    "FieldType",
    "Float",
    "Incompatibility",
    "IncompatibilityKind",
    "Incompatible",
    "Int",
    "Int64",
    "List",
    "Opaque",
    "Option",
    "Record",
    "Ref",
    "Schema",
    "String",
    "TimedChecks",
    "Uuid",
    "Variant",
    "check_backward",
    "check_forward",
    "check_full",
    "check_readable",
    "fingerprint",
    "layout_hash",
    "project",
]
