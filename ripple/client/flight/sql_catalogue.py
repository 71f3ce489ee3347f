"""Metadata of Flight SQL: the outputs as tables.

Tables have the names under which DuckDB has them: ``temp.main.NAME``.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.client.flight import sql_info
from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.framing import schema_bytes
from ripple.core.extras import needed

with needed("cluster", "Flight SQL"):
    from google.protobuf.message import Message

    from ripple.client.flight.messages import flight_sql_pb2 as messages

if TYPE_CHECKING:
    from ripple.client.flight.tables import Tables

CATALOGUE, SCHEMA, TABLE = "temp", "main", "TABLE"

_LIKE = {"%": "*", "_": "?"}


def _schema(**columns: pa.DataType) -> pa.Schema:
    """Return a schema; a column whose name ends in _ may be null."""
    return pa.schema(
        [pa.field(name.rstrip("_"), kind, name.endswith("_")) for name, kind in columns.items()]
    )


_TEXT = pa.string()
_TABLES = _schema(catalog_name_=_TEXT, db_schema_name_=_TEXT, table_name=_TEXT, table_type=_TEXT)
_FOREIGN = pa.schema(
    [
        *(
            pa.field(f"{side}_{name}", _TEXT, name in {"catalog_name", "db_schema_name"})
            for side in ("pk", "fk")
            for name in ("catalog_name", "db_schema_name", "table_name", "column_name")
        ),
        pa.field("key_sequence", pa.int32(), nullable=False),
        pa.field("fk_key_name", _TEXT),
        pa.field("pk_key_name", _TEXT),
        pa.field("update_rule", pa.uint8(), nullable=False),
        pa.field("delete_rule", pa.uint8(), nullable=False),
    ]
)
_SCHEMAS: dict[type[Message], pa.Schema] = {
    messages.CommandGetCatalogs: _schema(catalog_name=_TEXT),
    messages.CommandGetDbSchemas: _schema(catalog_name_=_TEXT, db_schema_name=_TEXT),
    messages.CommandGetTables: _TABLES,
    messages.CommandGetTableTypes: _schema(table_type=_TEXT),
    messages.CommandGetPrimaryKeys: _schema(
        catalog_name_=_TEXT,
        db_schema_name_=_TEXT,
        table_name=_TEXT,
        column_name=_TEXT,
        key_sequence=pa.int32(),
        key_name_=_TEXT,
    ),
    messages.CommandGetSqlInfo: sql_info.SCHEMA,
    messages.CommandGetXdbcTypeInfo: sql_info.TYPES_SCHEMA,
    messages.CommandGetImportedKeys: _FOREIGN,
    messages.CommandGetExportedKeys: _FOREIGN,
    messages.CommandGetCrossReference: _FOREIGN,
}


class Catalogue:
    """Answers the metadata commands."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def schema(self, command: Message) -> pa.Schema:
        """Return the schema of an answer. Raises FlightError."""
        if type(command) not in _SCHEMAS:
            raise FlightError(Why.NOT_OFFERED, f"{command.DESCRIPTOR.name} is not offered")
        schema = _SCHEMAS[type(command)]
        if isinstance(command, messages.CommandGetTables) and command.include_schema:
            schema = schema.append(pa.field("table_schema", pa.binary(), nullable=False))
        return schema

    async def table(self, command: Message) -> pa.Table:
        """Return an answer. Raises FlightError."""
        schema = self.schema(command)
        if isinstance(command, messages.CommandGetSqlInfo):
            return sql_info.about(command.info)
        if isinstance(command, messages.CommandGetXdbcTypeInfo):
            rows = sql_info.types(command.data_type if command.HasField("data_type") else None)
        elif schema is _FOREIGN:
            rows = []  # outputs have no foreign keys
        else:
            rows = [row async for row in self._rows(command)]
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    async def _rows(self, command: Any) -> Any:
        where = (CATALOGUE, SCHEMA)
        if isinstance(command, messages.CommandGetCatalogs):
            yield (CATALOGUE,)
        elif isinstance(command, messages.CommandGetTableTypes):
            yield (TABLE,)
        elif isinstance(command, messages.CommandGetDbSchemas):
            if _is_here(command):
                yield where
        elif isinstance(command, messages.CommandGetPrimaryKeys):
            if command.table in await self._tables.names():
                keys = await self._tables.keys(command.table)
                for number, name in enumerate(keys, 1):
                    yield (*where, command.table, name, number, None)
        else:
            for name in await self._tables_of(command):
                known = (*where, name, TABLE)
                if command.include_schema:
                    table = await self._tables.table(name)
                    bare = table.schema.remove_metadata()
                    yield (*known, schema_bytes(bare))
                else:
                    yield known

    async def _tables_of(self, command: Any) -> list[str]:
        types = command.table_types
        if not _is_here(command) or (types and TABLE not in types):
            return []
        names = sorted(await self._tables.names())
        if command.HasField("table_name_filter_pattern"):
            return [n for n in names if _is_like(n, command.table_name_filter_pattern)]
        return names


def _is_here(command: Any) -> bool:
    """Return whether a command asks about the only catalogue and schema."""
    if command.HasField("catalog") and command.catalog != CATALOGUE:
        return False
    pattern = "db_schema_filter_pattern"
    return not command.HasField(pattern) or _is_like(SCHEMA, getattr(command, pattern))


def _is_like(text: str, pattern: str) -> bool:
    """Return whether a text matches a LIKE pattern: % is any text, _ any character."""
    # In time of at most the product of both lengths, for patterns of untrusted clients.
    glob = (f"[{c}]" if c in "*?[" else _LIKE.get(c, c) for c in pattern)
    return fnmatchcase(text, "".join(glob))
