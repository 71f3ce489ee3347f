"""Rows and tables with columns of numbers shown as dates, times and decimals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.core.frozen import frozen
from ripple.core.sexp import dumps, loads
from ripple.model.schema.logical.columns import shown
from ripple.model.schema.logical.fields import has_logical
from ripple.model.schema.logical.maps import map_column
from ripple.model.schema.notation import type_from_sexp, type_to_sexp
from ripple.model.schema.types import Dict, bare_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.model.schema.types import Field, FieldType

NOTE = "ripple.type"  # in the metadata of a column


@frozen
class Showing:
    """Turns columns of numbers into columns of dates, times and decimals. fields: of these.

    maps: the fields among them that become Arrow's maps, and are texts of JSON otherwise.
    """

    fields: tuple[Field, ...]
    maps: frozenset[str] = frozenset()

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the columns of these fields shown, as far as the rows have them."""
        columns, found = rows.columns, list(rows.schema)
        for field in self.fields:
            at = rows.schema.get_field_index(field.name)
            if at >= 0:
                kind = bare_type(field.type)
                if field.name in self.maps and isinstance(kind, Dict):
                    columns[at] = map_column(columns[at], kind)
                else:
                    columns[at] = shown(columns[at], kind)
                found[at] = pa.field(field.name, columns[at].type, found[at].nullable)
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(found, rows.schema.metadata))


def note_of(kind: FieldType) -> dict[str, str] | None:
    """Return the metadata of a column of numbers, with its type; None for another type."""
    return {NOTE: dumps(type_to_sexp(kind))} if has_logical(kind) else None


def noted(table: pa.Table) -> pa.Table:
    """Return a table of an engine with its columns shown, by their metadata; see ``note_of``."""
    columns, found = table.columns, list(table.schema)
    for at, field in enumerate(table.schema):
        kind = _noted_kind(field)
        if kind is not None:
            chunks = columns[at].chunks or [pa.array([], field.type)]
            columns[at] = pa.chunked_array([shown(chunk, kind) for chunk in chunks])
            found[at] = pa.field(field.name, columns[at].type, field.nullable)
    return pa.Table.from_arrays(columns, schema=pa.schema(found, table.schema.metadata))


def shown_type(field: pa.Field) -> pa.DataType | None:
    """Return the type of a column that ``noted`` shows; None where it stays."""
    kind = _noted_kind(field)
    return None if kind is None else shown(pa.array([], field.type), kind).type


def _noted_kind(field: pa.Field) -> FieldType | None:
    said = (field.metadata or {}).get(NOTE.encode())
    return None if said is None else type_from_sexp(loads(said.decode()))


def showing(fields: Iterable[Field], maps: Iterable[str] = ()) -> Showing | None:
    """Return the ``Showing`` of these fields; None if none has a logical type."""
    found = tuple(field for field in fields if has_logical(field.type))
    return Showing(found, frozenset(maps)) if found else None


def map_names(fields: Iterable[Field], key: Iterable[str]) -> list[str]:
    """Return the fields that become maps in an output. Fields of its key stay texts, to compare."""
    keys = set(key)
    return [
        one.name for one in fields if isinstance(bare_type(one.type), Dict) and one.name not in keys
    ]


def shown_schema(stored: pa.Schema, fields: Iterable[Field], maps: Iterable[str] = ()) -> pa.Schema:
    """Return the schema of shown rows. stored: the schema inside. maps: as of ``Showing``."""
    of = {field.name: field for field in fields}
    show = Showing(tuple(of[one.name] for one in stored if one.name in of), frozenset(maps))
    rows = show(pa.RecordBatch.from_pylist([], stored))
    return pa.schema(
        [one.with_type(rows.schema.field(one.name).type) for one in stored], stored.metadata
    )
