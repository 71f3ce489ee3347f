"""A table of another program against a pipeline: its differing rows are found, and told in full."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.cli.main import main
from ripple.model.pipeline.file import load_plan

SOURCE = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int = rp.field(gt=0)
    t: rp.Timestamp

trades = rp.Pipeline("p").source("trades", Trade, time="t")
bars = trades.partition("by", key="symbol").window("w", rp.Tumbling("10s")).fold(
    "bar", vwap=rp.vwap("price", "size"), n=rp.count()).sink("out")
events = trades.filter("large", rp.col("size") > 3).sink("out")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    (folder / "p.py").write_text(SOURCE)
    rows = [
        {"symbol": f"S{n % 3}", "price": 1 + n / 7, "size": n % 5, "t": n * 1_000_000_000}
        for n in range(60)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "trades.parquet")
    return folder


def table_of(place: Path, name: str) -> pa.Table:
    with pytest.warns(rp.LostRecordsWarning, match="12 rejected"):
        return rp.collect(load_plan(f"{place}/p.py:{name}"), f"{place}/trades.parquet").table()


def validated(
    place: Path, capfd: pytest.CaptureFixture[str], table: pa.Table, *more: str, name: str = "bars"
) -> tuple[int, Any, str]:
    pq.write_table(table, place / "mine.parquet")
    code = main(
        ["validate", f"{place}/p.py:{name}", "--source", f"{place}/trades.parquet",
         "--against", f"{place}/mine.parquet", "--format", "json", *more]
    )  # fmt: skip
    captured = capfd.readouterr()
    return code, json.loads(captured.out) if captured.out else None, captured.err


def test_an_equal_table_holds_with_what_it_was_made_of(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = table_of(place, "bars")
    code, verdict, _ = validated(place, capfd, found.take(list(range(len(found)))[::-1]))
    assert (code, verdict["holds"]) == (0, True)
    (finding,) = verdict["findings"]
    assert (finding["check"], finding["cases"], finding["rows"]) == ("tables", len(found), 60)
    assert finding["note"] == "12 records of the input are rejected, and in no row"
    assert verdict["made"]["file"] == f"{place}/p.py"
    assert {"made", "seed", "ripple-stream", "python", "pyarrow"} <= verdict["made"].keys()
    timed = found.set_column(1, "window_start_ns", found.column(1).cast(pa.timestamp("ns")))
    assert validated(place, capfd, timed)[0] == 0
    assert validated(place, capfd, found.drop(["n"]), "--fields", "vwap")[0] == 0


@pytest.mark.parametrize("given", ["{}/a.csv", "csv:{}/a.csv", "{}/*.csv", "files:{}", "{}"])
def test_options_behind_the_source_are_those_of_its_files(
    place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], given: str
) -> None:
    (tmp_path / "a.csv").write_text("symbol;price;size;t\nA;1,5;2;1\n")
    place_of = given.format(tmp_path) + "?delimiter=;&decimal=,&header"
    code = main(["validate", f"{place}/p.py:bars", "--source", place_of, "--oracle", "1"])
    assert (code, "1 compared over 1 records" in capfd.readouterr().out) == (0, True)


def test_differing_rows_are_counted_and_the_first_is_told_with_its_events(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = table_of(place, "bars")
    values = found.column("vwap").to_pylist()
    values[:8] = [math.nextafter(value, math.inf) for value in values[:8]]
    wrong = found.set_column(found.column_names.index("vwap"), "vwap", pa.array(values))
    ghost = pa.Table.from_pylist([{**wrong.to_pylist()[0], "symbol": "ghost"}], wrong.schema)
    code, verdict, _ = validated(place, capfd, pa.concat_tables([wrong.slice(0, 17), ghost]))
    assert code == 1
    (finding,) = verdict["findings"]
    assert finding["differing"] == 8 + 1 + 1
    assert len(finding["differences"]) == 5, "several keys, and no more"
    first = finding["differences"][0]
    assert [one[:5] for one in first["fields"]] == ["vwap:"]
    assert "0x1." in first["fields"][0]
    assert first["events"]
    assert all(event["symbol"] in first["key"] for event in first["events"])
    assert not finding["differences"][1]["events"]


def test_events_are_compared_and_counted(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = table_of(place, "events")
    assert validated(place, capfd, found, name="events")[0] == 0
    code, verdict, _ = validated(
        place, capfd, pa.concat_tables([found, found.slice(0, 1)]), name="events"
    )
    assert (code, verdict["findings"][0]["differing"]) == (1, 1)


def test_a_table_of_other_columns_is_refused_in_one_line(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = table_of(place, "bars")
    as_text = found.set_column(4, "n", found.column("n").cast(pa.string()))
    for table, more, exit_code, expected in [
        (found.drop(["symbol"]), (), 3, "has no column 'symbol': it has window_start_ns"),
        (found.drop(["n"]), (), 3, "has no column 'n': it has symbol"),
        (as_text, (), 3, "column 'n' of"),
        (found, ("--fields", "vwap,high"), 1, "out has no field 'high' to compare"),
        (found, ("--html", f"{place}/no/v.html"), 1, "there is no folder"),
    ]:
        code, verdict, told = validated(place, capfd, table, *more)
        assert (code, verdict) == (exit_code, None)
        assert expected in told
        assert told.count("\n") == 1
    code, verdict, _ = validated(place, capfd, pa.concat_tables([found, found.slice(0, 1)]))
    assert code == 1
    assert "two rows have the key" in verdict["findings"][0]["differences"][0]["what"]
