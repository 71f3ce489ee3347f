"""A live table's rows, without a notebook; in one: tests/services/test_notebook.py."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Annotated

import pytest

import ripple as rp
from ripple.client.live.view import EXACT
from ripple.core.errors import OutputError, PlanError


@rp.record
class Fill:
    symbol: str
    size: int
    day: dt.date
    at: rp.Timestamp


fills = rp.Pipeline("fills").source("fills", Fill)
by_day = fills.partition("by-day", key=["symbol", "day"]).fold("sums", size=rp.sum("size"))
DAYS = [dt.date(2024, 2, 27), dt.date(2024, 2, 28)]
ROWS = [
    {"symbol": symbol, "size": size, "day": DAYS[at % 2], "at": at}
    for at, (symbol, size) in enumerate([("B", 1), ("A", 2), ("<i>", 7), ("A", 4), ("B", 8)])
]


def shown(
    pipeline: rp.Pipeline, table: rp.LiveTable, rows: list[dict[str, object]]
) -> list[object]:
    rp.run(pipeline.sink("out"), source=rows, sink=table, batch_rows=1)
    assert table.shown.has_ended
    return [list(row) for row in table.shown.rows]


def test_rows_are_each_keys_last_one_by_key_or_by_a_column() -> None:
    by_key = [["<i>", "2024-02-27", 7], ["A", "2024-02-28", 6], ["B", "2024-02-27", 9]]
    table = rp.LiveTable()
    assert shown(by_day, table, ROWS) == by_key
    assert (table.shown.count, table.shown.changes, table.shown.keys) == (3, 5, 2)
    by_size = sorted(by_key, key=lambda row: -int(str(row[2])))
    assert shown(by_day, rp.LiveTable(by="-size", rows=2), ROWS) == by_size[:2]
    assert shown(by_day, rp.LiveTable(by="size", rows=1), ROWS) == by_size[-1:]


def test_a_total_and_removed_rows() -> None:
    total = by_day.partition("all", key=()).fold("sum", size=rp.sum("size"))
    assert shown(total, rp.LiveTable(line="size"), ROWS) == [[22]]
    large = by_day.filter("small", rp.col("size") < 5)
    assert shown(large, rp.LiveTable(), ROWS[:2]) == [
        ["A", "2024-02-28", 2],
        ["B", "2024-02-27", 1],
    ]
    assert shown(large, rp.LiveTable(), ROWS) == []


def test_events_are_the_newest_ones() -> None:
    table = rp.LiveTable(rows=2)
    found = shown(fills.filter("some", rp.col("size") > 1), table, ROWS)
    assert found == [["A", 4, "2024-02-28", 3], ["B", 8, "2024-02-27", 4]]
    assert (table.shown.count, table.shown.keys) == (4, None)


def test_bounds_of_windows_are_times() -> None:
    minutes = fills.partition("by-day", key="day").window("minute", rp.Tumbling("1min"))
    found = shown(minutes.fold("n", n=rp.count()), rp.LiveTable(rows=1), ROWS)
    assert found == [["2024-02-27", "1970-01-01 00:00:00Z", "1970-01-01 00:01:00Z", 3]]


def test_a_browser_gets_exact_values_and_no_markup() -> None:
    table = rp.LiveTable()
    shown(by_day, table, [*ROWS, {"symbol": "C", "size": EXACT * 4, "day": DAYS[0], "at": 9}])
    assert table.shown.message()["rows"][-1][2] == str(EXACT * 4)
    assert "<td>&lt;i&gt;</td>" in table._repr_html_()


def test_decimals_are_sorted_as_numbers() -> None:
    @rp.record
    class Paid:
        who: str
        at: rp.Timestamp
        price: Annotated[decimal.Decimal, rp.Decimal(6, 2)]

    paid = rp.Pipeline("paid").source("paid", Paid).partition("by", key="who")
    last = paid.fold("last", price=rp.last("price"))
    rows: list[dict[str, object]] = [
        {"who": who, "at": 1, "price": decimal.Decimal(price)}
        for who, price in [("a", "10.50"), ("b", "-3"), ("c", "9"), ("d", "-20")]
    ]
    found = [["d", "-20.00"], ["b", "-3.00"], ["c", "9.00"], ["a", "10.50"]]
    assert shown(last, rp.LiveTable(by="price"), rows) == found
    assert shown(last, rp.LiveTable(by="-price", rows=2), rows) == found[:1:-1]


def test_a_run_without_rows_ends_too() -> None:
    assert shown(by_day, rp.LiveTable(), []) == []


def test_a_table_is_for_one_run() -> None:
    table = rp.LiveTable()
    shown(by_day, table, ROWS)
    with pytest.raises(OutputError, match="a LiveTable is for one run"):
        shown(by_day, table, ROWS)
    assert table.shown.changes == len(ROWS)


def test_mistakes_are_named() -> None:
    with pytest.raises(OutputError, match=r"no column 'price': it has symbol, day, size"):
        shown(by_day, rp.LiveTable(by="-price"), ROWS)
    with pytest.raises(OutputError, match=r"no column 'price'"):
        shown(by_day, rp.LiveTable(line="price"), ROWS)
    with pytest.raises(OutputError, match="a line is of numbers, and 'symbol' is string"):
        shown(by_day, rp.LiveTable(line="symbol"), ROWS)
    with pytest.raises(PlanError, match="rows must be a whole number"):
        rp.LiveTable(rows=0)
