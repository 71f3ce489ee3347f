"""Opens tables of PostgreSQL for writing, for the connector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.connector import Part
from ripple.connectors.contract import Commit
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.postgres.record import Records
from ripple.connectors.postgres.session import connected, error_of, looked_at, said_by
from ripple.connectors.postgres.sink import PostgresSink, WholeTable
from ripple.connectors.postgres.table import Table
from ripple.connectors.postgres.uri import PostgresUri
from ripple.core.errors import OutputError
from ripple.core.extras import needed

with needed("postgres", "a table of PostgreSQL"):
    import psycopg
    from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.connectors.connector import Writing

_WHOLE = Part(0, 1)


def open_table(path: str, writing: Writing) -> WholeTable:
    """Return the sink that writes a table whole; raises OutputError."""
    return WholeTable(_table(path, writing), _owner(writing), writing.part or _WHOLE)


def continue_table(path: str, writing: Writing) -> PostgresSink:
    """Return the sink that goes on with its table; raises OutputError."""
    part = writing.part or _WHOLE
    return PostgresSink(_table(path, writing), _owner(writing), part, writing.epoch)


def reached(path: str, writing: Writing) -> Commit | None:
    """Return the commit of a part, or of all together without one; None if there is none.

    Raises OutputError.
    """
    place = PostgresUri.parse(path)
    records = Records(place)
    try:
        with connected(place, writing.plan.name) as connection:
            known = records.all(connection) if records.is_there(connection) else []
    except psycopg.Error as error:
        raise error_of(str(place), error) from error
    return together(
        [one.commit for one in known if writing.part in (None, one.part) and one.commit]
    )


def together(found: Sequence[Commit]) -> Commit | None:
    """Return the cut that all parts have reached: the least offset of each input."""
    if len(found) < 2:
        return found[0] if found else None
    cut: dict[str, int] = {}
    for one in found:
        for name, offset in one.cut.items():
            cut[name] = min(offset, cut.get(name, offset))
    return Commit(cut, "")


def look(path: str, writing: Writing) -> int:
    """Raise as ``continue_table`` does, with nothing changed; return the part's newest epoch."""
    table, part = _table(path, writing), writing.part or _WHOLE
    try:
        with connected(table.place, writing.plan.name) as connection:
            return looked_at(connection, table, _owner(writing), part, writing.epoch)
    except psycopg.Error as error:
        raise error_of(str(table.place), error) from error


def owners(path: str, writing: Writing) -> int:
    """Return the highest epoch that an owner of any part had, 0 for none. Raises OutputError."""
    place = PostgresUri.parse(path)
    records = Records(place)
    try:
        with connected(place, writing.plan.name) as connection:
            known = records.all(connection) if records.is_there(connection) else []
    except psycopg.Error as error:
        raise error_of(str(place), error) from error
    return max([0, *(one.epoch for one in known)])


def check(path: str) -> str:
    """Connect, and describe the table; raises OutputError."""
    place = PostgresUri.parse(path)
    try:
        with connected(place, "check") as connection:
            names = [name for name in (place.schema, place.table) if name]
            (found,) = connection.execute(
                "SELECT to_regclass(%s)", [sql.Identifier(*names).as_string(connection)]
            ).fetchone() or (None,)
            version = connection.info.server_version // 10_000
    except psycopg.Error as error:
        raise OutputError(f"{place}: {said_by(error)}") from error
    return f"PostgreSQL {version} answers; {place} is " + ("there" if found else "not there yet")


def _table(path: str, writing: Writing) -> Table:
    return Table(PostgresUri.parse(path), writing.plan, writing.output)


def _owner(writing: Writing) -> Owner:
    return Owner(writing.plan.name, writing.output.name)
