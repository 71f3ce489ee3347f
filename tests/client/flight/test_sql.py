"""Flight SQL, asked by ADBC's driver over a socket, and by who does not keep to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi as adbc
import polars as pl
import pyarrow as pa
import pytest

from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.messages import flight_sql_pb2 as messages
from ripple.client.flight.messages.flight_pb2 import Action, FlightDescriptor, FlightInfo, Ticket
from ripple.client.flight.reader import read_as
from ripple.client.flight.service import Flights
from ripple.client.flight.sql import FlightSql, message_of, packed
from ripple.client.flight.tables import BEGINS, CUTS
from ripple.core.access import EVERYBODY
from tests.client.flight.flights import OUT, TABLES, TOKENS, asked
from tests.patience import PATIENCE_S


def test_a_driver_asks_and_is_told_the_cuts() -> None:
    def ask(uri: str) -> None:
        with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(
                'SELECT v.symbol, trades + size AS n FROM vwap v JOIN temp.main."by-class" c '
                "ON v.symbol = c.symbol ORDER BY 1"
            )
            table = cursor.fetch_arrow_table()
            assert table.to_pylist() == [{"symbol": "A", "n": 11}, {"symbol": "B", "n": 22}]
            assert json.loads(table.schema.metadata[CUTS.encode()]) == {
                name: {"0": {name: 7}} for name in ("vwap", "by-class")
            }
            assert json.loads(table.schema.metadata[BEGINS.encode()]) == {
                "by-class": {"0": {"trades/0": 3}}
            }
            sql = "SELECT symbol FROM vwap WHERE trades > ? AND symbol < ? ORDER BY symbol"
            for least, expected in ((1, [("B",)]), (0, [("A",), ("B",)])):  # prepared, bound
                cursor.execute(sql, (least, "C"))
                assert cursor.fetchall() == expected
            cursor.execute(sql, (None, "C"))
            assert cursor.fetchall() == []
            cursor.execute("SELECT ? IS NULL, 'a'::ENUM('a', 'b') AS e", (None,))
            assert cursor.fetchall() == [(True, "a")]
            schema = cursor.adbc_execute_schema("SELECT vwap, trades FROM vwap")
            assert schema.types == [pa.float64(), pa.int64()]
            frame = pl.read_database("SELECT * FROM vwap", connection)
            assert frame["trades"].to_list() == [1, 2, 2**62]

    asked(ask)


def test_a_driver_finds_what_there_is() -> None:
    def ask(uri: str) -> None:
        with adbc.connect(uri, autocommit=True) as connection:
            about = connection.adbc_get_info()
            assert about["vendor_name"] == "Ripple"
            assert connection.adbc_get_table_types() == ["TABLE"]
            assert connection.adbc_get_table_schema("vwap") == OUT.schema
            (one,) = connection.adbc_get_objects(table_name_filter="%w_p").read_all().to_pylist()
            (schema,) = one["catalog_db_schemas"]
            (table,) = schema["db_schema_tables"]
            assert (one["catalog_name"], schema["db_schema_name"]) == ("temp", "main")
            columns = [column["column_name"] for column in table["table_columns"]]
            assert (table["table_name"], columns) == ("vwap", OUT.column_names)

    asked(ask)


async def test_all_that_drivers_ask_about_the_server_is_answered() -> None:
    told = FlightSql(TABLES).table
    table = await told(messages.CommandGetSqlInfo())
    numbers = table["info_name"].to_pylist()
    assert numbers == [*range(10), 100, 101, *range(500, 577)]
    found = dict(zip(numbers, table["value"].to_pylist(), strict=True))
    assert (found[563], found[557], found[517]) == (False, 1 << 16, [])
    few = await told(messages.CommandGetSqlInfo(info=[528, 3]))
    assert few.to_pylist() == [{"info_name": 3, "value": True}, {"info_name": 528, "value": 2}]
    names = ("ImportedKeys", "ExportedKeys", "CrossReference")
    for name in names:
        keys = await told(getattr(messages, f"CommandGet{name}")())
        assert (keys.num_rows, keys.num_columns) == (0, 13)
    types = await told(messages.CommandGetXdbcTypeInfo(data_type=12))
    assert types["type_name"].to_pylist() == ["VARCHAR"]


REFUSED = {
    "SELECT nothing FROM vwap": (adbc.ProgrammingError, "nothing"),
    "INSERT INTO vwap VALUES ('D', 1, 1)": (adbc.ProgrammingError, "INSERT is not allowed"),
    "SELECT * FROM range(9000000)": (adbc.Error, "result has more than.*ResourceExhausted"),
    "SELECT length(repeat('x', 1000000000))": (adbc.Error, "256 MiB.*ResourceExhausted"),
}


@pytest.mark.services
def test_refusals_are_errors_of_one_line() -> None:
    def ask(uri: str) -> None:
        with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
            for sql, (error, says) in REFUSED.items():
                with pytest.raises(error, match=says):
                    cursor.execute(sql).fetchall()
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)

    asked(ask, timeout_s=PATIENCE_S)


def test_slow_query_is_ended_with_an_error_of_one_line() -> None:
    def ask(uri: str) -> None:
        with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
            says = r"no answer within 0\.05 s"
            with pytest.raises(adbc.OperationalError, match=says):
                cursor.execute("SELECT sum(a.range) FROM range(9999999) a, range(9999999)")

    asked(ask, timeout_s=0.05)


WRITES: list[Callable[[Any], Any]] = [
    lambda cursor: cursor.adbc_ingest("vwap", OUT, mode="append"),
    lambda cursor: cursor.executescript("DELETE FROM vwap"),
    lambda cursor: cursor.executemany("INSERT INTO vwap VALUES (?, ?, ?)", [("D", 1.0, 1)]),
]


def test_nothing_is_written() -> None:
    def ask(uri: str) -> None:
        with adbc.connect(uri, autocommit=True) as connection:
            for write in WRITES:
                with connection.cursor() as cursor, pytest.raises(adbc.Error, match="read-only"):
                    write(cursor)

    asked(ask)


def test_readers_ask_and_nobody_else() -> None:
    sql = "SELECT count(*) FROM vwap WHERE trades > ?"

    def ask(uri: str) -> None:
        header = adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value
        options = {header: f"Bearer {TOKENS['reader']}"}
        with (
            adbc.connect(uri, options, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            assert cursor.execute(sql, (1,)).fetchone() == (2,)
        with (
            pytest.raises(adbc.Error, match=r"(?i)unauthenticated"),
            adbc.connect(uri, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(sql, (1,))

    asked(ask, roles=True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (packed(messages.CommandStatementQuery(query="x" * 70_000)), Why.TOO_MUCH),
        (packed(messages.CommandPreparedStatementQuery(prepared_statement_handle=b"{")), Why.WRONG),
        (packed(messages.CommandGetCatalogs()).replace(b"Catalogs", b"Nothings"), Why.NOT_OFFERED),
        (packed(messages.DoPutPreparedStatementResult()), Why.NOT_OFFERED),
        (packed(messages.CommandGetTables(table_types=["T"]))[:-1], Why.WRONG),
        (
            packed(messages.CommandGetCatalogs()).replace(
                b"CommandGetCatalogs", b"DESCRIPTOR________"
            ),
            Why.NOT_OFFERED,
        ),
    ],
)
async def test_a_hostile_command_gets_a_clear_status(text: bytes, why: Why) -> None:
    flights = Flights(TABLES, {})
    wanted = FlightDescriptor(type=FlightDescriptor.CMD, cmd=text).SerializeToString()
    with pytest.raises(FlightError) as refused:
        await flights.get_flight_info(wanted)
    assert refused.value.why is why


async def test_tickets_are_the_question_so_that_another_gateway_answers() -> None:
    read_as(EVERYBODY)
    command = packed(messages.CommandStatementQuery(query="SELECT max(trades) AS n FROM vwap"))
    wanted = FlightDescriptor(type=FlightDescriptor.CMD, cmd=command).SerializeToString()
    info = FlightInfo.FromString(await Flights(TABLES, {}).get_flight_info(wanted))
    ticket = message_of(Ticket.FromString(info.endpoint[0].ticket.SerializeToString()).ticket)
    assert ticket is not None
    assert (await FlightSql(TABLES).table(ticket)).to_pylist() == [{"n": 2**62}]


async def test_actions_that_are_none_are_refused() -> None:
    action = Action(type="BeginTransaction").SerializeToString()
    with pytest.raises(FlightError, match="read-only") as refused:
        await anext(Flights(TABLES, {}).do_action(action))
    assert refused.value.why is Why.NOT_OFFERED
