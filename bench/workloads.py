"""Small pieces of work, each a call that is repeated: for the table and for the gate.

They use Ripple's public names only, so that they run on older commits as well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv

import ripple as rp
from bench import stream_workloads as streams
from bench.stream_workloads import Run, dated, new_folder
from bench.trades import Trade, feed, slices, trades, vwap_plan

BATCH = 1_000
SYMBOLS = 2_000
FEW_EVENTS = 100  # a batch of many partitions


@dataclass(frozen=True, slots=True)
class Workload:
    """``begin(events)`` prepares, and returns the call that handles so many events."""

    events: int
    begin: Callable[[int], Run]


def processor_seconds(run: Run) -> float:
    """Return what one run takes, of all threads."""
    started = time.process_time()
    run()
    return time.process_time() - started


def _by_symbol() -> rp.Pipeline:
    return rp.Pipeline("bench").source("trades", Trade).partition("by-symbol", key="symbol")


def _engine(plan: rp.Plan, symbols: int = SYMBOLS, batch_rows: int = BATCH) -> Callable[[int], Run]:
    """One engine from the first event on, a stabilize after each batch."""

    def begin(events: int) -> Run:
        batches = slices(trades(events, symbols), batch_rows)
        return lambda: feed(rp.Engine(plan), batches)

    return begin


def _folded(**results: Any) -> rp.Plan:
    return _by_symbol().fold("folded", **results).sink("output").plan()


def _windowed(assigner: Any) -> rp.Plan:
    windows = _by_symbol().window("windows", assigner)
    return windows.fold("folded", vwap=rp.vwap("price", "size")).sink("output").plan()


def _filter_and_derive() -> rp.Plan:
    return (
        rp.Pipeline("bench")
        .source("trades", Trade)
        .filter("large", rp.col("size") > 500)
        .derive("value", notional=rp.col("price") * rp.col("size"))
        .partition("by-symbol", key="symbol")
        .fold("folded", notional=rp.sum("notional"), count=rp.count())
        .sink("output")
        .plan()
    )


def _fold_of_results() -> rp.Plan:
    vwaps = _by_symbol().fold("vwap", vwap=rp.vwap("price", "size"), volume=rp.sum("size"))
    total = vwaps.partition("all", key=()).fold("total", portfolio=rp.sum("vwap"))
    return total.sink("vwaps", of="vwap").sink("output").plan()


def _texts() -> rp.Plan:
    """Every ordered aggregate of texts."""
    return _folded(
        first=rp.first("venue"),
        last=rp.last("venue"),
        least=rp.min("venue"),
        most=rp.max("venue"),
    )


def _rows() -> Callable[[int], Run]:
    """Whole rows: the last, the dearest, the ten largest."""

    def begin(events: int) -> Run:
        plan = _folded(
            last=rp.last_row(["price", "venue"]),
            dearest=rp.arg_max("price", ["size", "venue"]),
            largest=rp.top_rows(10, "size", ["price", "venue"]),
        )
        return _engine(plan)(events)

    return begin


def _users_aggregate() -> rp.Plan:
    spread = rp.custom(
        "price",
        init=lambda: (float("inf"), float("-inf")),
        add=lambda state, price: (min(state[0], price), max(state[1], price)),
        result=lambda state: state[1] - state[0],
        type=float,
    )
    return _folded(spread=spread)


def _partitions(count: int) -> Callable[[int], Run]:
    """As many engines, which share the symbols, fed in turns."""

    def begin(events: int) -> Run:
        engines = [rp.Engine(vwap_plan()) for _ in range(count)]
        mine = [
            slices(trades(events // count, SYMBOLS // count, first), FEW_EVENTS)
            for first in range(count)
        ]

        def run() -> None:
            for turn in zip(*mine, strict=True):
                for engine, batch in zip(engines, turn, strict=True):
                    feed(engine, [batch])

        return run

    return begin


def _csv(plan: rp.Plan, symbols: int) -> Callable[[int], Run]:
    """From a file of lines to lines that nobody reads."""

    def begin(events: int) -> Run:
        path = new_folder() / "trades.csv"
        options = pa.csv.WriteOptions(include_header=False, quoting_style="none")
        pa.csv.write_csv(dated(events, symbols), path, options)

        def run() -> None:
            assert rp.run(plan, source=str(path), sink=os.devnull).applied == events

        return run

    return begin


def _one_change(changes: int) -> Run:
    """Set a key of a column, stabilize, read the sum of an expression."""
    graph = rp.Graph()
    price = graph.column(float, name="price")
    size = graph.column(int, key=price, name="size")
    total = graph.map([price, size], rp.col("price") * rp.col("size")).sum()
    names = [f"SYM{i:06d}" for i in range(SYMBOLS)]
    price.apply(names, [1.0] * SYMBOLS)
    size.apply(names, [100] * SYMBOLS)
    value = 1.0

    def run() -> None:
        nonlocal value
        for i in range(changes):
            value += 1.0
            price[names[i % SYMBOLS]] = value
            graph.stabilize()
            assert total.value

    return run


WORKLOADS = {
    "vwap": Workload(200_000, _engine(vwap_plan())),
    "windows": Workload(200_000, _engine(vwap_plan(windows=True))),
    "sliding": Workload(50_000, _engine(_windowed(rp.Sliding("20s", "5s")))),
    "sessions": Workload(100_000, _engine(_windowed(rp.Session("2s")))),
    "filter-and-derive": Workload(200_000, _engine(_filter_and_derive())),
    "median": Workload(50_000, _engine(_folded(median=rp.median("price")))),
    "top-k": Workload(50_000, _engine(_folded(top=rp.top_k("price", 3)))),
    "last-text": Workload(20_000, _engine(_folded(last=rp.last("venue")))),
    "texts": Workload(20_000, _engine(_texts())),
    "rows": Workload(5_000, _rows()),
    "users-aggregate": Workload(20_000, _engine(_users_aggregate())),
    "fold-of-results": Workload(100_000, _engine(_fold_of_results())),
    "partitions-1": Workload(100_000, _partitions(1)),
    "partitions-43": Workload(43 * 2_000, _partitions(43)),
    "partitions-128": Workload(128 * 1_000, _partitions(128)),
    "csv": Workload(200_000, _csv(vwap_plan(), 100)),
    "csv-windows": Workload(200_000, _csv(vwap_plan(windows=True), 100)),
    "as-of": Workload(60_000, streams.as_of("final")),
    "as-of-eager": Workload(10_000, streams.as_of("eager")),
    "interval": Workload(40_000, streams.near),
    "table-join": Workload(40_000, streams.of_tables),
    "running": Workload(30_000, streams.running),
    "scan-in-python": Workload(5_000, streams.steps),
    "json": Workload(30_000, streams.json_lines),
    "log-to-log": Workload(20_000, streams.durable),
    "one-change": Workload(50_000, _one_change),
}
