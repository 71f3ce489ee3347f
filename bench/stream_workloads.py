"""Small pieces of work over two streams, rows in their order, and sources that are stored.

For ``bench.workloads``, by Ripple's public names only.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import ripple as rp
from bench.trades import Trade, feed, slices, trades, vwap_plan

BATCH = 1_000
SYMBOLS, FEW_SYMBOLS = 2_000, 100
BEGINS_NS = 1_700_000_000_000_000_000  # of events in files
LATENESS = "2s"

Run = Callable[[], object]


@rp.record(version=1)
class Quote:
    symbol: str
    bid: float
    ask: float
    timestamp_ns: rp.Timestamp


@dataclass
class Position:
    held: int = 0


@dataclass
class Held:
    held: int


def _bought(position: Position, trade: Trade) -> Held:
    position.held += trade.size
    return Held(position.held)


def of_joins(events: int, make: Callable[[Any, Any], Any]) -> Run:
    """Prepare to join half as many trades with as many quotes, in turns; ``make`` the join."""
    market = rp.Pipeline("bench")
    sides = market.source("trades", Trade), market.source("quotes", Quote)
    plan = make(*sides).sink("output").plan()
    traded = slices(trades(events // 2, SYMBOLS), BATCH)
    quoted = slices(_quotes(trades(events // 2, SYMBOLS, 1)), BATCH)

    def run() -> None:
        engine, offset = rp.Engine(plan), 0
        for left, right in zip(traded, quoted, strict=True):
            offset += left.num_rows
            for source, batch in (("trades", left), ("quotes", right)):
                engine.apply(source, batch, offset)
                _show(engine)
        engine.close()
        _show(engine)

    return run


def _quotes(rows: pa.RecordBatch) -> pa.RecordBatch:
    symbols, prices, _, times, _ = rows.columns
    quoted = {"symbol": symbols, "bid": prices, "ask": pc.add(prices, 0.01)}
    return pa.record_batch({**quoted, "timestamp_ns": times})


def _show(engine: rp.Engine) -> None:
    for _ in engine.stabilize().outputs.values():
        pass


def as_of(emit: Any) -> Callable[[int], Run]:
    """Trades with the quote of their time, by the watermark or at once."""

    def make(bought: Any, quotes: Any) -> Any:
        return bought.join_asof("at-quote", quotes, on="symbol", lateness=LATENESS, emit=emit)

    return partial(of_joins, make=make)


def near(events: int) -> Run:
    """Trades with the quotes of two seconds."""

    def make(bought: Any, quotes: Any) -> Any:
        return bought.join_interval(
            "near", quotes, on="symbol", within=("-1s", "1s"), lateness=LATENESS, emit="final"
        )

    return of_joins(events, make)


def of_tables(events: int) -> Run:
    """The last quote of each symbol with its volume."""

    def make(bought: Any, quotes: Any) -> Any:
        last = quotes.partition("of-quote", key="symbol").fold("last", bid=rp.last("bid"))
        volumes = bought.partition("of-trade", key="symbol").fold("volumes", n=rp.sum("size"))
        return volumes.join("priced", last, on="symbol", how="left")

    return of_joins(events, make)


def running(events: int) -> Run:
    """Running values of each symbol, in the order of time."""
    return _of_scan(events, ema=rp.ema("price", span=20), lag=rp.lag("price"))


def steps(events: int) -> Run:
    """A step in Python for each trade, in the order of time."""
    return _of_scan(events, state=Position, step=_bought, into=Held)


def _of_scan(events: int, **scan: Any) -> Run:
    source = rp.Pipeline("bench").source("trades", Trade)
    ordered = source.scan("ordered", "symbol", settled=True, lateness=LATENESS, **scan)
    plan = ordered.sink("output").plan()
    batches = slices(trades(events, SYMBOLS), BATCH)

    def run() -> None:
        engine = rp.Engine(plan)
        feed(engine, batches)
        engine.close()
        _show(engine)

    return run


def json_lines(events: int) -> Run:
    """From a file of JSON lines to a sink without a reader."""
    path = new_folder() / "trades.jsonl"
    lines = map(json.dumps, dated(events, FEW_SYMBOLS).to_pylist())
    path.write_text("".join(f"{line}\n" for line in lines))

    def run() -> None:
        assert rp.run(vwap_plan(), source=str(path), sink=os.devnull).applied == events

    return run


def durable(events: int) -> Run:
    """From a log to a log, with a checkpoint at the end."""
    folder, numbers = new_folder(), count()
    copied = rp.Pipeline("events").source("trades", Trade).sink("all", key="symbol").plan()
    rp.run(copied, source=dated(events, FEW_SYMBOLS), sink=f"log:{folder}/trades")

    def run() -> None:
        own = folder / str(next(numbers))
        done = rp.run(
            vwap_plan(),
            source=f"log:{folder}/trades",
            sink=f"log:{own}/vwaps",
            checkpoint_dir=str(own / "checkpoints"),
        )
        assert done.applied == events
        shutil.rmtree(own)

    return run


def new_folder() -> Path:
    """Return a folder that goes with the process."""
    folder = tempfile.mkdtemp(prefix="ripple-bench-")
    atexit.register(shutil.rmtree, folder)
    return Path(folder)


def dated(events: int, symbols: int) -> pa.RecordBatch:
    """Return trades of our time: of 1970 a run warns."""
    rows = trades(events, symbols)
    at = rows.schema.get_field_index("timestamp_ns")
    return rows.set_column(at, "timestamp_ns", pc.add(rows["timestamp_ns"], BEGINS_NS))
