"""Queries in Pathway, ``PYTHON pathway_peer.py QUERY FOLDER OUT``: changes to a CSV file, seconds.

The rows come as a stream, with a commit for each 1,000 of a table. Hours of New York are those of
UTC, whole hours apart.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pathway as pw

BATCH, HOUR_NS, MICRO = 1_000, 3_600_000_000_000, 1_000_000


def near(quotes, trades):
    span = pw.temporal.interval(0, 99_999_999)
    pairs = trades.interval_join(
        quotes, trades.timestamp_ns, quotes.timestamp_ns, span, trades.symbol == quotes.symbol
    ).select(trades.trade_id, quotes.bid_ticks, quotes.ask_ticks)
    sums = pairs.groupby(pairs.trade_id).reduce(
        pairs.trade_id,
        n=pw.reducers.count(),
        low=pw.reducers.min(pairs.bid_ticks),
        high=pw.reducers.max(pairs.ask_ticks),
    )
    found = trades.join_left(sums, trades.trade_id == sums.trade_id)
    return found.select(trades.trade_id, n=pw.coalesce(sums.n, 0), low=sums.low, high=sums.high)


def hours(trades):
    valued = trades.select(
        trades.symbol,
        trades.size,
        value=trades.price_ticks * trades.size,
        window_start_ns=trades.timestamp_ns - trades.timestamp_ns % HOUR_NS,
    )
    return valued.groupby(valued.symbol, valued.window_start_ns).reduce(
        valued.symbol,
        valued.window_start_ns,
        value=pw.reducers.sum(valued.value),
        volume=pw.reducers.sum(valued.size),
    )


def in_dollars(rates, fills):
    made = fills.filter(fills.busts < 0)
    currency = made.currency
    pair = pw.if_else(currency == "EUR", "EURUSD", pw.if_else(currency == "JPY", "JPYUSD", ""))
    made = made.with_columns(pair=pair)
    found = made.asof_join(
        rates, made.timestamp_ns, rates.timestamp_ns, made.pair == rates.pair, how=pw.JoinMode.LEFT
    )
    rate = pw.coalesce(rates.rate_micro, MICRO)
    return found.select(made.fill_id, value=made.quantity * made.price_ticks * rate)


QUERIES = {
    "m2": (near, ("quotes", "trades")),
    "m7": (hours, ("trades",)),
    "m10": (in_dollars, ("rates", "fills")),
}


def table(path):
    rows = pd.read_parquet(path)
    return pw.debug.table_from_pandas(rows.assign(__time__=np.arange(len(rows)) // BATCH * 2))


def main(query: str, folder: Path, out: str) -> None:
    function, names = QUERIES[query]
    result = function(*(table(folder / f"{name}.parquet") for name in names))
    pw.io.csv.write(result, out)
    began = time.process_time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    print(time.process_time() - began)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
