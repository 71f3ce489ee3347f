"""Queries of a symbol's trades in their order: bars, the last ones, averages, hours."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

import ripple as rp
from bench.market.data import Tables
from bench.market.query import Query, Rows
from bench.market.records import LATENESS, Trade

VOLUME, IMBALANCE, LAST = 10_000, 5_000, 20
ALPHA = 0.1
NEW_YORK = "America/New_York"
BAR = (
    *("symbol", "start", "end", "price_open", "price_high", "price_low", "price_close"),
    *("volume", "trades", "value", "measure"),
)


def _trades(name: str) -> rp.Pipeline:
    return rp.Pipeline(name).source("trades", Trade)


def _bars(name: str, measure: rp.Expr, every: int) -> rp.Pipeline:
    numbered = (
        _trades(name)
        .derive("measured", part=measure, value=rp.col("price_ticks") * rp.col("size"))
        .scan("numbered", key="symbol", settled=True, lateness=LATENESS,
              bar=rp.bar("part", every=every))
    )  # fmt: skip
    bars = numbered.partition("by-bar", key=["symbol", "bar"]).fold(
        "bars",
        start=rp.min("timestamp_ns"),
        end=rp.max("timestamp_ns"),
        price=rp.ohlc("price_ticks"),
        volume=rp.sum("size"),
        trades=rp.count(),
        value=rp.sum("value"),
        measure=rp.sum("part"),
    )
    return bars.filter("closed", abs(rp.col("measure")) >= every).sink("rows")


def _volume_bars(_: Tables) -> rp.Pipeline:
    return _bars("m3", rp.col("size"), VOLUME)


def _imbalance_bars(_: Tables) -> rp.Pipeline:
    return _bars("m4", rp.col("size") * rp.col("side"), IMBALANCE)


def _in_order(given: dict[str, Rows]) -> Rows:
    """Return the trades in the order of time, then of arrival."""
    return sorted(given["trades"], key=lambda row: row[4])


def _plain_bars(measure: Callable[[int, int], int], every: int) -> Callable[..., Rows]:
    def closed(given: dict[str, Rows]) -> Rows:
        found, filling = [], {}
        for symbol, price, size, side, at, _ in _in_order(given):
            filling.setdefault(symbol, []).append((at, price, size, measure(size, side)))
            rows = filling[symbol]
            if abs(sum(part for *_, part in rows)) < every:
                continue
            prices = [price for _, price, _, _ in rows]
            found.append(
                (
                    *(symbol, rows[0][0], rows[-1][0]),
                    *(prices[0], max(prices), min(prices), prices[-1]),
                    *(sum(size for _, _, size, _ in rows), len(rows)),
                    sum(price * size for _, price, size, _ in rows),
                    sum(part for *_, part in rows),
                )
            )
            del filling[symbol]
        return found

    return closed


def _last_ones(_: Tables) -> rp.Pipeline:
    return (
        _trades("m5")
        .derive("one", one=rp.lit(1))
        .scan(
            "last",
            key="symbol",
            settled=True,
            lateness=LATENESS,
            n=rp.rolling_sum("one", LAST),
            total=rp.rolling_sum("price_ticks", LAST),
            low=rp.rolling_min("price_ticks", LAST),
            high=rp.rolling_max("price_ticks", LAST),
        )
        .sink("rows")
    )


_LAST_ONES = f"""
    SELECT trade_id, count(*) OVER w AS n, sum(price_ticks) OVER w::BIGINT AS total,
        min(price_ticks) OVER w AS low, max(price_ticks) OVER w AS high
    FROM trades
    WINDOW w AS (PARTITION BY symbol ORDER BY timestamp_ns, off ROWS {LAST - 1} PRECEDING)
"""


def _last_ones_polars(given: dict[str, pl.DataFrame]) -> pl.DataFrame:
    price = pl.col("price_ticks")
    rolled = {
        "n": (price * 0 + 1).rolling_sum(LAST, min_samples=1),
        "total": price.rolling_sum(LAST, min_samples=1),
        "low": price.rolling_min(LAST, min_samples=1),
        "high": price.rolling_max(LAST, min_samples=1),
    }
    return (
        given["trades"]
        .sort("timestamp_ns", "off")
        .select("trade_id", **{name: one.over("symbol") for name, one in rolled.items()})
    )


def _average(_: Tables) -> rp.Pipeline:
    return (
        _trades("m6")
        .derive("priced", price=rp.col("price_ticks") * 0.01)
        .scan("averaged", key="symbol", settled=True, lateness=LATENESS,
              y=rp.ema("price", alpha=ALPHA))
        .sink("rows")
    )  # fmt: skip


def _plain_average(given: dict[str, Rows]) -> Rows:
    means: dict[str, float] = {}
    found = []
    for symbol, ticks, _, _, _, trade in _in_order(given):
        price = ticks * 0.01
        before = means.get(symbol, price)
        means[symbol] = before + ALPHA * (price - before)
        found.append((trade, means[symbol]))
    return found


def _average_polars(given: dict[str, pl.DataFrame]) -> pl.DataFrame:
    price = pl.col("price_ticks") * 0.01
    y = price.ewm_mean(alpha=ALPHA, adjust=False).over("symbol")
    return given["trades"].sort("timestamp_ns", "off").select("trade_id", y=y)


def _hours(_: Tables) -> rp.Pipeline:
    return (
        _trades("m7")
        .derive("valued", value=rp.col("price_ticks") * rp.col("size"))
        .partition("by-symbol", key="symbol")
        .window("hour", rp.Tumbling("1h", zone=NEW_YORK), lateness=LATENESS)
        .fold("sums", value=rp.sum("value"), volume=rp.sum("size"))
        .sink("rows")
    )


_HOURS = f"""
    SELECT symbol,
        epoch_ns(timezone('{NEW_YORK}', date_trunc('hour', timezone('{NEW_YORK}',
            to_timestamp(timestamp_ns // 1000000000))))) AS window_start_ns,
        sum(price_ticks * size)::BIGINT AS value, sum(size)::BIGINT AS volume
    FROM trades GROUP BY ALL
"""


def _hours_polars(given: dict[str, pl.DataFrame]) -> pl.DataFrame:
    at = pl.from_epoch("timestamp_ns", time_unit="ns").dt.replace_time_zone("UTC")
    hour = at.dt.convert_time_zone(NEW_YORK).dt.truncate("1h").dt.epoch("ns")
    return (
        given["trades"]
        .group_by("symbol", window_start_ns=hour)
        .agg(value=(pl.col("price_ticks") * pl.col("size")).sum(), volume=pl.col("size").sum())
    )


QUERIES = (
    Query(
        "m3",
        "bars of 10,000 shares",
        ("trades",),
        BAR,
        _volume_bars,
        "c4c950cfe6137bd5",
        plain=_plain_bars(lambda size, _: size, VOLUME),
    ),
    Query(
        "m4",
        "bars of an imbalance of 5,000 shares",
        ("trades",),
        BAR,
        _imbalance_bars,
        "bce18a15944c9318",
        plain=_plain_bars(lambda size, side: size * side, IMBALANCE),
    ),
    Query(
        "m5",
        "the last 20 trades: count, sum, least, largest",
        ("trades",),
        ("trade_id", "n", "total", "low", "high"),
        _last_ones,
        "41a8caf1963171a7",
        _LAST_ONES,
        _last_ones_polars,
    ),
    Query(
        "m6",
        "the exponential average of prices",
        ("trades",),
        ("trade_id", "y"),
        _average,
        "8d3e7dc827c5ee23",
        polars=_average_polars,
        plain=_plain_average,
    ),
    Query(
        "m7",
        "values and volumes by hour of New York",
        ("trades",),
        ("symbol", "window_start_ns", "value", "volume"),
        _hours,
        "27a81af711c74925",
        _HOURS,
        _hours_polars,
    ),
)
