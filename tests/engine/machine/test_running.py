"""Running values: against the reference, the worked examples of bars, Polars, and exact sums."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.core.errors import PlanError
from ripple.engine.machine import Engine
from ripple.engine.migration.adaptation import ChangedPlanError, decide
from ripple.model.pipeline.builder import Pipeline
from ripple.model.schema.columns import records_of
from ripple.testing import check_pipeline, crash_test
from tests.engine.machine.stream_ways import ended, shown
from tests.engine.machine.ticks import Tick, ticks
from tests.examples import EXAMPLES, SAMPLED, SCATTERED

SIZES = (1, 7, 1000)
COLUMNS: dict[str, Any] = {
    "before": rp.lag("size"),
    "third": rp.lag("price", 3),
    "same": rp.lag("is_large", 2),
    "most": rp.cum_max("price"),
    "least": rp.cum_min("size"),
    "all": rp.cum_sum("large"),
    "ema": rp.ema("price", span=3),
    "slow": rp.ema("size", alpha=0.1),
    "decayed": rp.ema("price", half_life=40),
    "by_count": rp.bar(every=3),
    "by_volume": rp.bar("size", every=5),
    "by_price": rp.bar("price", every=2.5),
    "sum3": rp.rolling_sum("size", 3),
    "total": rp.rolling_sum("price", 3),
    "mean": rp.rolling_mean("price", 2),
    "mean5": rp.rolling_mean("size", 5),
    "max2": rp.rolling_max("price", 2),
    "min4": rp.rolling_min("size", 4),
    "median3": rp.rolling_median("price", 3),
    "low5": rp.rolling_percentile("size", 5, 12.5),
    "spread4": rp.rolling_stddev("price", 4),
    "spread3": rp.rolling_variance("size", 3, ddof=0),
}


def start() -> Pipeline:
    source = Pipeline("test").source("ticks", Tick, out_of_order=10, reject_future=100_000)
    large = rp.col("size") * (1 << 60)
    return source.derive("large", is_large=rp.col("size") > 1, large=large)


def with_columns(base: Pipeline, ttl: int | None = None, **columns: Any) -> Pipeline:
    return base.scan("scan", "symbol", settled=True, lateness=20, ttl=ttl, **columns)


def bars_of(rows: Pipeline) -> Pipeline:
    keyed = rows.partition("g2p", key=["symbol", "by_volume"])
    fold = keyed.fold("bars", n=ra.count(), open=ra.first("size"), close=ra.last("size"))
    return fold.sink("bars-out")


@settings(max_examples=14 * EXAMPLES // SAMPLED)
@given(
    ttl=st.sampled_from([None, 3, 40, 10**6]),
    happened=ticks(extreme=True),
    restart=st.integers(0, 45),
)
def test_running_values_equal_their_evaluation_from_scratch(
    ttl: int | None, happened: Any, restart: int
) -> None:
    base = start()
    pipeline = ended(with_columns(base, ttl, **COLUMNS), [shown, bars_of], base)
    check_pipeline(pipeline, happened, SIZES, restarts=[min(restart, len(happened))])


@settings(max_examples=10 * EXAMPLES // SAMPLED)
@given(every=st.sampled_from([1, 3, 10]), happened=ticks(), restart=st.integers(0, 45))
def test_divided_rows_equal_their_evaluation_from_scratch(
    every: int, happened: Any, restart: int
) -> None:
    base = start()
    rows = with_columns(
        base, 40, by_volume=rp.bar("size", every=every, split=True), n=rp.lag("size")
    )
    pipeline = ended(rows, [shown, bars_of], base)
    check_pipeline(pipeline, happened, SIZES, restarts=[min(restart, len(happened))])


def test_a_bar_takes_its_share_of_a_trade() -> None:
    rows = rows_of(EXAMPLE, volume=rp.bar("size", every=10, split=True))
    assert [(row["t"], row["volume"], row["size"]) for row in rows] == [
        *((1, 0, 3), (2, 0, 4), (3, 0, 3), (3, 1, 3), (4, 1, 7), (4, 2, 5)),
        *((5, 2, 1), (6, 2, 4), (6, 3, 1), (7, 3, 2)),
    ]
    signed = rows_of(EXAMPLE, imbalance=rp.bar("signed", every=8, split=True))
    assert [(row["t"], row["imbalance"], row["signed"]) for row in signed] == [
        *((1, 0, 3), (2, 0, 4), (3, 0, -6), (4, 0, -9), (4, 1, -3)),
        *((5, 1, 1), (6, 1, 5), (7, 1, 2)),
    ]


def test_running_values_survive_crashes() -> None:
    happened = [
        {"symbol": s, "price": at / 3, "size": at % 5, "venue": None, "timestamp_ns": 30 * at}
        for at in range(8)
        for s in "AB"
    ]
    base = start()
    pipeline = ended(with_columns(base, 200, **COLUMNS), [shown], base)
    crash_test(pipeline, happened, seeds=range(1), every=SCATTERED, pairs=1)


@rp.record
class Trade:
    t: rp.Timestamp
    symbol: str
    price: int
    size: int
    side: int


TRADE_FIELDS = rp.schema_of(Trade).fields


def rows_of(trades: list[tuple[int, ...]], **columns: Any) -> list[dict[str, Any]]:
    """Return trades (time, price, size, side), or (..., symbol), with running values."""
    source = (
        Pipeline("p")
        .source("trades", Trade)
        .derive("d", value=rp.col("price") * rp.col("size"), signed=rp.col("side") * rp.col("size"))
    )
    plan = source.scan("s", "symbol", settled=True, lateness=0, **columns).sink("out").plan()
    names = ("t", "price", "size", "side", "symbol")
    rows = [dict(zip(names, (*one, "A")[:5], strict=True)) for one in trades]
    engine, found = Engine(plan), []
    for at in range(0, len(rows), 997):
        part = records_of(rows[at : at + 997], TRADE_FIELDS)
        engine.apply("trades", part, at + part.num_rows)
        if at + 997 >= len(rows):
            engine.close()
        found += engine.stabilize().outputs["out"].to_pylist()
    return found


EXAMPLE: list[tuple[int, ...]] = [
    (1, 100, 3, 1), (2, 101, 4, 1), (3, 101, 6, -1), (4, 99, 12, -1), (5, 100, 1, 1),
    (6, 100, 5, 1), (7, 102, 2, 1),
]  # fmt: skip


def test_bars_end_with_the_trade_that_fills_them() -> None:
    rows = rows_of(
        EXAMPLE,
        count=rp.bar(every=3),
        volume=rp.bar("size", every=10),
        values=rp.bar("value", every=1000),
        imbalance=rp.bar("signed", every=8),
    )

    assert [row["count"] for row in rows] == [0, 0, 0, 1, 1, 1, 2]
    assert [row["volume"] for row in rows] == [0, 0, 0, 1, 2, 2, 2]
    assert [row["values"] for row in rows] == [0, 0, 0, 1, 2, 2, 2]
    assert [row["imbalance"] for row in rows] == [0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("whole", [True, False])
def test_a_large_value_against_an_open_bar_fills_it_only_with_what_is_left(whole: bool) -> None:
    most, least = (1 << 63) - 1, -(1 << 63)
    trades = [(at, 1, size, 1) for at, size in enumerate((-4, 5, 4, -9, least, most, 1, most, 1))]
    size = rp.col("size") if whole else rp.col("size").cast(float)
    source = Pipeline("p").source("trades", Trade).derive("d", x=size)
    bars = source.scan("s", "symbol", settled=True, x_bar=rp.bar("x", every=5), lateness=0)
    found = rp.collect(bars.sink("out"), [Trade(*row[:1], "A", *row[1:]) for row in trades])
    assert [row["x_bar"] for row in found] == [0, 0, 0, 1, 2, 3, 4, 4, 5]


def test_examples_of_averages_and_drawdown() -> None:
    prices = [(at, price, 1, 1) for at, price in enumerate((100, 120, 90, 130))]
    rows = rows_of(prices, high=rp.cum_max("price"), ema=rp.ema("price", span=3))
    assert [row["high"] - row["price"] for row in rows] == [0, 0, 30, 0]
    assert [row["ema"] for row in rows] == [100, 110, 100, 115]
    halved = rows_of(
        [(0, 8, 1, 1), (10, 0, 1, 1), (30, 0, 1, 1)], ema=rp.ema("price", half_life=10)
    )
    assert [row["ema"] for row in halved] == [8, 4, 1]
    hour = 3_600_000_000_000
    near = rows_of([(0, 0, 1, 1), (1, 1, 1, 1)], ema=rp.ema("price", half_life=hour))
    assert near[1]["ema"] == pytest.approx(math.log(2) / hour, rel=1e-12, abs=0)


def walk(count: int) -> list[tuple[int, ...]]:
    chance = random.Random("running")
    return [
        (at, chance.randint(1, 10**6), chance.randint(1, 99), 1, f"S{chance.randint(0, 9)}")  # type: ignore[misc]
        for at in range(count)
    ]


def test_running_values_are_those_of_polars() -> None:
    import polars as pl

    trades = walk(4000)
    rows = rows_of(
        trades,
        before=rp.lag("price", 2),
        high=rp.cum_max("price"),
        total=rp.cum_sum("price"),
        ema=rp.ema("price", alpha=0.1),
        sum20=rp.rolling_sum("price", 20),
        max20=rp.rolling_max("price", 20),
        min20=rp.rolling_min("price", 20),
    )
    price = pl.col("price")
    frame = pl.DataFrame(
        [(one[0], one[1], one[4]) for one in trades], ["t", "price", "symbol"], orient="row"
    )
    expected = frame.with_columns(
        before=price.shift(2).over("symbol"),
        high=price.cum_max().over("symbol"),
        total=price.cum_sum().over("symbol"),
        ema=price.cast(pl.Float64).ewm_mean(alpha=0.1, adjust=False).over("symbol"),
        sum20=price.rolling_sum(20, min_samples=1).over("symbol"),
        max20=price.rolling_max(20, min_samples=1).over("symbol"),
        min20=price.rolling_min(20, min_samples=1).over("symbol"),
    )
    assert [{name: row[name] for name in expected.columns} for row in rows] == expected.to_dicts()


def test_means_of_the_last_values_are_exact() -> None:
    chance = np.random.default_rng(3)
    values = (chance.normal(size=3000) * 10.0 ** chance.integers(-9, 9, 3000)).tolist()
    source = Pipeline("p").source("ticks", Tick)
    plan = source.scan(
        *("s", "symbol"), settled=True, lateness=0,
        total=rp.rolling_sum("price", 7), mean=rp.rolling_mean("price", 7),
    ).sink("out").plan()  # fmt: skip
    rows = [
        {"symbol": "A", "price": value, "size": 1, "venue": None, "timestamp_ns": at}
        for at, value in enumerate(values)
    ]
    engine = Engine(plan)
    engine.apply("ticks", records_of(rows, rp.schema_of(Tick).fields), len(rows))
    engine.close()
    found = engine.stabilize().outputs["out"]
    for at, (total, mean) in enumerate(
        zip(found.column("total").to_pylist(), found.column("mean").to_pylist(), strict=True)
    ):
        last = values[max(0, at - 6) : at + 1]
        assert total == math.fsum(last)
        assert mean == float(sum(map(Fraction, last)) / len(last))


def refused(**columns: Any) -> str:
    size = rp.col("size")
    base = start().derive("m", paid=size.cast(rp.Decimal(9, 2)), day=size.cast(dt.date))
    base = base.derive("w", much=size.cast(rp.Decimal(38, 2)))
    with pytest.raises(PlanError) as raised:
        base.scan("s", "symbol", settled=True, **columns)
    return str(raised.value)


def test_bad_uses_are_told_what_to_write() -> None:
    assert "there is a field 'price' already" in refused(price=rp.lag("size"))
    assert "rp.sum('price'): say of which rows, as window=rp.Last(20)" in refused(x=rp.sum("price"))
    assert "there is no field 'prize'" in refused(x=rp.lag("prize"))
    assert "not string: a .derive before it with .cast" in refused(x=rp.lag("symbol"))
    assert "cum_sum adds integers and decimals, and 'price' holds floats" in refused(
        x=rp.cum_sum("price")
    )
    assert "and the field holds integers" in refused(x=rp.bar("size", every=2.5))
    assert "both split rows: take two scans" in refused(
        x=rp.bar("size", every=2, split=True), y=rp.bar("large", every=2, split=True)
    )
    assert "split divides integers" in refused(x=rp.bar("price", every=2, split=True))
    assert "x is a running value, and step= makes the rows" in refused(x=rp.lag("size"), step=max)
    assert "state is missing: it takes state=, step= and into=, or running" in refused()
    for column, why in (
        (rp.ema("paid", span=3), "ema rounds, and 'paid' holds decimals: a .derive before it with"),
        (rp.rolling_mean("paid", 3), "rolling_mean rounds, and 'paid' holds decimals"),
        (rp.bar("paid", every=2.5), "every is 2.5, and 'paid' holds decimals: write an integer"),
        (rp.bar("price", every=decimal.Decimal(2)), "'price' holds floats: write a float"),
        (rp.lag("much"), "lag takes decimals of up to 18 digits, and 'much' has more"),
        (rp.cum_sum("day"), "cum_sum takes numbers, not date: a .derive before it with"),
    ):
        assert why in refused(x=column)
    for make in (
        lambda: rp.ema("price"),
        lambda: rp.ema("price", span=2, alpha=0.1),
        lambda: rp.ema("price", alpha=0),
        lambda: rp.ema("price", span=0.5),
        lambda: rp.ema("price", half_life=0),
        lambda: rp.lag("price", 0),
        lambda: rp.rolling_sum("price", 20_000),
        lambda: rp.bar("size", every=0),
        lambda: rp.bar("size", every=decimal.Decimal("nan")),
    ):
        with pytest.raises(PlanError, match=r"ema|lag|rolling_sum|bar"):
            make()


def test_states_are_kept_or_refused_after_a_change() -> None:
    base = start()
    engine = Engine(with_columns(base, high=rp.cum_max("size")).sink("out").plan())
    engine.stabilize()
    renamed = base.scan("other", "symbol", settled=True, lateness=20, high=rp.cum_max("size"))
    assert decide(renamed.sink("out").plan(), engine.snapshot()).snapshot is not None
    with pytest.raises(ChangedPlanError, match="there are no rows for 'scan' in the checkpoint"):
        decide(with_columns(base, high=rp.cum_min("size")).sink("x").plan(), engine.snapshot())
