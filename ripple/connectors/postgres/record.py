"""Cut records of outputs, in a table of the same schema: ``ripple_outputs``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.connector import Part
from ripple.connectors.contract import Commit
from ripple.connectors.files.text.cut_record import Owner
from ripple.core.errors import OutputError
from ripple.core.extras import needed

with needed("postgres", "a table of PostgreSQL"):
    from psycopg import sql

if TYPE_CHECKING:
    from psycopg import Connection

    from ripple.connectors.postgres.uri import PostgresUri

NAME = "ripple_outputs"


class Record(NamedTuple):
    """The record of a table: its output, and its part's commit.

    epoch: of the part's owner, 0 without. commit: None before the first one, and of a one-shot run.
    relation: the number of the table, None if an older version did not note it.
    """

    owner: Owner
    part: Part
    epoch: int
    commit: Commit | None
    relation: int | None


class Records:
    """The records of one table: a row a part, changed in the transactions that change the table."""

    def __init__(self, place: PostgresUri) -> None:
        self._place = place
        names = (place.schema, NAME) if place.schema else (NAME,)
        self._records = sql.Identifier(*names)

    def ensure(self, connection: Connection) -> None:
        """Make the table of records if there is none, once for concurrent callers."""
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [NAME])
        connection.execute(
            sql.SQL(
                "CREATE TABLE IF NOT EXISTS {} (of_table text, part integer, parts integer, "
                "pipeline text, output text, epoch bigint, cut text, digest text, "
                "relation oid, PRIMARY KEY (of_table, part))"
            ).format(self._records)
        )
        missing = connection.execute(
            "SELECT WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass(%s) "
            "AND attname = 'relation' AND NOT attisdropped)",
            [self._records.as_string(connection)],
        ).fetchone()
        if missing is not None:
            connection.execute(
                sql.SQL("ALTER TABLE {} ADD COLUMN relation oid").format(self._records)
            )
        connection.commit()

    def is_there(self, connection: Connection) -> bool:
        """Whether there is a table of records."""
        found = connection.execute(
            "SELECT to_regclass(%s)", [self._records.as_string(connection)]
        ).fetchone()
        return found is not None and found[0] is not None

    def all(self, connection: Connection) -> list[Record]:
        """Return the records of all parts of this table."""
        rows = connection.execute(
            sql.SQL(
                "SELECT part, parts, pipeline, output, epoch, cut, digest, "
                "nullif(to_jsonb(r)->>'relation', '')::bigint FROM {} AS r "
                "WHERE of_table = %s ORDER BY part"
            ).format(self._records),
            [self._place.table],
        )
        return [
            Record(
                Owner(pipeline, output),
                Part(part, parts),
                epoch,
                Commit(json.loads(cut), digest) if cut is not None else None,
                relation,
            )
            for part, parts, pipeline, output, epoch, cut, digest, relation in rows
        ]

    def claim(
        self, connection: Connection, owner: Owner, part: Part, epoch: int, relation: int
    ) -> Commit | None:
        """Become the writer of a part of a table, and return its commit.

        Waits for a transaction of the previous owner that is under way. Raises OutputError if the
        part has a newer owner.
        """
        connection.execute(
            sql.SQL("INSERT INTO {} VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING").format(
                self._records
            ),
            [self._place.table, part.number, part.of, owner.pipeline, owner.output, epoch],
        )
        found = connection.execute(
            sql.SQL(
                "UPDATE {} SET epoch = %s, relation = %s "
                "WHERE of_table = %s AND part = %s AND epoch <= %s "
                "RETURNING cut, digest"
            ).format(self._records),
            [epoch, relation, self._place.table, part.number, epoch],
        ).fetchone()
        if found is None:
            raise OutputError(
                f"cannot write {self._place}: partition {part.number} has a newer owner than this "
                f"one, of epoch {epoch}"
            )
        cut, digest = found
        return Commit(json.loads(cut), digest) if cut is not None else None

    def reach(
        self,
        connection: Connection,
        part: Part,
        epoch: int,
        before: Commit | None,
        after: Commit,
    ) -> bool:
        """Record the commit of this transaction; return whether it was ``before`` until now.

        It was not if another owner has written, or a presumably lost commit was made.
        """
        done = connection.execute(
            sql.SQL(
                "UPDATE {} SET cut = %s, digest = %s WHERE of_table = %s AND part = %s "
                "AND epoch = %s AND cut IS NOT DISTINCT FROM %s"
            ).format(self._records),
            [
                _text(after),
                after.digest,
                self._place.table,
                part.number,
                epoch,
                _text(before) if before is not None else None,
            ],
        )
        return done.rowcount == 1

    def forget(self, connection: Connection) -> None:
        """Remove the records of this table."""
        connection.execute(
            sql.SQL("DELETE FROM {} WHERE of_table = %s").format(self._records),
            [self._place.table],
        )


def _text(commit: Commit) -> str:
    return json.dumps(dict(commit.cut), sort_keys=True)
