"""As-of joins: records of both sides a second of one core, beside Polars and DuckDB at once.

The rows are compared with Polars' before a time counts; DuckDB decides ties otherwise.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import ripple as rp
from bench import join_peers
from bench.row import Row
from bench.timing import QUICK, cpu_in_turns
from bench.two_streams import RIGHTS, joined, turns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.model.pipeline.plan import Plan

TRADES = 30_000 if QUICK else 200_000
ROUNDS = 2 if QUICK else 3
MS, LATE_NS = 10**6, 2 * 10**9


@rp.record(version=1)
class Trade:
    symbol: str
    trade: int
    price: float
    at_ns: rp.Timestamp


@rp.record(version=1)
class Quote:
    symbol: str
    bid: float
    ask: float
    at_ns: rp.Timestamp


def measure() -> list[Row]:
    rows, fields = [], ["trade", "bid", "ask"]
    for keys, late in ((100, 0.0), (100, 0.01), (10_000, 0.0), (10_000, 0.01)):
        trades, quotes = streams(keys, late)
        sides = {"trades": trades, "quotes": quotes}
        calls = {
            f"batches of {size:,}": partial(joined, plan(), list(turns(sides, size)), fields)
            for size in (1_000, 16_384)
        }
        peers = {
            "Polars, once": partial(_polars, trades, quotes),
            "DuckDB, once": partial(_duckdb, trades, quotes),
        }
        expected = peers["Polars, once"]()
        for name, call in calls.items():
            assert call().equals(expected), f"{name}: other rows than Polars'"
        best = cpu_in_turns({**calls, **peers}, ROUNDS)
        count = trades.num_rows + quotes.num_rows
        for name in calls:
            label = f"{keys:,} keys, {late:.0%} late, {name}"
            for peer in peers:
                other = count / best[peer]
                rows.append(Row(label, count / best[name], "records/s", peer, other))
    return [*rows, *_beside_streams(fields)]


def _beside_streams(fields: list[str]) -> Iterator[Row]:
    trades, quotes = streams(100, 0.0)
    sides = join_peers.untied({"trades": trades, "quotes": quotes})
    ours = partial(joined, plan(), list(turns(sides, join_peers.BATCH)), fields)
    yield from join_peers.beside("asof", "as-of, 100 keys", sides, ours)


def streams(keys: int, late: float) -> tuple[pa.Table, pa.Table]:
    """Return trades and quotes of the same time, with ties, of which some are late by up to 2 s."""
    rng = np.random.default_rng(5)
    names = pa.array([f"symbol-{number}" for number in range(keys)])

    def side(count: int, **columns: pa.Array) -> pa.Table:
        at_ns = np.sort(rng.integers(0, TRADES, count)) * MS + LATE_NS
        is_late = rng.random(count) < late
        at_ns[is_late] -= rng.integers(0, LATE_NS // MS, is_late.sum()) * MS
        symbols = names.take(pa.array(rng.integers(0, keys, count)))
        return pa.table({"symbol": symbols, **columns, "at_ns": at_ns})

    trades = side(TRADES, trade=np.arange(TRADES), price=rng.random(TRADES))
    count = TRADES * RIGHTS
    return trades, side(count, bid=rng.random(count), ask=rng.random(count))


def plan(lateness_ns: int = LATE_NS, emit: str = "final") -> Plan:
    market = rp.Pipeline("market")
    trades, quotes = market.source("trades", Trade), market.source("quotes", Quote)
    priced = trades.join_asof("at-quote", quotes, on="symbol", lateness=lateness_ns, emit=emit)
    return priced.sink("out").plan()


def _polars(trades: pa.Table, quotes: pa.Table) -> pa.Table:
    import polars as pl  # noqa: PLC0415 - of the extra bench

    left, right = (
        pl.DataFrame(side).sort("at_ns", maintain_order=True) for side in (trades, quotes)
    )
    found = left.join_asof(right, on="at_ns", by="symbol", check_sortedness=False)
    return found.select("trade", "bid", "ask").to_arrow()


def _duckdb(trades: pa.Table, quotes: pa.Table) -> pa.Table:
    import duckdb  # noqa: PLC0415 - of the extra bench

    connection = duckdb.connect(config={"threads": 1})
    connection.register("trades", trades)
    connection.register("quotes", quotes)
    return connection.sql(
        "select trade, bid, ask from trades asof left join quotes on "
        "trades.symbol = quotes.symbol and trades.at_ns >= quotes.at_ns"
    ).to_arrow_table()
