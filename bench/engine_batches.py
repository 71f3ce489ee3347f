"""Events a second through one engine on one core: Arrow batches in, changes out, sums exact.

Beside it, on the same core and the same batches: a plain Python loop and NumPy, which emit the
changed rows of every batch as the engine does, and Polars, which sees all events at once and
emits once. Their sums are rounded. The running folds are measured with all keys known, except in
the rows that say so; the windowed ones from the first event on.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before Polars counts the cores

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
import pyarrow as pa  # noqa: E402

from bench.row import Aim, Row, at_least, beside  # noqa: E402
from bench.timing import QUICK, in_turns  # noqa: E402
from bench.trades import feed, slices, trades, vwap_plan  # noqa: E402
from ripple.engine.machine import Engine  # noqa: E402

EVENTS = 400_000 if QUICK else 2_000_000
LOOP_EVENTS = EVENTS // 8  # the slow ones get fewer
KEYS = (100, 2_000, 10_000, 1_000_000)
BATCHES = (1_000, 16_384)
ROUNDS = 2 if QUICK else 4
AIMS = {(2_000, 16_384): at_least(20), (2_000, 1_000): at_least(5)}
SAMPLE = 5


def measure() -> list[Row]:
    rows: list[Row] = []
    for keys in KEYS:
        events = trades(EVENTS, keys)
        _check_exact(events)
        for batch_rows in BATCHES:
            aim = AIMS.get((keys, batch_rows))
            name = f"{keys:,} keys, batches of {batch_rows:,}"
            rows += _figures(name, slices(events, batch_rows), events, aim)
    return rows


def _figures(
    name: str, batches: list[pa.RecordBatch], events: pa.RecordBatch, aim: Aim | None
) -> list[Row]:
    engine = Engine(vwap_plan())
    first_s = in_turns({"": lambda: feed(Engine(vwap_plan()), batches)}, rounds=1)[""]
    feed(engine, batches)
    few = batches[: max(1, LOOP_EVENTS // batches[0].num_rows)]
    few_events = sum(batch.num_rows for batch in few)
    listed = [_lists(batch) for batch in few]
    loop, grouped = PlainLoop(), NumpyLoop()
    for batch in batches:
        grouped.apply(batch)
    frame = pl.DataFrame(pa.Table.from_batches([events]))
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "ours": (lambda: feed(engine, batches), EVENTS),
        "windows": (lambda: feed(Engine(vwap_plan(windows=True)), batches), EVENTS),
        "plain Python loop": (lambda: [loop.apply(*batch) for batch in listed], few_events),
        "NumPy per batch": (lambda: [grouped.apply(batch) for batch in few], few_events),
        "Polars over everything": (lambda: _polars(frame), EVENTS),
    }
    took = in_turns({one: call for one, (call, _) in calls.items()}, rounds=ROUNDS)
    rates = {one: calls[one][1] / seconds / 1e6 for one, seconds in took.items()}
    ours, windowed = rates.pop("ours"), rates.pop("windows")
    unit = "M events/s"
    return [
        *beside(name, ours, unit, rates, aim),
        Row(f"{name}, from no keys on", EVENTS / first_s / 1e6, unit, "all keys known", ours),
        Row(f"{name}, windows of 60 s", windowed, unit, "without windows", ours),
    ]


class PlainLoop:
    """A dict of sums; the changed rows of a batch as a list."""

    def __init__(self) -> None:
        self.state: dict[str, list[float]] = {}

    def apply(
        self, symbols: list[str], prices: list[float], sizes: list[int]
    ) -> list[tuple[str, float, float, float]]:
        state = self.state
        changed = {}
        for symbol, price, size in zip(symbols, prices, sizes, strict=True):
            sums = state.get(symbol)
            if sums is None:
                state[symbol] = sums = [0.0, 0, 0]
            sums[0] += price * size
            sums[1] += size
            sums[2] += 1
            changed[symbol] = sums
        return [(symbol, s[0] / s[1], s[1], s[2]) for symbol, s in changed.items()]


class NumpyLoop:
    """Arrays of sums by key number; the changed rows of a batch as arrays."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.sums = np.zeros((3, 64))

    def apply(self, batch: pa.RecordBatch) -> tuple[np.ndarray, ...]:
        encoded = batch.column(0).dictionary_encode()
        local = encoded.indices.to_numpy()
        prices, sizes = batch.column(1).to_numpy(), batch.column(2).to_numpy()
        numbers = self.numbers
        names = encoded.dictionary.to_pylist()
        at = np.array([numbers.setdefault(name, len(numbers)) for name in names])
        while len(numbers) > self.sums.shape[1]:
            self.sums = np.concatenate((self.sums, np.zeros_like(self.sums)), axis=1)
        count = len(at)
        self.sums[0, at] += np.bincount(local, prices * sizes, count)
        self.sums[1, at] += np.bincount(local, sizes, count)
        self.sums[2, at] += np.bincount(local, None, count)
        notional, volume, trade_count = self.sums[:, at]
        return encoded.dictionary, notional / volume, volume, trade_count


def _lists(batch: pa.RecordBatch) -> tuple[list[str], list[float], list[int]]:
    symbols, prices, sizes = (batch.column(i).to_pylist() for i in range(3))
    return symbols, prices, sizes


def _polars(frame: pl.DataFrame) -> pl.DataFrame:
    notional, volume = (pl.col("price") * pl.col("size")).sum(), pl.col("size").sum()
    return frame.group_by("symbol").agg(
        (notional / volume).alias("vwap"), volume.alias("total_volume"), pl.len().alias("count")
    )


def _check_exact(events: pa.RecordBatch) -> None:
    """Compare some rows with sums that nothing rounded, and all of them with Polars."""
    engine = Engine(vwap_plan())
    feed(engine, slices(events, 16_384), quiet=True)
    ours = pl.DataFrame(engine.table("output")).sort("symbol")
    frame = pl.DataFrame(pa.Table.from_batches([events]))
    theirs = _polars(frame).sort("symbol")
    assert ours["total_volume"].equals(theirs["total_volume"])
    assert np.allclose(ours["vwap"], theirs["vwap"], rtol=1e-9)
    for row in ours.head(SAMPLE).iter_rows(named=True):
        of = frame.filter(pl.col("symbol") == row["symbol"])
        products = (of["price"] * of["size"]).to_list()
        exact = sum(map(Fraction, products), Fraction()) / sum(of["size"].to_list())
        assert row["vwap"] == float(exact), row
        assert math.isclose(math.fsum(products), float(sum(map(Fraction, products))), rel_tol=0)
