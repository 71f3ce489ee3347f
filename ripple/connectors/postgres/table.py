"""The statements of a table: creation, checks of its columns, and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

import pyarrow as pa

from ripple.connectors.files.text.sink import TextFormat
from ripple.core.errors import OutputError
from ripple.core.extras import needed
from ripple.core.row_ops import OP, OP_NAMES, OP_SET
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.types import Schema

with needed("postgres", "a table of PostgreSQL"):
    from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from psycopg import Connection, Cursor

    from ripple.connectors.postgres.uri import PostgresUri
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.types import Field

STAGED: LiteralString = "ripple_staged"
POSITION: LiteralString = "ripple_n"
KEYS_READ = 10_000

# What the server calls columns of its own, and we those of the table that changes are copied to.
TAKEN = {"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", POSITION}
NAME_BYTES_MAX = 63

_TYPES: dict[pa.DataType, LiteralString] = {
    pa.binary(): "text",  # base64, as in files of text
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.float64(): "double precision",
    pa.int64(): "bigint",
    pa.string(): "text",
    pa.timestamp("ns", "UTC"): "text",  # with all digits: a timestamptz has microseconds
}
_OTHER: LiteralString = "json"  # its text as it was: jsonb has no -0.0, and other digits


class Found(NamedTuple):
    """A table that is there: its number, and the names and types of its columns."""

    number: int
    columns: dict[str, str]


class Table:
    """The table of an output's rows, one a key; the columns are its fields, in their order.

    Changes are copied to a table of the session (``stage``), from which ``apply`` takes the newest
    of each key: so a row is written once a transaction, for any number of changes. Of events it
    takes each: their table has no key.
    """

    def __init__(self, place: PostgresUri, plan: Plan, output: Output) -> None:
        self.place = place
        self.columns = {field.name: _type_of(field) for field in output.fields}
        for name in self.columns:
            if name in TAKEN or len(name.encode()) > NAME_BYTES_MAX:
                why = "is its own" if name in TAKEN else f"has more than {NAME_BYTES_MAX} bytes"
                raise OutputError(
                    f"cannot write {place}: a table of PostgreSQL can have no column {name!r}, a "
                    f"name that {why}: call it otherwise in the pipeline"
                )
        self._is_stream = output.is_stream
        self._key = [field.name for field in plan.key_of(output)]
        self._values = [name for name in self.columns if name not in self._key]
        names = (place.schema, place.table) if place.schema else (place.table,)
        self._table = sql.Identifier(*names)
        self._staged = sql.Identifier("pg_temp", STAGED)
        self.format = TextFormat(
            "csv", removes="skip" if self._is_stream else "mark", columns=tuple(self.columns)
        )
        staged = self.columns if self._is_stream else [OP, *self.columns]
        self.copy = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
            self._staged, _listed(staged)
        )

    def found(self, cursor: Cursor[tuple[Any, ...]]) -> Found | None:
        """Return the table that is there; None if none is."""
        cursor.execute("SELECT to_regclass(%s)::oid", [self._table.as_string(cursor)])
        (oid,) = cursor.fetchone() or (None,)
        if oid is None:
            return None
        cursor.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [oid],
        )
        return Found(oid, {str(name): str(kind) for name, kind in cursor})

    def check(self, found: Found, number: int | None = None) -> None:
        """Raise OutputError, which names a column, unless all are there, of their types.

        number: of the table that was written until now, if it is known: it must be that one.
        """
        if number is not None and found.number != number:
            raise OutputError(
                f"cannot write {self.place}: it is another table than the one that was written "
                "until now: bring that one back, or remove this one and its rows in ripple_outputs "
                "to start over"
            )
        for name, kind in self.columns.items():
            if found.columns.get(name) != kind:
                own = found.columns.get(name)
                there = f"which is {own} there" if own else "which is not there"
                raise OutputError(
                    f"cannot write {self.place}: the output has a column {name!r} ({kind}), "
                    f"{there}. Name another table, or rename this one"
                )

    def make(self, connection: Connection) -> None:
        """Create the table, with its key if it has one."""
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind))
            for name, kind in self.columns.items()
        )
        connection.execute(sql.SQL("CREATE TABLE {} ({})").format(self._table, columns))
        if self._is_stream:
            return
        # Without a key there is one row.
        connection.execute(
            sql.SQL("CREATE UNIQUE INDEX ON {} {}").format(self._table, self._conflict())
        )

    def empty(self, connection: Connection) -> None:
        """Remove all rows."""
        connection.execute(sql.SQL("DELETE FROM {}").format(self._table))

    def prepare(self, connection: Connection) -> None:
        """Make the table that changes are copied to: of this session, empty at each commit."""
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(_staged_as(kind)))
            for name, kind in self.columns.items()
        )
        connection.execute(
            sql.SQL(
                "CREATE TEMPORARY TABLE {} ({} bigint GENERATED ALWAYS AS IDENTITY, {} text, {}) "
                "ON COMMIT DELETE ROWS"
            ).format(sql.Identifier(STAGED), sql.Identifier(POSITION), sql.Identifier(OP), columns)
        )

    def stage(self, connection: Connection, lines: Iterable[bytes]) -> None:
        """Copy changes, as lines of CSV in ``format``."""
        with connection.cursor().copy(self.copy) as copy:
            for each in lines:
                copy.write(each)

    def keys(self, connection: Connection, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the fields ``key`` of all rows, with ``op``."""
        names = _listed(key) if key else sql.SQL("1")
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("SELECT {} FROM {}").format(names, self._table))
            while rows := cursor.fetchmany(KEYS_READ):
                columns = zip(*rows, strict=True) if key else ()
                named = dict(zip(key, map(pa.array, columns), strict=True))
                yield pa.record_batch({**named, OP: pa.array([OP_NAMES[OP_SET]] * len(rows))})
        connection.commit()

    def apply(self, connection: Connection) -> None:
        """Bring the newest staged change of each key into the table, or all events."""
        if self._is_stream:
            names = _listed(self.columns)
            connection.execute(
                sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} ORDER BY {}").format(
                    self._table, names, names, self._staged, sql.Identifier(POSITION)
                )
            )
            return
        connection.execute(
            sql.SQL("DELETE FROM {} AS t USING ({}) AS s WHERE s.{} = 'remove'{}").format(
                self._table, self._newest(), sql.Identifier(OP), self._same_key()
            )
        )
        names = _listed(self.columns)
        connection.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT {} FROM ({}) AS s WHERE {} <> 'remove' {}").format(
                self._table, names, names, self._newest(), sql.Identifier(OP), self._replace()
            )
        )

    def longest_key(self, connection: Connection) -> str:
        """Return the beginning of the longest key that is staged, and how long it is."""
        names = map(sql.Identifier, self._key)
        key = sql.SQL("concat_ws(',', {})").format(sql.SQL(", ").join(names))
        found = connection.execute(
            sql.SQL(
                "SELECT left({0}, 40), octet_length({0}) FROM {1} ORDER BY 2 DESC LIMIT 1"
            ).format(key, self._staged)
        ).fetchone()
        return f"{found[0]!r}... of {found[1]} bytes" if found is not None else ""

    def _newest(self) -> sql.Composed:
        by = sql.SQL("").join(sql.SQL("{}, ").format(sql.Identifier(name)) for name in self._key)
        once = sql.SQL("DISTINCT ON ({}) *").format(_listed(self._key))
        return sql.SQL("SELECT {} FROM {} ORDER BY {}{} DESC{}").format(
            once if self._key else sql.SQL("*"),
            self._staged,
            by,
            sql.Identifier(POSITION),
            sql.SQL("" if self._key else " LIMIT 1"),
        )

    def _same_key(self) -> sql.Composed:
        return sql.SQL("").join(
            sql.SQL(" AND t.{} = s.{}").format(sql.Identifier(name), sql.Identifier(name))
            for name in self._key
        )

    def _conflict(self) -> sql.Composable:
        return sql.SQL("({})").format(_listed(self._key)) if self._key else sql.SQL("((true))")

    def _replace(self) -> sql.Composed:
        if not self._values:
            return sql.SQL("ON CONFLICT {} DO NOTHING").format(self._conflict())
        values = sql.SQL(", ").join(
            sql.SQL("{} = EXCLUDED.{}").format(sql.Identifier(name), sql.Identifier(name))
            for name in self._values
        )
        return sql.SQL("ON CONFLICT {} DO UPDATE SET {}").format(self._conflict(), values)


def _type_of(field: Field) -> LiteralString:
    # By the column that comes: the values of an enumeration are texts there, and no JSON.
    kind = to_arrow(Schema("row", (field,))).field(0).type
    return "numeric" if pa.types.is_decimal(kind) else _TYPES.get(kind, _OTHER)


def _staged_as(kind: LiteralString) -> LiteralString:
    # Compared byte by byte: only equality matters, and collations are slow to compare.
    return f'{kind} COLLATE "C"' if kind == "text" else kind


def _listed(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
