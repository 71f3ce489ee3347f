"""Records in records, flattened: each value is a field that is named by its path, ``user.id``.

In a flat schema a name with dots is a path: readers look for the whole name first, and then for a
member within a member. Where a part of the path is a field itself, the name is only a name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as kinds

from ripple.core.errors import SchemaError
from ripple.core.frozen import frozen
from ripple.model.schema.types import Field, Option, Record, Schema, bare_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

NESTED_DEPTH_MAX = 8  # records in each other, below the record itself


@frozen
class OptionalRecord:
    """An optional record in a record: it is there if any of its values is.

    path: its name. values: the fields that it became. required: those that are there if it is.
    """

    path: str
    values: tuple[str, ...]
    required: tuple[str, ...]


def flattened(schema: Schema) -> Schema:
    """Return a schema in which records in records are fields named by their paths.

    A field is optional if a record around it is. Raises SchemaError for names that clash, and for
    records that are more than NESTED_DEPTH_MAX deep.
    """
    for one in schema.fields:
        if isinstance(bare_type(one.type), Record):
            break
    else:
        return schema
    fields = tuple(_leaves(schema.fields, (), optional=False))
    names = set()
    for field in fields:
        if field.name in names:
            raise SchemaError(
                f"schema {schema.name} has a field {field.name!r} and a record with a field of "
                "that path: rename one"
            )
        names.add(field.name)
    return replace(schema, fields=fields)


def optional_records(schema: Schema) -> tuple[OptionalRecord, ...]:
    """Return the optional records in a schema that need more than one of their values."""
    found = []
    for path, inner in _optional(schema.fields, ()):
        leaves = tuple(_leaves(inner, path, optional=False))
        required = tuple(one.name for one in leaves if not one.optional)
        if required and len(leaves) > 1:
            names = tuple(one.name for one in leaves)
            found.append(OptionalRecord(".".join(path), names, required))
    return tuple(found)


def _leaves(fields: Iterable[Field], at: tuple[str, ...], *, optional: bool) -> Iterator[Field]:
    for field in fields:
        kind, path = bare_type(field.type), (*at, field.name)
        may_lack = optional or field.optional
        if isinstance(kind, Record):
            _check_record(path, kind)
            in_optional = may_lack or isinstance(field.type, Option)
            yield from _leaves(kind.fields, path, optional=in_optional)
        else:
            yield replace(field, name=".".join(path), optional=may_lack)


def _check_record(path: tuple[str, ...], kind: Record) -> None:
    name = ".".join(path)
    if len(path) > NESTED_DEPTH_MAX:
        raise SchemaError(
            f"{name}: records are more than {NESTED_DEPTH_MAX} deep (NESTED_DEPTH_MAX), of which "
            "columns are not made"
        )
    for field in kind.fields:
        if "." in field.name:
            raise SchemaError(f"the record {name!r} has a field {field.name!r}: its name has a dot")


def _optional(
    fields: Iterable[Field], at: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[Field, ...]]]:
    for field in fields:
        kind, path = bare_type(field.type), (*at, field.name)
        if isinstance(kind, Record):
            if field.optional or isinstance(field.type, Option):
                yield path, kind.fields
            yield from _optional(kind.fields, path)


def paths_in(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the names that are paths, and their parts."""
    known = tuple(names)
    found = {}
    for name in known:
        if "." not in name:
            continue
        parts = tuple(name.split("."))
        begun = {".".join(parts[:length]) for length in range(1, len(parts))}
        if begun and "" not in parts and begun.isdisjoint(known):
            found[name] = parts
    return found


def leaf_names(found: pa.Schema) -> list[str]:
    """Return the names of columns, of structs those of their values."""
    names: list[str] = []
    for field in found:
        if kinds.is_struct(field.type):
            inner = pa.schema([field.type.field(at) for at in range(field.type.num_fields)])
            names += (f"{field.name}.{name}" for name in leaf_names(inner))
        else:
            names.append(field.name)
    return names


def with_leaf_types(found: pa.Schema, wanted: Iterable[str], source: str) -> pa.Schema:
    """Return the columns of ``source``, and those within its structs that are ``wanted`` by path.

    Raises SchemaError where a value or a list is, and a record is meant.
    """
    for name, parts in paths_in(wanted).items():
        if found.get_field_index(parts[0]) < 0 or name in found.names:
            continue
        kind = found.field(parts[0]).type
        for at, part in enumerate(parts[1:], 1):
            if kinds.is_null(kind):
                break
            if not kinds.is_struct(kind):
                raise SchemaError(
                    f"column {'.'.join(parts[:at])!r} of {source} is {kind}, but the schema "
                    f"declares a record, with {name!r}"
                )
            index = kind.get_field_index(part)
            if index < 0:
                kind = None
                break
            kind = kind.field(index).type
        if kind is not None:
            found = found.append(pa.field(name, kind))
    return found


def with_leaves(records: pa.RecordBatch, paths: Mapping[str, tuple[str, ...]]) -> pa.RecordBatch:
    """Return records with a column for each of ``paths`` that is within their structs."""
    for name, parts in paths.items():
        if records.schema.get_field_index(parts[0]) < 0 or name in records.schema.names:
            continue
        column = _within(records.column(parts[0]), parts[1:])
        if column is not None:
            records = records.append_column(name, column)
    return records


def _within(column: pa.Array, parts: tuple[str, ...]) -> pa.Array | None:
    for part in parts:
        if kinds.is_null(column.type):
            return column
        index = column.type.get_field_index(part)
        if index < 0:
            return None
        # Where a struct is null its values are; .field() would show what lies below.
        column = column.flatten()[index]
    return column
