"""Queries in csp, ``PYTHON csp_peer.py QUERY FOLDER OUT``: rows to a Parquet file, seconds printed.

csp has no late events: each symbol's trades are given in their order.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from datetime import timedelta

import csp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from csp import ts

VOLUME, IMBALANCE, LAST, ALPHA = 10_000, 5_000, 20, 0.1


@csp.node
def bars(price: ts[int], size: ts[int], part: ts[int], at: ts[int], every: int) -> ts[object]:
    with csp.state():
        s_rows = []
        s_sum = 0
    if csp.ticked(price):
        s_rows.append((at, price, size))
        s_sum += part
        if abs(s_sum) >= every:
            ats, prices, sizes = zip(*s_rows)
            row = (
                *(ats[0], ats[-1], prices[0], max(prices), min(prices), prices[-1]),
                *(sum(sizes), len(sizes), sum(a * b for a, b in zip(prices, sizes)), s_sum),
            )
            s_rows = []
            s_sum = 0
            return row


def _bars(part_of: Callable[..., np.ndarray], every: int):
    def graph(trades):
        part = part_of(trades["size"], trades["side"])
        given = [trades["price_ticks"], trades["size"], part, trades["timestamp_ns"]]
        return [bars(*(_curve(trades, one) for one in given), every)]

    return graph


def _last(trades):
    price = _curve(trades, trades["price_ticks"].astype(float))
    named = {"interval": LAST, "min_window": 1}
    functions = (csp.stats.count, csp.stats.sum, csp.stats.min, csp.stats.max)
    return [function(price, **named) for function in functions]


def _average(trades):
    price = _curve(trades, trades["price_ticks"] * 0.01)
    return [csp.stats.ema(price, min_periods=1, alpha=ALPHA, adjust=False)]


def _curve(trades, values):
    kind = float if values.dtype.kind == "f" else int
    return csp.curve(kind, (trades["timestamp_ns"].astype("datetime64[ns]"), values))


GRAPHS = {
    "m3": _bars(lambda size, _: size, VOLUME),
    "m4": _bars(lambda size, side: size * side, IMBALANCE),
    "m5": _last,
    "m6": _average,
}


def main(query: str, folder: str, out: str) -> None:
    table = pq.read_table(f"{folder}/trades.parquet").sort_by("timestamp_ns")
    symbols = {}
    for name in table["symbol"].unique().to_pylist():
        own = table.filter(pa.compute.equal(table["symbol"], name))
        symbols[name] = {one: own[one].to_numpy() for one in own.column_names if one != "symbol"}

    @csp.graph
    def flow():
        for name, trades in symbols.items():
            for at, series in enumerate(GRAPHS[query](trades)):
                csp.add_graph_output((name, at), series)

    started = time.process_time()
    first = table["timestamp_ns"][0].as_py()
    start = np.datetime64(first // 1_000, "us").astype(object) - timedelta(seconds=1)
    found = csp.run(flow, starttime=start, endtime=timedelta(days=1), output_numpy=True)
    seconds = time.process_time() - started
    pq.write_table(pa.Table.from_pylist(list(_rows(query, symbols, found))), out)
    print(seconds)


def _rows(query: str, symbols, found) -> Iterable[dict[str, object]]:
    for name, trades in symbols.items():
        if query in ("m3", "m4"):
            for row in found[name, 0][1]:
                yield {"symbol": name, **{f"c{at}": value for at, value in enumerate(row)}}
            continue
        columns = [found[name, at][1] for at in range(4 if query == "m5" else 1)]
        kind = int if query == "m5" else float
        for trade, *values in zip(trades["trade_id"].tolist(), *columns, strict=True):
            yield {
                "trade_id": trade,
                **{f"c{at}": kind(value) for at, value in enumerate(values)},
            }


if __name__ == "__main__":
    main(*sys.argv[1:])
