"""Opens changes of tables of PostgreSQL for reading, for the connector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from ripple.connectors.background import Background
from ripple.connectors.postgres import sink_opening as table
from ripple.connectors.postgres.inputs import PostgresInputs
from ripple.connectors.postgres.slot import Slots, error_of
from ripple.connectors.postgres.uri import PostgresUri
from ripple.connectors.settings import Stream
from ripple.core.errors import InputError, OutputError
from ripple.core.extras import needed

with needed("postgres", "a table of PostgreSQL"):
    import psycopg

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ripple.connectors.connector import Reading

T = TypeVar("T")
_ARROW = {
    16: pa.bool_(),
    **dict.fromkeys((20, 21, 23, 26), pa.int64()),
    **dict.fromkeys((700, 701), pa.float64()),
    **dict.fromkeys((1082, 1114, 1184), pa.timestamp("us", "UTC")),
}


def open_inputs(path: str, reading: Reading) -> PostgresInputs:
    """Return the changes; raises InputError."""
    return PostgresInputs(_place(path), reading)


def check(path: str) -> str:
    """Connect, and describe the table as a sink and as a source; raises OutputError."""
    found = table.check(path)
    slots = Slots(_place(path), None)
    try:
        slot = _asked(slots, slots.look())
    except InputError as error:
        return f"{found}; its changes cannot be read: {error}"
    return f"{found}; its changes from {slot.first} on are in the slot {slots.name!r}"


def discover(path: str) -> list[Stream]:
    """Return the tables of a database that are published, not all of many; raises InputError."""
    slots = Slots(_place(path), None)

    async def asked() -> list[tuple[Any, ...]]:
        async with slots.connected() as connection:
            found = await connection.execute(
                "SELECT t.schemaname, t.tablename, array_agg(a.attname ORDER BY a.attnum), "
                "array_agg(a.atttypid::bigint ORDER BY a.attnum) FROM "
                "(SELECT DISTINCT schemaname, tablename FROM pg_publication_tables) t "
                "JOIN pg_namespace n ON n.nspname = t.schemaname "
                "JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename "
                "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
                "AND NOT a.attisdropped AND a.attgenerated = '' "
                "GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 1000"
            )
            return await found.fetchall()

    return [
        Stream(
            str(slots.place._replace(schema=schema, table=table)),
            pa.schema(
                [
                    (name, _ARROW.get(kind, pa.string()))
                    for name, kind in zip(names, kinds, strict=True)
                ]
            ),
            replayable=True,
        )
        for schema, table, names, kinds in _asked(slots, asked())
    ]


def _place(path: str) -> PostgresUri:
    try:
        return PostgresUri.parse(path)
    except OutputError as error:
        raise InputError(str(error)) from error


def _asked(slots: Slots, what: Coroutine[Any, Any, T]) -> T:
    with Background() as loop:
        try:
            return loop.call(what)
        except (psycopg.Error, OSError) as error:
            raise error_of(slots.place, error) from error
