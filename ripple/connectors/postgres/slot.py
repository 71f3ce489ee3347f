"""A replication slot: its state, and the number of changes before it, from ``ripple_slots``.

A slot has a position in the log and no number of changes. So before it advances both are written
to a table in the schema of the table read, and only then to the slot. The table is therefore never
behind the slot, unless another client has read from that slot.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.connectors.library_errors import said
from ripple.connectors.postgres.answers import AsyncConnection
from ripple.connectors.postgres.changes import Published
from ripple.connectors.postgres.messages import Column
from ripple.connectors.postgres.position import Position, lsn_text
from ripple.connectors.postgres.row import Rows, unknown_at_delete
from ripple.connectors.postgres.session import defaults, said_by
from ripple.core.errors import InputAwayError, InputError
from ripple.core.extras import needed

with needed("postgres", "a table of PostgreSQL"):
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import make_conninfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ripple.connectors.postgres.uri import PostgresUri
    from ripple.connectors.record_shape import RecordShape

CONNECT_S = 10
STATEMENT_MS = 30_000
TABLE = "ripple_slots"
PLUGIN = "pgoutput"
# As the server must write values for them to be read.
FORMS = "-c DateStyle=ISO -c TimeZone=UTC -c IntervalStyle=postgres -c extra_float_digits=1"


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot of a table's changes at one moment.

    server: its identifier, which is its own for ever. first, at: how many changes are before the
    place from which the slot can be read, and that place. is_known: whether that was written down,
    as it is before a slot advances. end: where the log ends. columns: of the table. published:
    a text that changes with the publication's settings for it.
    """

    server: str
    first: int
    at: Position
    is_known: bool
    end: int
    table: Published
    columns: tuple[Column, ...]
    published: str


class Slots:
    """Asks a server for the state of a slot, and records how far it may advance."""

    def __init__(self, place: PostgresUri, shape: RecordShape | None) -> None:
        """Ask for records of ``shape``; None: of any columns."""
        self.place, self._shape = place, shape
        self.name, self.publication = place.slot_and_publication()
        names = (place.schema, TABLE) if place.schema else (TABLE,)
        self._known = sql.Identifier(*names)

    def conninfo(self, **more: Any) -> str:
        """Return how a connection is made."""
        return make_conninfo(
            **self.place.settings(defaults()),
            connect_timeout=CONNECT_S,
            application_name=f"ripple {self.name}"[:63],
            client_encoding="UTF8",
            **more,
        )

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[psycopg.AsyncConnection]:
        """Connect; the body is one transaction."""
        options = f"-c statement_timeout={STATEMENT_MS}"
        async with await AsyncConnection.connect(self.conninfo(options=options)) as one:
            yield one

    async def look(self, *, was_read: bool = False) -> Slot:
        """Return the slot. Raises InputError if it cannot be read from; psycopg.Error.

        was_read: whether a run resumes it.
        """
        async with self.connected() as connection:
            table, columns = await self._table(connection)
            await self._check_published(connection, table.relation, columns)
            published = await self._publication(connection, table.relation)
            found = await _row(
                connection,
                "SELECT s.plugin, s.database, current_database(), s.wal_status, "
                "s.confirmed_flush_lsn::text, pg_current_wal_flush_lsn()::text, "
                "(SELECT system_identifier::text FROM pg_control_system()) "
                "FROM pg_replication_slots s WHERE slot_name = %s",
                [self.name],
            )
            known = await self._read_known(connection)
        if found is None and (known is not None or was_read):
            since = f" since {known[1]}" if known is not None else " that were not read yet"
            raise InputError(
                f"{self.place}: the slot {self.name!r} is gone, and with it the changes{since}: "
                f"{self._anew()}"
            )
        if found is None:
            raise InputError(
                f"{self.place}: there is no slot {self.name!r}: from when on it is there its "
                f"changes can be read (wal_level must be logical): SELECT {self._making()}"
            )
        plugin, database, here, status, confirmed, end, server = found
        if plugin != PLUGIN or database != here:
            raise InputError(
                f"{self.place}: the slot {self.name!r} is of plugin {plugin} and database "
                f"{database}, not of {PLUGIN} and {here}"
            )
        if status == "lost" or confirmed is None:
            raise InputError(
                f"{self.place}: the slot {self.name!r} is lost: the server has removed what it had "
                f"not sent yet (max_slot_wal_keep_size): {self._anew()}"
            )
        first, at = known or (0, Position.parse(confirmed))
        if Position.parse(confirmed).lsn > at.lsn:
            raise InputError(
                f"{self.place}: the slot {self.name!r} is at {confirmed}, and was left at "
                f"{lsn_text(at.lsn)}: another client has read from it, or it is another one: "
                f"{self._anew()}"
            )
        is_known, end_lsn = known is not None, Position.parse(end).lsn
        return Slot(server, first, at, is_known, end_lsn, table, columns, published)

    async def _publication(self, connection: psycopg.AsyncConnection, relation: int) -> str:
        """Return a text that changes with every change of the table's publication.

        Rows of catalogs are identified by their numbers and the transactions that wrote them: so a
        table that was taken out and put in again is detected, however soon that was done.
        """
        found = await _row(
            connection,
            "SELECT format('%%s/%%s.%%s', %(relation)s::oid, p.oid, p.xmin), "
            "(SELECT format('/%%s.%%s', r.oid, r.xmin) FROM pg_publication_rel r "
            "WHERE r.prpubid = p.oid AND r.prrelid = %(relation)s) "
            "FROM pg_publication p WHERE p.pubname = %(publication)s",
            {"relation": relation, "publication": self.publication},
        )
        return "".join(part or "" for part in found or ())

    async def ping(self) -> None:
        """Raise psycopg.Error if the server accepts no connection any more."""
        async with self.connected():
            pass

    async def prepare(self) -> None:
        """Create the table of slots, unless it exists; raises psycopg.Error."""
        async with self.connected() as connection:
            if not await self._is_known(connection):
                await connection.execute(
                    "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [TABLE]
                )
                await connection.execute(
                    sql.SQL(
                        "CREATE TABLE IF NOT EXISTS {} (slot text PRIMARY KEY, "
                        "position text NOT NULL, changes bigint NOT NULL)"
                    ).format(self._known)
                )

    async def know(self, changes: int, at: Position) -> None:
        """Say how many changes are before a position; never goes back. Raises psycopg.Error."""
        async with self.connected() as connection:
            await connection.execute(
                sql.SQL(
                    "INSERT INTO {} AS k VALUES (%s, %s, %s) ON CONFLICT (slot) DO UPDATE "
                    "SET position = EXCLUDED.position, changes = EXCLUDED.changes "
                    "WHERE k.changes <= EXCLUDED.changes"
                ).format(self._known),
                [self.name, str(at), changes],
            )

    async def _table(
        self, connection: psycopg.AsyncConnection
    ) -> tuple[Published, tuple[Column, ...]]:
        """Return the table and its columns, of which those in the key are told."""
        names = [name for name in (self.place.schema, self.place.table) if name]
        text = sql.Identifier(*names).as_string(connection)
        found = await _row(
            connection,
            "SELECT c.oid, n.nspname, c.relname, c.relreplident FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
            [text],
        )
        if found is None:
            raise await self._unseen(connection)
        relation, schema, name, identity = found
        rows = await connection.execute(
            "SELECT a.attname, a.atttypid, %(identity)s = 'f' OR "
            "coalesce(a.attnum = ANY(i.indkey), false) FROM pg_attribute a "
            "LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND "
            "CASE %(identity)s WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident "
            "ELSE false END WHERE a.attrelid = %(relation)s AND a.attnum > 0 "
            "AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum",
            {"relation": relation, "identity": identity},
        )
        columns = tuple([Column(*one) async for one in rows])
        return Published(relation, schema, name), columns

    async def _unseen(self, connection: psycopg.AsyncConnection) -> InputError:
        """Return why a table is not visible: a schema needs the right of usage."""
        found = await _row(
            connection,
            "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relname = %s AND n.nspname = ANY(CASE WHEN %s <> '' THEN ARRAY[%s] ELSE "
            "string_to_array(replace(current_setting('search_path'), '\"', ''), ', ') END) "
            "AND NOT has_schema_privilege(n.oid, 'USAGE')",
            [self.place.table, self.place.schema, self.place.schema],
        )
        if found is None:
            return InputError(f"{self.place}: there is no such table")
        return InputAwayError(f"{self.place}: permission denied for schema {found[0]}")

    async def _check_published(
        self, connection: psycopg.AsyncConnection, number: int, columns: tuple[Column, ...]
    ) -> None:
        """Raise InputError unless the publication covers the changes that the records need."""
        relation = sql.Identifier(*[n for n in (self.place.schema, self.place.table) if n])
        found = await _row(
            connection,
            "SELECT p.pubupdate, p.pubdelete, EXISTS (SELECT FROM pg_publication_tables t "
            "JOIN pg_class c ON c.relname = t.tablename JOIN pg_namespace n "
            "ON n.oid = c.relnamespace AND n.nspname = t.schemaname "
            "WHERE t.pubname = p.pubname AND c.oid = %s) FROM pg_publication p WHERE pubname = %s",
            [number, self.publication],
        )
        if found is None or not found[2]:
            how = "ALTER PUBLICATION {} ADD" if found else "CREATE PUBLICATION {} FOR"
            state = "does not publish the table" if found else "is not there"
            name = sql.Identifier(self.publication).as_string(connection)
            raise InputError(
                f"{self.place}: the publication {self.publication!r} {state}: "
                f"{how.format(name)} TABLE {relation.as_string(connection)} (one that is "
                "partitioned WITH (publish_via_partition_root))"
            )
        updates, deletes, _ = found
        key = frozenset(one.name for one in columns if one.is_key)
        if (updates or deletes) and not key:
            raise InputError(
                f"{self.place}: the table has no replica identity, so the server refuses to update "
                "and delete its rows as long as that is published: give it a primary key, or ALTER "
                "TABLE ... REPLICA IDENTITY FULL"
            )
        if self._shape is None:
            return
        Rows(str(self.place), columns, self._shape)
        unknown = unknown_at_delete(self._shape, key) if deletes else []
        if unknown:
            raise InputError(
                f"{self.place}: a delete has no more than {', '.join(sorted(key))}, and records "
                f"must have {', '.join(unknown)}: let these be optional, ALTER TABLE ... REPLICA "
                "IDENTITY FULL, or publish no deletes (publish = 'insert, update')"
            )

    async def _read_known(self, connection: psycopg.AsyncConnection) -> tuple[int, Position] | None:
        if not await self._is_known(connection):
            return None
        rows = await connection.execute(
            sql.SQL("SELECT changes, position FROM {} WHERE slot = %s").format(self._known),
            [self.name],
        )
        found = await rows.fetchone()
        return None if found is None else (found[0], Position.parse(found[1]))

    async def _is_known(self, connection: psycopg.AsyncConnection) -> bool:
        name = self._known.as_string(connection)
        found = await _row(connection, "SELECT to_regclass(%s)", [name])
        return found is not None and found[0] is not None

    def _making(self) -> str:
        return f"pg_create_logical_replication_slot('{self.name}', '{PLUGIN}')"

    def _anew(self) -> str:
        return (
            f"drop the slot, if it is there, and its row in {TABLE}, and start over, with another "
            "--checkpoint-dir and other outputs"
        )


def error_of(place: PostgresUri, error: BaseException) -> InputError:
    """Return an error in one line: the server's message, or why it cannot be reached."""
    if isinstance(error, InputError):
        return error
    why = said_by(error) if isinstance(error, psycopg.Error) else said(error)
    return InputAwayError(f"{place}: {why}")


def is_denied(error: BaseException) -> bool:
    """Whether an error denies access; libpq has no codes for errors while it connects."""
    return "authentication failed" in str(error) or "does not exist" in str(error)


async def _row(
    connection: psycopg.AsyncConnection, query: Any, given: Any
) -> tuple[Any, ...] | None:
    return await (await connection.execute(query, given)).fetchone()
