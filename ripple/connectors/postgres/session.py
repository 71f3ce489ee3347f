"""A connection to the database of a table, and its rights to write there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.library_errors import said
from ripple.connectors.postgres.answers import Connection
from ripple.connectors.postgres.record import Records
from ripple.core.errors import OutputError
from ripple.core.extras import needed

with needed("postgres", "a table of PostgreSQL"):
    import psycopg
    from psycopg.conninfo import make_conninfo
    from psycopg.pq import Conninfo

if TYPE_CHECKING:
    from ripple.connectors.connector import Part
    from ripple.connectors.contract import Commit
    from ripple.connectors.files.text.cut_record import Owner
    from ripple.connectors.postgres.record import Record
    from ripple.connectors.postgres.table import Found, Table
    from ripple.connectors.postgres.uri import PostgresUri

CONNECT_S = 10
# A transaction takes as long as its rows; one in which nothing happens is of a process that is
# frozen or cut off, and the next owner waits for its end.
IDLE_MS = 10_000
LOCK_MS = 30_000
SESSION_MS = 2000

NO_EPOCH = 0
"""Of a run that continues its table alone; owners of a cluster have epochs from 1."""
PLAIN = -1
"""Of a run that has written the table whole, and goes on nowhere."""

_SHARE = "SELECT pg_try_advisory_lock_shared(hashtextextended(%s, 1))"


def defaults() -> dict[str, str]:
    """Return libpq's default; "" if there is none."""
    error_of = Conninfo.get_defaults()
    return {one.keyword.decode(): one.val.decode() if one.val else "" for one in error_of}


def connected(place: PostgresUri, subject: str) -> psycopg.Connection:
    """Return a connection that begins transactions by itself; raises psycopg.Error.

    subject: of the connection, for the server's list of connections.
    """
    settings = make_conninfo(
        **place.settings(defaults()),
        connect_timeout=CONNECT_S,
        application_name=f"ripple {subject}"[:63],
        # A machine that has gone without a word is otherwise waited for for hours.
        keepalives_idle=10,
        tcp_user_timeout=30_000,
    )
    connection = Connection.connect(settings)
    connection.settings = settings
    try:
        connection.execute("SET client_encoding = 'UTF8'")
        connection.execute(f"SET idle_in_transaction_session_timeout = {IDLE_MS}")
        connection.execute(f"SET lock_timeout = {LOCK_MS}")
        connection.commit()
    except BaseException:
        connection.close()
        raise
    return connection


class Claim(NamedTuple):
    """The commit of a part, its owner's epoch, and the number of the table."""

    commit: Commit | None
    epoch: int
    relation: int


def looked_at(
    connection: psycopg.Connection, table: Table, owner: Owner, part: Part, epoch: int | None
) -> int:
    """Raise as ``claimed`` does, with nothing changed; return the newest epoch of the part."""
    records = Records(table.place)
    known = records.all(connection) if records.is_there(connection) else []
    newest = _checked(table, table.found(connection.cursor()), known, owner, part)
    if epoch is None:
        _take_session(connection, table)
    return newest


def claimed(
    connection: psycopg.Connection,
    table: Table,
    owner: Owner,
    part: Part,
    epoch: int | None,
    *,
    held: int | None = None,
) -> Claim:
    """Become the owner of a part of a table.

    Return its commit, the table's number, and the epoch: if none was assigned, that of the
    connection before, ``held``, or the one after the newest, if owners had any. A missing table is
    created. Raises OutputError for a table that is not the owner's or another one, for a part with
    a newer owner, and for another run's; psycopg.Error.
    """
    records = _alone(connection, table)
    if epoch is None:
        _take_session(connection, table)
    else:  # so that a run without an epoch finds another run
        connection.execute(_SHARE, [str(table.place)])
    there = table.found(connection.cursor())
    newest = _checked(table, there, records.all(connection), owner, part)
    if there is None:
        table.make(connection)
    own = held if held is not None else newest + 1 if newest else NO_EPOCH
    taken = own if epoch is None else epoch
    number = _number(connection, table)
    commit = records.claim(connection, owner, part, taken, number)
    connection.commit()
    return Claim(commit, taken, number)


def replaced(connection: psycopg.Connection, table: Table, owner: Owner, part: Part) -> None:
    """Begin a transaction in which the table is empty, made if there is none.

    Raises OutputError for a table that no plain run has made; psycopg.Error.
    """
    connection.execute("SET idle_in_transaction_session_timeout = 0")  # as long as the run
    records = _alone(connection, table)
    _take_session(connection, table)
    there = table.found(connection.cursor())
    known = records.all(connection)
    _check_known(table, there is not None, [one.epoch == PLAIN for one in known])
    records.forget(connection)
    if there is None:
        table.make(connection)
    else:
        table.check(there)
        table.empty(connection)
    records.claim(connection, owner, part, PLAIN, _number(connection, table))


def _number(connection: psycopg.Connection, table: Table) -> int:
    found = table.found(connection.cursor())
    assert found is not None, "it was made"
    return found.number


def _alone(connection: psycopg.Connection, table: Table) -> Records:
    """Keep others from opening the table meanwhile."""
    records = Records(table.place)
    records.ensure(connection)
    name = str(table.place)
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
    return records


def _take_session(connection: psycopg.Connection, table: Table) -> None:
    """Keep others from writing the table as long as the session lasts."""
    name = str(table.place)
    try:
        # A session that has just ended may hold it for a moment more.
        connection.execute(f"SET LOCAL lock_timeout = {SESSION_MS}")
        connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 1))", [name])
        connection.execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
    except psycopg.errors.LockNotAvailable:
        raise OutputError(f"cannot write {name}: another run writes it") from None


def _checked(
    table: Table, there: Found | None, known: list[Record], owner: Owner, part: Part
) -> int:
    """Return the newest epoch of a part. Raises OutputError unless it can be gone on with."""
    _check_known(table, there is not None, [one.epoch != PLAIN for one in known])
    for one in known:
        if one.owner != owner:
            raise OutputError(f"cannot write {table.place}: it is of {one.owner}")
        if one.part.of != part.of:
            raise OutputError(
                f"cannot write {table.place}: it is of a pipeline of {one.part.of} partitions, and "
                f"this one has {part.of}. Name another table"
            )
        if there is not None:
            table.check(there, one.relation)
    return max((one.epoch for one in known if one.part == part), default=NO_EPOCH)


def _check_known(table: Table, is_there: bool, are_fitting: list[bool]) -> None:
    """Raise OutputError for a table that may be the user's, or that has gone."""
    if is_there and not are_fitting:
        raise OutputError(
            f"cannot write {table.place}: there is such a table, which no run has made. Name "
            "another one, or rename it"
        )
    if not is_there and are_fitting:
        raise OutputError(
            f"cannot write {table.place}: the table is gone, and its cut is recorded. "
            f"Bring it back, or remove its rows from ripple_outputs to start over"
        )
    if not all(are_fitting):
        raise OutputError(
            f"cannot write {table.place}: a durable run and a one-shot run cannot "
            "write the same table. Name another one"
        )


def error_of(name: str, error: psycopg.Error) -> OutputError:
    """Return an error in one line: the server's message, or why it cannot be reached."""
    return OutputError(f"cannot write {name}: {said_by(error)}")


def said_by(error: psycopg.Error) -> str:
    """Return the server's error, or the reason for no answer, and a way out if we know one."""
    text = said(error, error.diag.message_primary)
    if "no password supplied" in text:
        return f"{text}. Name it in PGPASSFILE, in a service file or in PGPASSWORD"
    return text
