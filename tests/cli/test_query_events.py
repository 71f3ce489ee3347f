"""``ripple query --events``: SQL over the newest rows of outputs of events, from their logs."""

from __future__ import annotations

import argparse
import datetime as dt
import decimal
import json
from pathlib import Path
from typing import Annotated, Any

import pytest

import ripple as rp
from ripple.cli.cluster import query
from ripple.exchange.edges import shown_of
from tests.cli.processes import ripple


@rp.record(version=1)
class Trade:
    symbol: str
    size: int
    t: rp.Timestamp


@pytest.fixture
def log(tmp_path: Path) -> str:
    trades = [{"symbol": "AB"[at % 2], "size": at, "t": at} for at in range(50)]
    place = f"log:{tmp_path}/fills"
    events = rp.Pipeline("p").source("trades", Trade).filter("some", rp.col("size") >= 10)
    rp.run(events.sink("fills"), source=trades, sink={"fills": place}, batch_rows=7)
    return place


def asked(*given: str, code: int = 0) -> tuple[str, str]:
    done = ripple("query", *given)
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    return done.out, done.err


def test_the_newest_events_of_a_log_are_a_table_without_a_cluster(log: str) -> None:
    sql = "SELECT symbol, count(*) AS n, min(size) AS least FROM fills GROUP BY ALL ORDER BY ALL"
    out, _ = asked(sql, "--events", f"fills={log}", "--format", "json")
    answer = json.loads(out)
    assert answer["rows"] == [
        {"symbol": "A", "n": 20, "least": 10},
        {"symbol": "B", "n": 20, "least": 11},
    ]
    assert answer["cut"] == {"fills": {"0": {"from": 0, "to": 40}}}
    newest = ("--events", f"fills={log}", "--newest", "3")
    out, said = asked("SELECT size FROM fills ORDER BY size", *newest, "--format", "csv")
    assert out.splitlines() == ['"size"', "47", "48", "49"]
    out, said = asked("SELECT count(*) AS n FROM Fills", *newest)
    assert "fills/0 from offset 37 to 40" in said


@rp.record
class Bill:
    day: dt.date
    at: dt.datetime
    price: Annotated[decimal.Decimal, rp.Decimal(12, 4)]
    all: Annotated[decimal.Decimal, rp.Decimal(38, 4)] | None


def test_events_and_lists_have_dates_and_decimals(tmp_path: Path, capsys: Any) -> None:
    row = {"day": dt.date(2026, 1, 31), "at": dt.datetime(2026, 1, 31, tzinfo=dt.UTC)}
    rows = [{**row, "price": decimal.Decimal("1.5"), "all": decimal.Decimal(10**30)}]
    bills, log = rp.Pipeline("p").source("given", Bill), f"log:{tmp_path}/bills"
    events = bills.filter("some", rp.col("price") > 0).sink("bills")
    rp.run(events, source=rows, sink={"bills": log})
    sql = "SELECT *, day > DATE '2026-01-01' AS new FROM bills"
    out, _ = asked(sql, "--events", f"bills={log}", "--format", "json")
    assert json.loads(out)["rows"] == [
        {
            "day": "2026-01-31", "at": "2026-01-31T00:00:00.000000000Z", "price": "1.5000",
            "all": f"{10**30}.0000", "new": True,
        }
    ]  # fmt: skip
    rp.run(events, source=[], sink={"bills": f"log:{tmp_path}/none"})
    out, _ = asked("SELECT * FROM n", "--events", f"n=log:{tmp_path}/none", "--format", "csv")
    assert out.splitlines() == ['"day","at","price","all"']

    offers = {edge.output: edge.offer for edge in shown_of(events.plan()).values()}
    query._list(argparse.Namespace(format="json"), offers)
    (listed,) = json.loads(capsys.readouterr().out)["outputs"]
    assert listed["columns"][-4:] == [
        "day: date32[day]", "at: timestamp[ns, tz=UTC]", "price: decimal128(12, 4)",
        "all: decimal128(38, 4)",
    ]  # fmt: skip


def test_what_is_wrong_with_events_is_said_in_one_line(log: str, tmp_path: Path) -> None:
    for given, reason in (
        (("SELECT 1", "--events", "fills"), "--events is NAME=log:DIR/TOPIC[/PARTITION], not 'fil"),
        (("SELECT 1", "--events", "f=a.csv"), "--events is NAME=log:DIR/TOPIC[/PARTITION], not 'f"),
        (("SELECT 1", "--events", f"f={log}", "--events", f"f={log}"), "--events names 'f' twice"),
        (("SELECT * FROM f", "--events", f"f=log:{tmp_path}/no"), f"cannot read log:{tmp_path}/no"),
        (("SELECT * FROM f", "--events", f"f={log}/7"), f"cannot read {log}/7"),
        (("--list", "--events", f"f={log}"), "--events goes with a statement"),
        (("SELECT at FROM f", "--events", f"f={log}"), 'syntax error at or near "FROM"'),
    ):
        _, said = asked(*given, code=1)
        assert reason in said
        assert said.count("\n") == 1


def test_other_tables_are_those_of_the_cluster(log: str) -> None:
    both = "SELECT * FROM fills JOIN bars USING (symbol)"
    here = ("--coordinator", "127.0.0.1:1", "--timeout", "1")
    _, said = asked(both, "--events", f"fills={log}", *here, code=2)
    assert "no coordinator answers" in said
