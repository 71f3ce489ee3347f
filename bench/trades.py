"""The trades and the pipeline that several benchmarks share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa

import ripple as rp  # its public names only: workloads run on older commits too

WINDOW = "60s"
INTERVAL_NS = 1_000_000  # so that a window of 60 s gets 60,000 trades


@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp
    venue: str


def vwap_plan(*, windows: bool = False) -> rp.Plan:
    """Return VWAP, volume and count by symbol."""
    trades = rp.Pipeline("bench").source("trades", Trade).partition("by-symbol", key="symbol")
    if windows:
        trades = trades.window("w", rp.Tumbling(WINDOW))
    folded = trades.fold(
        "vwap",
        vwap=rp.vwap("price", "size"),
        total_volume=rp.sum("size"),
        trade_count=rp.count(),
    )
    return folded.sink("output").plan()


def trades(events: int, symbols: int, first: int = 0) -> pa.RecordBatch:
    """Return trades number ``first`` and following, 1 ms apart, symbols drawn at random."""
    draw = np.random.default_rng(first + symbols)
    names = _names(symbols)
    times = (1 + first + np.arange(events)) * INTERVAL_NS
    return pa.record_batch(
        {
            "symbol": names.take(pa.array(draw.integers(0, symbols, events))),
            "price": np.round(draw.uniform(10, 500, events), 2),
            "size": draw.integers(1, 1000, events),
            "timestamp_ns": times,
            "venue": pa.array(["XNAS", "XNYS"]).take(pa.array(draw.integers(0, 2, events))),
        }
    )


@cache
def _names(symbols: int) -> pa.Array:
    return pa.array([f"SYM{i:0{len(str(symbols - 1))}}" for i in range(symbols)])


def slices(batch: pa.RecordBatch, rows: int) -> list[pa.RecordBatch]:
    """Cut a batch into batches of ``rows``."""
    return [batch.slice(at, rows) for at in range(0, batch.num_rows, rows)]


def feed(engine: rp.Engine, batches: list[pa.RecordBatch], *, quiet: bool = False) -> None:
    """Apply batches; stabilize after each, or when ``quiet`` only in the end."""
    offset = engine.cut["trades"]
    for batch in batches:
        offset += batch.num_rows
        engine.apply("trades", batch, offset)
        if not quiet:
            _show(engine)
    if quiet:
        _show(engine)


def _show(engine: rp.Engine) -> None:
    """Bring the views up, and have what changed as Arrow's."""
    for _ in engine.stabilize().outputs.values():
        pass


def blocks(events: int, symbols: int, rows: int = 1_000_000) -> Iterator[pa.RecordBatch]:
    """Yield trades in large blocks, so that all of them are never in memory together."""
    for first in range(0, events, rows):
        yield trades(min(rows, events - first), symbols, first)
