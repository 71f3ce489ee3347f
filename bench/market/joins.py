"""Queries of rows with others: as of their time, near in time, outside of halts."""

from __future__ import annotations

import polars as pl

import ripple as rp
from bench.market.data import Tables
from bench.market.query import Query
from bench.market.records import LATENESS, Fill, Halt, Quote, Rate, Trade

MICRO = 1_000_000


def _spread(_: Tables) -> rp.Pipeline:
    desk = rp.Pipeline("m1")
    quotes = desk.source("quotes", Quote)
    return (
        desk.source("trades", Trade)
        .join_asof("at-quote", quotes, on="symbol", tolerance="1s", lateness=LATENESS, emit="final")
        .sink("rows")
    )


_SPREAD = """
    WITH newest AS (
        FROM quotes
        QUALIFY row_number() OVER (PARTITION BY symbol, timestamp_ns ORDER BY off DESC) = 1
    )
    SELECT t.trade_id, t.price_ticks,
        CASE WHEN t.timestamp_ns - q.timestamp_ns <= 1000000000 THEN q.bid_ticks END AS bid_ticks,
        CASE WHEN t.timestamp_ns - q.timestamp_ns <= 1000000000 THEN q.ask_ticks END AS ask_ticks
    FROM trades t ASOF LEFT JOIN newest q
    ON t.symbol = q.symbol AND t.timestamp_ns >= q.timestamp_ns
"""


def _spread_polars(given: dict[str, pl.DataFrame]) -> pl.DataFrame:
    quotes = given["quotes"].sort("timestamp_ns", "off")
    trades = given["trades"].sort("timestamp_ns", "off")
    joined = trades.join_asof(quotes, on="timestamp_ns", by="symbol", tolerance=10**9)
    return joined.select("trade_id", "price_ticks", "bid_ticks", "ask_ticks")


def _near(_: Tables) -> rp.Pipeline:
    desk = rp.Pipeline("m2")
    quotes = desk.source("quotes", Quote)
    return (
        desk.source("trades", Trade)
        .join_interval(
            "after",
            quotes,
            on="symbol",
            within=(0, 99_999_999),
            how="left",
            lateness=LATENESS,
            emit="final",
        )
        .partition("by-trade", key="trade_id")
        .fold("sums", n=rp.count("bid_ticks"), low=rp.min("bid_ticks"), high=rp.max("ask_ticks"))
        .sink("rows")
    )


_NEAR = """
    SELECT t.trade_id, count(q.off) AS n, min(q.bid_ticks) AS low, max(q.ask_ticks) AS high
    FROM trades t LEFT JOIN quotes q
    ON t.symbol = q.symbol AND q.timestamp_ns >= t.timestamp_ns
        AND q.timestamp_ns < t.timestamp_ns + 100000000
    GROUP BY 1
"""


def _in_dollars(_: Tables) -> rp.Pipeline:
    desk = rp.Pipeline("m10")
    rates = desk.source("rates", Rate)
    currency = rp.col("currency")
    euro_or_yen = rp.when(currency == "EUR").then("EURUSD").otherwise("JPYUSD")
    return (
        desk.source("fills", Fill)
        .filter("made", rp.col("busts") < 0)
        .derive("paired", pair=rp.when(currency == "USD").then(None).otherwise(euro_or_yen))
        .join_asof("at-rate", rates, on="pair", lateness=LATENESS, emit="final")
        .derive(
            "converted",
            value=rp.col("quantity")
            * rp.col("price_ticks")
            * rp.col("rate_micro").fill_null(MICRO),
        )
        .sink("rows")
    )


_IN_DOLLARS = """
    WITH made AS (
        SELECT *, CASE currency WHEN 'EUR' THEN 'EURUSD' WHEN 'JPY' THEN 'JPYUSD' END AS pair
        FROM fills WHERE busts < 0
    )
    SELECT f.fill_id, f.quantity * f.price_ticks * coalesce(r.rate_micro, 1000000) AS value
    FROM made f ASOF LEFT JOIN rates r ON f.pair = r.pair AND f.timestamp_ns >= r.timestamp_ns
"""


def _in_dollars_polars(given: dict[str, pl.DataFrame]) -> pl.DataFrame:
    pairs = {"EUR": "EURUSD", "JPY": "JPYUSD"}
    fills = (
        given["fills"]
        .filter(pl.col("busts") < 0)
        .with_columns(pair=pl.col("currency").replace_strict(pairs, default=None))
        .sort("timestamp_ns", "off")
    )
    joined = fills.join_asof(given["rates"].sort("timestamp_ns"), on="timestamp_ns", by="pair")
    rate = pl.col("rate_micro").fill_null(MICRO)
    return joined.select("fill_id", value=pl.col("quantity") * pl.col("price_ticks") * rate)


def _adjusted(tables: Tables) -> rp.Pipeline:
    splits = rp.constant("splits", tables["splits"], key="symbol")
    at = rp.col("timestamp_ns")
    counts = (at < rp.col("effective_ns")) & (at >= rp.col("known_ns"))
    n = rp.when(counts.fill_null(value=False)).then(rp.col("numerator")).otherwise(1)
    return (
        rp.Pipeline("m11")
        .source("trades", Trade)
        .join("split", splits, on="symbol", how="left")
        .derive("adjusted", n=n)
        .sink("rows")
    )


_ADJUSTED = """
    SELECT t.trade_id, t.price_ticks, coalesce(s.numerator, 1) AS n
    FROM trades t LEFT JOIN splits s
    ON s.symbol = t.symbol AND t.timestamp_ns < s.effective_ns AND t.timestamp_ns >= s.known_ns
"""


def _adjusted_polars(given: dict[str, pl.DataFrame]) -> pl.DataFrame:
    at = pl.col("timestamp_ns")
    joined = given["trades"].join(given["splits"], on="symbol", how="left")
    counts = (at < pl.col("effective_ns")) & (at >= pl.col("known_ns"))
    n = pl.when(counts).then(pl.col("numerator")).otherwise(1)
    return joined.select("trade_id", "price_ticks", n=n)


def _not_halted(_: Tables) -> rp.Pipeline:
    desk = rp.Pipeline("m12")
    halts = desk.source("halts", Halt, out_of_order="1h")  # in no order
    return (
        desk.source("trades", Trade)
        .distinct("first", key="trade_id", within="1s", lateness=LATENESS)
        .join_asof("halt", halts, on="symbol", emit="final")
        .filter("traded", rp.col("to_ns").is_null() | (rp.col("timestamp_ns") >= rp.col("to_ns")))
        .partition("by-symbol", key="symbol")
        .fold("sums", n=rp.count(), volume=rp.sum("size"), last=rp.last("price_ticks"))
        .sink("rows")
    )


_NOT_HALTED = """
    WITH once AS (
        FROM trades_twice
        QUALIFY row_number() OVER (PARTITION BY trade_id ORDER BY timestamp_ns, off) = 1
    )
    SELECT symbol, count(*) AS n, sum(size)::BIGINT AS volume,
        arg_max(price_ticks, (timestamp_ns, -off)) AS last
    FROM once WHERE NOT EXISTS (
        FROM halts h WHERE h.symbol = once.symbol
        AND once.timestamp_ns >= h.from_ns AND once.timestamp_ns < h.to_ns)
    GROUP BY 1
"""


def _not_halted_polars(given: dict[str, pl.DataFrame]) -> pl.DataFrame:
    once = given["trades_twice"].sort("timestamp_ns", "off").unique(
        "trade_id", keep="first", maintain_order=True
    )  # fmt: skip
    halted = once.join_where(
        given["halts"],
        pl.col("symbol") == pl.col("symbol_right"),
        pl.col("timestamp_ns") >= pl.col("from_ns"),
        pl.col("timestamp_ns") < pl.col("to_ns"),
    ).select("trade_id")
    traded = once.join(halted, on="trade_id", how="anti", maintain_order="left")
    return traded.group_by("symbol").agg(
        n=pl.len().cast(pl.Int64), volume=pl.col("size").sum(), last=pl.col("price_ticks").last()
    )


QUERIES = (
    Query(
        "m1",
        "the quote at each trade, at most a second old",
        ("quotes", "trades"),
        ("trade_id", "price_ticks", "bid_ticks", "ask_ticks"),
        _spread,
        "bac9a7000bc47400",
        _SPREAD,
        _spread_polars,
    ),
    Query(
        "m2",
        "the quotes within 100 ms after each trade",
        ("quotes", "trades"),
        ("trade_id", "n", "low", "high"),
        _near,
        "5bf5c1a32aa1a88d",
        _NEAR,
    ),
    Query(
        "m10",
        "fills in dollars, by the rate of their time if there is one",
        ("rates", "fills"),
        ("fill_id", "value"),
        _in_dollars,
        "f537a1b36a662dde",
        _IN_DOLLARS,
        _in_dollars_polars,
    ),
    Query(
        "m11",
        "trades adjusted for splits, as known then",
        ("trades",),
        ("trade_id", "price_ticks", "n"),
        _adjusted,
        "ce7bde4da00dd3cc",
        _ADJUSTED,
        _adjusted_polars,
    ),
    Query(
        "m12",
        "trades of two feeds outside of halts",
        ("halts", "trades_twice"),
        ("symbol", "n", "volume", "last"),
        _not_halted,
        "c5a5f3745a291179",
        _NOT_HALTED,
        _not_halted_polars,
    ),
)
