"""Schemas as Arrow schemas, and back.

=====================  ==========================================================
field type             Arrow type
=====================  ==========================================================
``String``             ``string``
``Int``, ``Int64``     ``int64``
``Float``, ``Bool``    ``double``, ``bool``
``Date``               ``date32``
``DateTime``           ``timestamp[ns, UTC]``
``Decimal``            ``decimal128``
``Uuid``               ``string``; ``arrow.uuid`` is read, too
``Bytes``              ``binary``
``Opaque``             ``string``: the text of the S-expression
``Option``             the same, nullable
``List``               ``list``
``Record``, ``Ref``    ``struct``
``Variant``            ``string`` if no case has arguments; otherwise a ``struct`` of
                       the case's name and, per case with arguments, a nullable
                       ``struct`` of them: Parquet and Polars have no unions
=====================  ==========================================================

An optional field is a nullable column. Metadata keeps the facts that Arrow has no word for (name,
version, docs, and per column the exact type), so that ``from_arrow(to_arrow(s)) == s``, also when a
table went through a tool that keeps metadata but turns every column nullable or every string large.
Columns without metadata are understood from their Arrow types: narrow integers are ``Int``,
``timestamp[ns]`` is ``Int64`` (nanoseconds since the epoch), nullable columns are optional. These
are columns as others have them; the engine's own have numbers for logical types
(``stored_fields`` of ``ripple.model.schema.logical``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types as pt

from ripple.core import sexp
from ripple.core.errors import SchemaError
from ripple.model.schema import notation
from ripple.model.schema.document import build, map_of, refuse_empty
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.text_columns import is_text
from ripple.model.schema.types import (
    DEPTH_MAX,
    Bool,
    Bytes,
    Date,
    Decimal,
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Logical,
    Opaque,
    Option,
    Record,
    Ref,
    Schema,
    String,
    Uuid,
    Variant,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# A few schemas that each refer twice to the next would otherwise grow without end.
COLUMNS_MAX = 10_000

_SCALARS: dict[FieldType, pa.DataType] = {
    String(): pa.string(),
    Int(): pa.int64(),
    Int64(): pa.int64(),
    Float(): pa.float64(),
    Bool(): pa.bool_(),
    Opaque(): pa.string(),
}

_FOREIGN: dict[pa.DataType, FieldType] = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), Int()),
    **dict.fromkeys((pa.uint8(), pa.uint16(), pa.uint32()), Int()),
    pa.int64(): Int64(),
    pa.timestamp("ns"): Int64(),
    pa.timestamp("ns", "UTC"): Int64(),
    pa.date32(): Date(),
    pa.uuid(): Uuid(),
    **dict.fromkeys((pa.binary(), pa.large_binary()), Bytes()),
    pa.float32(): Float(),
    pa.float64(): Float(),
    pa.bool_(): Bool(),
}

_ADVICE = (
    (pt.is_timestamp, "cast it to timestamp[ns] in UTC, or to int64 nanoseconds"),
    (pt.is_temporal, "cast it to int64"),
    (pt.is_decimal, "cast it to string, or to int64 in the smallest unit"),
    (pt.is_map, "use texts as its keys, or a list of structs"),
    (pt.is_uint64, "cast it to int64"),
)


def to_arrow(schema: Schema, schemas: Mapping[str, Schema] | None = None) -> pa.Schema:
    """Return the Arrow schema; ``schemas`` are the targets of a ``Ref``.

    Raises SchemaError naming a field that has no column: a ``Ref``
    to an unknown schema or to one that contains itself, and an option of an option (an optional
    field of an option is one), since a column has one kind of null.
    """
    refuse_empty(schema.name, "schema", schema.fields)
    walk = _Walk({**(schemas or {}), schema.name: schema})
    columns = []
    for field in schema.fields:
        column = walk.column(field, schema.name)
        metadata = {
            "ripple.type": sexp.dumps(notation.type_to_sexp(field.type)),
            "ripple.optional": "true" if field.optional else "false",
            **_doc(field.doc),
        }
        columns.append(column.with_metadata(metadata))
    metadata = {"ripple.name": schema.name, "ripple.version": str(schema.version)}
    return pa.schema(columns, metadata={**metadata, **_doc(schema.doc)})


def from_arrow(arrow: pa.Schema, *, name: str | None = None, version: int | None = None) -> Schema:
    """Return the schema of an Arrow schema; ``name`` and ``version`` replace those in it.

    Raises SchemaError naming the column that cannot be expressed or has another Arrow type than its
    metadata says; and if the schema has no name.
    """
    known = _texts(arrow.metadata)
    name = name or known.get("ripple.name")
    if not name:
        raise SchemaError("this Arrow schema has no name in its metadata: give name=")
    declared = known.get("ripple.version", "1")
    if version is None and not (declared.isascii() and declared.isdigit() and len(declared) < 19):
        raise SchemaError(f"{name}: the metadata ripple.version is {declared!r}, no whole number")
    refuse_empty(name, "schema", arrow.names)
    return Schema(
        name,
        tuple(_field(column, f"{name}.{column.name}") for column in arrow),
        int(declared) if version is None else version,
        known.get("ripple.doc"),
    )


class _Walk:
    """One conversion: knows the references it is inside of, because no column is infinite."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._inside: list[str] = []
        self._columns = 0

    def column(self, field: Field, path: str) -> pa.Field:
        path = f"{path}.{field.name}"
        self._columns += 1
        if self._columns > COLUMNS_MAX:
            raise SchemaError(f"{path}: more than {COLUMNS_MAX} columns (COLUMNS_MAX)")
        if field.optional and isinstance(field.type, Option):
            raise SchemaError(f"{path}: an optional field of an option has two kinds of null")
        nullable = field.optional or isinstance(field.type, Option)
        return pa.field(field.name, self.type(field.type, path), nullable=nullable)

    def type(self, kind: FieldType, path: str) -> pa.DataType:
        match kind:
            case Option(Option()):
                raise SchemaError(f"{path}: an option of an option has two kinds of null")
            case Option():
                return self.type(kind.of, path)
            case List():
                inner = self.type(kind.of, f"{path}[]")
                return pa.list_(pa.field("item", inner, nullable=isinstance(kind.of, Option)))
            case Record():
                return pa.struct([self.column(field, path) for field in kind.fields])
            case Variant():
                columns = variant_columns(kind)
                return self.type(columns, path) if columns else pa.string()
            case Ref():
                return self._reference(kind.name, path)
            case Logical():
                return rule_of(kind).arrow
            case _:
                return _SCALARS[kind]

    def _reference(self, name: str, path: str) -> pa.DataType:
        if name not in self._schemas:
            raise SchemaError(f"{path}: no schema named {name!r} among those given (schemas=)")
        if name in self._inside or len(self._inside) >= DEPTH_MAX:
            raise SchemaError(f"{path}: schema {name!r} contains itself, which no column can")
        self._inside.append(name)
        result = self.type(Record(self._schemas[name].fields), path)
        self._inside.pop()
        return result


def variant_columns(kind: Variant) -> Record | None:
    """Return the record that a variant is as columns, or None if the case's name says it all.

    Its first field holds the case's name. Each case with arguments has a field of its own name,
    present in that case only, with the arguments under their positions from ``"0"`` on.
    """
    cases = [case for case in kind.cases if case.args]
    if not cases:
        return None
    tag = "case"
    while tag in (case.name for case in cases):
        tag += "_"
    arguments = [
        Record(tuple(Field(str(index), arg) for index, arg in enumerate(case.args)))
        for case in cases
    ]
    return Record(
        (
            Field(tag, String()),
            *(Field(case.name, args, True) for case, args in zip(cases, arguments, strict=True)),
        )
    )


def _field(column: pa.Field, path: str) -> Field:
    known = _texts(column.metadata)
    doc = known.get("ripple.doc")
    if "ripple.type" not in known:
        return Field(column.name, _infer(column.type, path, 1), column.nullable, doc)
    kind = notation.type_from_sexp(sexp.loads(known["ripple.type"]))
    if not _holds(column.type, kind):
        raise SchemaError(
            f"{path}: the column is {column.type}, but its metadata says {known['ripple.type']}: "
            "cast the column back, or drop its metadata"
        )
    return Field(column.name, kind, known.get("ripple.optional") == "true", doc)


def _infer(arrow: pa.DataType, path: str, depth: int) -> FieldType:
    if depth > DEPTH_MAX:
        raise SchemaError(f"{path}: nested deeper than {DEPTH_MAX} (DEPTH_MAX)")
    if arrow in _FOREIGN:
        return _FOREIGN[arrow]
    if _is_text(arrow):
        return String()
    if pt.is_decimal128(arrow) and 0 <= arrow.scale <= arrow.precision:
        return Decimal(arrow.precision, arrow.scale)
    if _is_list(arrow):
        item = arrow.value_field
        kind = _infer(item.type, f"{path}[]", depth + 1)
        return List(Option(kind) if item.nullable else kind)
    if pt.is_map(arrow) and _is_text(arrow.key_type):
        return map_of(path, _infer(arrow.item_type, f"{path}{{}}", depth + 1))
    if pt.is_struct(arrow):
        return build(path, Record, tuple(_infer_field(child, path, depth) for child in arrow))
    advice = next((text for test, text in _ADVICE if test(arrow)), "no field type can hold it")
    raise SchemaError(f"{path}: Arrow type {arrow} cannot be expressed: {advice}")


def _infer_field(column: pa.Field, path: str, depth: int) -> Field:
    kind = _infer(column.type, f"{path}.{column.name}", depth + 1)
    return Field(column.name, kind, column.nullable)


def _holds(arrow: pa.DataType, kind: FieldType) -> bool:
    match kind:
        case Option():
            return _holds(arrow, kind.of)
        case String() | Opaque():
            return _is_text(arrow)
        case List():
            return _is_list(arrow) and _holds(arrow.value_type, kind.of)
        case Record():
            return (
                pt.is_struct(arrow)
                and [child.name for child in arrow] == [field.name for field in kind.fields]
                and all(
                    _holds(child.type, field.type)
                    for child, field in zip(arrow, kind.fields, strict=True)
                )
            )
        case Variant():
            columns = variant_columns(kind)
            return _holds(arrow, columns) if columns else _is_text(arrow)
        case Ref():
            return bool(pt.is_struct(arrow))
        case Uuid():
            return _is_text(arrow)
        case Bytes():
            return rule_of(kind).takes(arrow)
        case Logical():
            return bool(arrow == rule_of(kind).arrow)
        case _:
            return bool(arrow == _SCALARS[kind])


def _is_text(arrow: pa.DataType) -> bool:
    return _is_text(arrow.value_type) if pt.is_dictionary(arrow) else is_text(arrow)


def _is_list(arrow: pa.DataType) -> bool:
    return bool(pt.is_list(arrow) or pt.is_large_list(arrow) or pt.is_fixed_size_list(arrow))


def _doc(doc: str | None) -> dict[str, str]:
    return {} if doc is None else {"ripple.doc": doc}


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in (metadata or {}).items()
    }
