"""The recipes of the cookbook give what they promise."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import runpy
import statistics
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import ripple as rp

PAGE = Path(__file__).resolve().parent.parent / "docs/cookbook.md"
MINUTE_NS = 60 * 10**9


@pytest.fixture
def cooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a recipe, by its title, and return the rows of its sinks."""
    monkeypatch.chdir(tmp_path)

    def cook(title: str) -> dict[str, list[dict[str, Any]]]:
        (code,) = re.findall(rf"## {title}\n.*?```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        Path("recipe.py").write_text(code)
        runpy.run_path("recipe.py")
        return {
            path.stem: [json.loads(line) for line in path.read_text().splitlines()]
            for path in tmp_path.glob("*.jsonl")
        }

    return cook


def test_bars_of_a_folder_of_csv_files(cooked: Any, tmp_path: Path) -> None:
    cooked("Bars of a folder of CSV files")
    bars = pq.read_table(tmp_path / "bars.parquet").select(["close", "vwap", "start"])
    times = [dt.datetime(2026, 3, day, 14, 30, tzinfo=dt.UTC) for day in (2, 3)]
    assert bars.to_pylist() == [
        {"close": close, "vwap": vwap, "start": time}
        for close, vwap, time in zip((10.25, 11.0), (10.3125, 11.0), times, strict=True)
    ]


def test_cash_is_exact_and_of_days_of_new_york(cooked: Any) -> None:
    rows = cooked("Cash by account and day")["cash"]
    found = [(row["date"], row["cash"], row["fills"]) for row in rows]
    assert found == [("2026-03-06", "-0.0997", 2), ("2026-03-09", "-0.2000", 1)]


def test_orders_have_states(cooked: Any) -> None:
    with pytest.warns(rp.LostRecordsWarning, match="1 row of 'states' without a result .*unknown"):
        rows = cooked("States of orders")
    assert [(row["after"], row["left"]) for row in rows["changes"]] == [
        ("new", 10),
        ("partially filled", 6),
        ("filled", 0),
    ]
    assert [row["mean"] for row in rows["means"]] == [5.0, 5.0, 5.5, 5.5, 5.4]


def test_trades_have_their_orders(cooked: Any) -> None:
    rows = cooked("Trades with their orders")
    filled = [(row["order"], row["trader"], row["waited_ns"]) for row in rows["filled"]]
    assert filled == [
        ("o1", "ann", 500), ("o1", "ann", 2000), ("o9", None, None), ("o2", "bob", 2000)
    ]  # fmt: skip
    slips = {row["by"]: row for row in rows["slips"]}
    assert (slips["ann"]["trades"], slips["ann"]["slip"], slips["ann"]["longest_ns"]) == (
        2,
        1,
        2000,
    )
    assert (slips["bob"]["slip"], slips["nobody"]["trades"]) == (0, 1)


def test_sessions_have_their_purchases(cooked: Any) -> None:
    rows = cooked("Sessions with their purchases")
    bought = [(row["window_start_ns"] // MINUTE_NS, row["item"]) for row in rows["bought"]]
    assert bought == [(10, "book"), (10, "pen"), (90, "cup")]
    spent = {row["window_start_ns"] // MINUTE_NS: row for row in rows["spent"]}
    assert (spent[10]["items"], spent[10]["price"], spent[10]["pages"]) == (2, 13.5, 2)
    assert (spent[90]["items"], spent[90]["price"], spent[90]["pages"]) == (1, 7.0, 1)


def test_trades_have_reference_data_of_their_time(cooked: Any) -> None:
    rows = cooked("Trades with reference data")
    tagged = [(row["sector"], row["size"], row["from_ns"]) for row in rows["tagged"]]
    assert tagged == [("oil", 30, 1_000), ("wind", 200, 2_000), (None, None, None)]
    assert {row["of"]: row["lots"] for row in rows["sectors"]} == {
        "oil": 3, "wind": 2, "delisted": 1
    }  # fmt: skip


def test_notices_have_all_positions_that_they_concern(cooked: Any) -> None:
    rows = cooked("Notices for positions")
    concerned = {(row["account"], row["symbol"], row["notice"]): row for row in rows["concerned"]}
    assert {key: row["words"] for key, row in concerned.items() if row.get("op") != "remove"} == {
        ("ann", "oil", 1): "dividend",
        ("ann", "tin", 3): "delisted",
        ("bob", "oil", 1): "dividend",
    }
    counts = {row["account"]: row for row in rows["counts"]}
    assert [(counts[one]["notices"], counts[one]["size"]) for one in ("ann", "bob")] == [
        (2, 15), (1, 20)
    ]  # fmt: skip


def test_trades_have_the_spread_of_their_time(cooked: Any) -> None:
    rows = cooked("The spread at each trade")
    assert [row["paid"] for row in rows["priced"]] == [0.5, 0.25, None]
    (of_symbol,) = rows["spreads"]
    assert (of_symbol["trades"], of_symbol["priced"], of_symbol["paid"]) == (3, 2, 0.375)


def test_trades_have_the_quote_after_them(cooked: Any) -> None:
    rows = cooked("The quote after each trade")
    assert [row["moved"] for row in rows["moved"]] == [0.25, -1.5, None]


def test_positions_are_marked_to_the_last_price(cooked: Any) -> None:
    rows = cooked("Positions at market prices")
    marked = {row["symbol"]: row for row in rows["marked"]}
    assert [(marked[one]["size"], marked[one]["gain"]) for one in "XY"] == [(6, 16.0), (3, None)]


def test_payments_count_at_the_rate_of_their_time(cooked: Any) -> None:
    sums = {row["payer"]: row for row in cooked("Amounts in one currency")["sums"]}
    assert [(one, sums[one]["payments"], sums[one]["euro"]) for one in ("ann", "bob")] == [
        ("ann", 2, 57.0), ("bob", 1, 75.0)
    ]  # fmt: skip


def test_unknown_codes_are_counted(cooked: Any) -> None:
    counts = {row["means"]: row["requests"] for row in cooked("Names for codes")["counts"]}
    assert counts == {"fine": 2, "not found": 1, "unknown": 1}


def test_orders_without_a_fill_are_found(cooked: Any) -> None:
    rows = cooked("Orders without a fill")
    assert [row["order"] for row in rows["missed"]] == ["o2", "o3"]
    assert {row["desk"]: row["orders"] for row in rows["counts"]} == {"north": 1, "south": 1}


def test_returns_of_minutes_give_the_volatility_of_a_day(cooked: Any) -> None:
    rows = cooked("Log returns and realized volatility")
    logs = [row["log_return"] for row in rows["returns"]]
    assert logs == pytest.approx([math.log(102 / 101), math.log(101 / 102)])
    (day,) = rows["days"]
    assert (day["day"], day["returns"]) == ("2026-03-06", 2)
    assert day["volatility"] == pytest.approx(math.hypot(*logs))


def test_bars_by_volume_contain_a_late_trade(cooked: Any) -> None:
    """The worked example of trades: 3, 4, 6, 12, 1, 5, 2 shares; bars of 10."""
    rows = cooked("Bars by volume")["bars"]
    fields = ("open", "high", "low", "close", "volume", "trades")
    assert [tuple(row[name] for name in fields) for row in rows if row["op"] == "set"] == [
        (100.0, 101.0, 100.0, 101.0, 13, 3),
        (99.0, 99.0, 99.0, 99.0, 12, 1),
        (100.0, 102.0, 100.0, 102.0, 8, 3),
    ]


def test_averages_and_drawdown(cooked: Any) -> None:
    rows = cooked("Moving averages and drawdown")["averages"]
    assert [row["ema"] for row in rows] == [10.0, 10.5, 11.75, 10.375]
    assert [row["mean"] for row in rows] == [10.0, 10.5, 34 / 3, 10.75]
    assert [row["drawdown"] for row in rows] == [0.0, 0.0, 0.0, 4.0]


def test_minute_bars_end_with_a_half_day(cooked: Any) -> None:
    rows = cooked("Minute bars of a trading day")["bars"]
    assert [(row["end"][11:16], row["close"], row["volume"]) for row in rows] == [
        ("14:31", 10.5, 6),
        ("18:00", 11.0, 2),
    ]


def test_bars_by_value_begin_anew_with_a_session_and_by_imbalance_end_either_way(
    cooked: Any,
) -> None:
    rows = cooked("Bars by value and by imbalance")
    found = [(row["session"], row["value"], row["trades"]) for row in rows["by-value"]]
    assert found == [(0, 1_310, 3), (0, 1_188, 1), (0, 100, 1), (6 * 10**9, 704, 2)]
    found = [(row["volume"], row["imbalance"]) for row in rows["by-imbalance"]]
    assert found == [(25, -11), (8, 8)]


def test_macd_and_z_scores(cooked: Any) -> None:
    rows = cooked("MACD and z-scores")["signals"]
    assert rows[0]["z"] is None
    prices = [10.0, 11.0, 13.0, 9.0]
    fast = slow = signal = 0.0
    for at, row in enumerate(rows):
        values = prices[: at + 1]
        fast, slow = (
            before + 2 / (span + 1) * (prices[at] - before) if at else prices[0]
            for before, span in ((fast, 12), (slow, 26))
        )
        signal = signal + 0.2 * (fast - slow - signal) if at else fast - slow
        assert (row["macd"], row["signal"]) == (fast - slow, signal)
        assert row["median"] == statistics.median(values)
        if at:
            assert row["deviation"] == statistics.stdev(values)
            assert row["z"] == (prices[at] - statistics.mean(values)) / statistics.stdev(values)


def test_bands_are_around_the_last_closes_of_minutes(cooked: Any) -> None:
    rows = cooked("Bollinger bands over minute bars")["bands"]
    closes = [11.0, 15.0, 16.0, 9.0]  # a late trade closes the first one
    assert [row["close"] for row in rows] == closes
    trend = closes[0]
    for at, row in enumerate(rows):
        last = closes[max(0, at - 2) : at + 1]
        trend += 0.5 * (closes[at] - trend)
        mean, deviation = statistics.mean(last), statistics.pstdev(last)
        assert (row["mean"], row["deviation"], row["trend"]) == (mean, deviation, trend)
        assert (row["upper"], row["lower"]) == (mean + 2.0 * deviation, mean - 2.0 * deviation)


def test_prices_count_for_as_long_as_they_last(cooked: Any) -> None:
    row = cooked("Time-weighted average price")["averages"][-1]
    assert (row["twap"], row["trades"]) == ((10 * 30 + 20 * 10 + 5 * 20) / 60, 3)


def test_a_late_quote_corrects_a_trade(cooked: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cooked("A late quote corrects a trade")
    assert capsys.readouterr().out == "[2, 2] [3, 3]\n"


def test_a_day_over_the_change_of_clocks_has_23_hours(cooked: Any) -> None:
    rows = cooked("Days of New York over the change of clocks")["days"]
    assert [(row["day"], row["hours"], row["vwap"]) for row in rows] == [
        ("2026-03-07", 24, 10.0),
        ("2026-03-08", 23, 12.5),
        ("2026-03-09", 24, 14.0),
    ]


def test_prices_are_adjusted_for_splits_that_are_known(cooked: Any) -> None:
    rows = cooked("Prices adjusted for splits")["adjusted"]
    assert [row["adjusted"] for row in rows] == [100.0, 50.0, 100.0]


def test_trades_in_a_halt_are_flagged(cooked: Any) -> None:
    rows = cooked("Trades in a halt")
    assert [row["is_halted"] for row in rows["flagged"]] == [False, True, True, False]
    assert [(row["is_halted"], row["volume"]) for row in rows["volumes"]] == [
        (False, 25),
        (True, 29),
    ]


def test_positions_are_corrected_by_a_late_fill(cooked: Any) -> None:
    """The worked example of FIFO without its last fill; the fourth record is the second fill."""
    row = cooked("Positions and profit")["positions"][-1]
    names = ("quantity", "cost", "realized", "cash", "fees", "unrealized")
    assert [row[name] for name in names] == [-50, "-525.00", "105.00", "630.00", "4.00", "15.00"]


def test_the_profit_of_each_day_is_shown_without_a_fill_of_the_next(cooked: Any) -> None:
    rows = cooked("Profit of each day")["profits"]
    found = [(row["day"], row["held"], row["profit"]) for row in rows]
    assert found == [(0, 6, 300), (1, 6, 0), (2, 0, -60)]


def test_profit_in_another_currency_is_at_the_rates_of_its_fills(cooked: Any) -> None:
    rows = cooked("Profit in another currency")["euros"]
    assert rows[-1]["euro"] == "107.20"


def test_microprice_and_order_flow(cooked: Any) -> None:
    rows = cooked("Microprice and order flow")["flow"]
    assert [row["order_flow"] for row in rows] == [0, 2, 5, 5]
    assert [row["imbalance"] for row in rows] == [2 / 18, 4 / 20, -3 / 13, 2 / 8]
    assert rows[0]["micro"] == (99.0 * 8 + 101.0 * 10) / 18


def test_the_order_book_at_each_trade(cooked: Any) -> None:
    with pytest.warns(rp.LostRecordsWarning, match="1 row of 'book' without a result .*a gap"):
        rows = cooked("The order book at each trade")["trades"]
    assert [(row["status"], row["spread"], row["imbalance"]) for row in rows] == [
        ("open", "0.25", (22 - 28) / 50),
        ("open", "0.25", (22 - 8) / 30),
        ("gap", None, None),
        ("open", "0.50", -0.5),
    ]


def test_a_trade_of_two_feeds_counts_once(cooked: Any) -> None:
    rows = cooked("The same message from two feeds")["volumes"]
    assert (rows[-1]["volume"], rows[-1]["trades"]) == (150, 2)
