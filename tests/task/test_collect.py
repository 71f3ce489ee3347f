"""``rp.collect``: the rows of a run in memory."""

from __future__ import annotations

import datetime as dt
import warnings
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    size: int = rp.field(gt=0)
    at: rp.Timestamp


TRADES = rp.Pipeline("p").source("trades", Trade)
TOTALS = TRADES.partition("k", key="symbol").fold("f", n=rp.count(), size=rp.sum("size"))
ONE = TOTALS.sink("totals")
LARGE = TRADES.filter("large", rp.col("size") > 1).sink("larger")
ROWS = [{"symbol": name, "size": size, "at": size} for size, name in enumerate("BABC", 1)]
VIEW = [
    {"symbol": "A", "n": 1, "size": 2},
    {"symbol": "B", "n": 2, "size": 4},
    {"symbol": "C", "n": 1, "size": 4},
]


@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_final_view_is_each_keys_last_row_by_key(batch_rows: int) -> None:
    result = rp.collect(ONE, ROWS, batch_rows=batch_rows)
    assert result.rows() == [*result] == VIEW
    assert result.report is not None
    assert result.report.applied == len(ROWS)


def test_other_libraries_take_the_result() -> None:
    result = rp.collect(ONE, ROWS)
    assert pa.table(result) == result.table()
    assert result.to_polars().equals(pl.DataFrame(VIEW))
    assert pl.DataFrame(result).height == 3
    assert result.to_pandas().to_dict("records") == VIEW
    assert duckdb.sql("SELECT sum(size) FROM result").fetchall() == [(10,)]
    assert rp.collect(ONE, result.table().select(["symbol", "size"]).append_column("at", [[1] * 3]))


def test_changes_are_kept_where_they_are_asked_for() -> None:
    result = rp.collect(ONE, ROWS, changes=True, batch_rows=1)
    assert [row["op"] for row in result.changes().to_pylist()] == ["set"] * 4
    with pytest.raises(rp.OutputError, match=r"not kept: write rp.collect.*changes=True"):
        rp.collect(ONE, ROWS).changes()


def test_removed_keys_are_absent() -> None:
    by_n = TOTALS.partition("by-n", key="n").fold("g", keys=rp.count()).sink("o")
    result = rp.collect(by_n, ROWS[:3], batch_rows=1, changes=True)
    assert {row["op"] for row in result.changes().to_pylist()} == {"set"}
    assert result.rows() == [{"n": 1, "keys": 1}, {"n": 2, "keys": 1}]
    result = rp.collect(by_n, [ROWS[0], ROWS[2]], batch_rows=1, changes=True)
    assert [row["op"] for row in result.changes().to_pylist()].count("remove") == 1
    assert result.rows() == [{"n": 2, "keys": 1}]


def test_several_outputs_go_by_name() -> None:
    both = ONE.also(LARGE)
    result = rp.collect(both, ROWS)
    assert result.outputs == ("totals", "larger")
    assert result["totals"].rows() == VIEW
    assert result["larger"].rows() == ROWS[1:]
    with pytest.raises(rp.OutputError, match=r"totals, larger: choose one, as in result\['totals"):
        result.rows()
    with pytest.raises(rp.OutputError, match="no output 'x': it has totals, larger"):
        result["x"]
    assert rp.collect(both, ROWS, output="larger").rows() == ROWS[1:]


@pytest.mark.parametrize("pipeline", [ONE, LARGE])
def test_no_rows_have_the_schema_of_some(pipeline: Any) -> None:
    none, some = (rp.collect(pipeline, rows, changes=True) for rows in ([], ROWS))
    assert none.table().schema == some.table().schema
    assert none.changes().schema == some.changes().schema
    assert len(none) == 0


def test_rejected_records_are_in_the_result() -> None:
    bad = {"symbol": "A", "size": 0, "at": 9}
    told = r"5 records, 1 rejected \(size is not positive: 1; result.rejected has"
    with pytest.warns(rp.LostRecordsWarning, match=told):
        result = rp.collect(ONE, [*ROWS, bad])
    assert result.rows() == VIEW
    (letter,) = result.rejected.to_pylist()  # type: ignore[union-attr]
    assert (letter["source"], letter["offset"]) == ("trades", 4)
    assert letter["reason"] == "size is not positive"
    assert '"size": 0' in letter["record"]
    assert repr(result) == "<Result totals: 3 rows; of 5 records 1 rejected>"
    with pytest.raises(rp.InputError, match="size is not positive"):
        rp.collect(ONE, [bad], strict=True)


def test_notebooks_show_rows_as_text() -> None:
    rows = [{"symbol": "a", "size": 1, "at": 1}, {"symbol": "b", "size": 0, "at": 1}]
    with pytest.warns(rp.LostRecordsWarning):
        report = rp.run(ONE, source=rows, sink=[])
    shown = report._repr_html_()
    assert "<th>records</th><td>2</td>" in shown
    assert "<th>rejected: size is not positive</th><td>1</td>" in shown
    assert "late" not in shown
    page = rp.collect(ONE, [{"symbol": "<b>", "size": 1, "at": 1}])._repr_html_()
    assert "<td>&lt;b&gt;</td><td>1</td>" in page
    assert "totals: 1 rows" in page


@pytest.mark.parametrize("pipeline", [ONE, LARGE])
def test_memory_has_a_bound(pipeline: Any) -> None:
    with pytest.raises(
        rp.LimitError, match=r"more than 20 bytes, with .* rows of .*give max_bytes"
    ):
        rp.collect(pipeline, ROWS, max_bytes=20)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"output": "x"}, "no output 'x'"),
        ({"changes": 5}, "changes must be"),
        ({"max_bytes": 0}, "max_bytes must be"),
        ({"sink": "-"}, r"rp\.collect: .*'sink': write rp\.collect\(pipeline, source=\.\.\."),
    ],
)
def test_arguments(arguments: dict[str, Any], said: str) -> None:
    with warnings.catch_warnings(), pytest.raises(rp.RippleError, match=said):
        rp.collect(ONE, ROWS, **arguments)


@rp.record
class Fill:
    account: str
    day: dt.date
    at: dt.datetime


ALL = rp.top_rows(1, "at", ["account", "day", "at"])


def test_dates_and_times_are_those_of_python_in_each_place() -> None:
    times = [dt.datetime(2026, 1, day, 9, tzinfo=dt.UTC) for day in (2, 1, 2)]
    rows = [{"account": "a", "day": at.date(), "at": at} for at in times]
    fills = rp.Pipeline("fills").source("fills", Fill, time="at", out_of_order="2d")
    by_day = fills.partition("by-day", key="day")
    pipeline = by_day.fold("f", at=rp.last("at"), all=ALL).sink("days")
    result = rp.collect(pipeline, rows, changes=True)
    assert [row["day"] for row in result.rows()] == [times[1].date(), times[0].date()]
    seen: list[dict[str, Any]] = []
    rp.run(pipeline, source=rows, sink=seen)
    assert result.rows()[0]["all"] == [rows[1]]
    for row in (*result, *result.rows(), *seen):
        assert type(row["at"]) is dt.datetime
        assert (type(row["day"]), row["at"].date()) == (dt.date, row["day"])
    assert rp.collect(pipeline, rows[:0]).table().schema.field("day").type == pa.date32()
    assert rp.collect(fills.sink("all"), rows).rows() == rows
