"""Rows told apart by key and time: events a second of one core, beside DuckDB and Polars at once.

The rows that stay are compared with both before a time counts.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import ripple as rp
from bench.row import Row
from bench.timing import QUICK
from ripple.engine.machine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.model.pipeline.plan import Plan

EVENTS = 200_000 if QUICK else 2_000_000
ROUNDS = 3 if QUICK else 5
WITHIN_NS, LATE_NS = 5 * 10**9, 10**9


@rp.record(version=1)
class Seen:
    key: str
    number: int
    at_ns: rp.Timestamp


def measure() -> list[Row]:
    rows = []
    for keys in (100, 10_000, 200_000):
        events = _events(keys)
        calls: dict[str, Callable[[], list[int]]] = {
            f"batches of {size:,}": partial(_ripple, events, size) for size in (1_000, 16_384)
        }
        peers = {"DuckDB": partial(_duckdb, events), "Polars": partial(_polars, events)}
        expected = peers["DuckDB"]()
        for name, call in {**calls, **peers}.items():
            assert call() == expected, name
        best = _best({**calls, **peers})
        for name in calls:
            what = f"distinct within 5 s, {keys:,} keys, {name}"
            rows += [
                Row(what, EVENTS / best[name], "events/s", f"{peer}, once", EVENTS / best[peer])
                for peer in peers
            ]
    return rows


def _events(keys: int) -> pa.Table:
    """Return events of 20 s for each 100,000, of which 1 % are late."""
    rng = np.random.default_rng(5)
    at_ns = np.arange(EVENTS) * 200_000
    late = rng.random(EVENTS) < 0.01
    at_ns[late] -= rng.integers(0, LATE_NS, late.sum())
    names = pa.array([f"key-{number}" for number in range(keys)])
    texts = names.take(pa.array(rng.integers(0, keys, EVENTS)))
    return pa.table({"key": texts, "number": np.arange(EVENTS), "at_ns": at_ns + LATE_NS})


def _plan() -> Plan:
    seen = rp.Pipeline("seen").source("seen", Seen)
    return seen.distinct("once", "key", within=WITHIN_NS, lateness=LATE_NS).sink("out").plan()


def _ripple(events: pa.Table, size: int) -> list[int]:
    engine, offset, found = Engine(_plan()), 0, []
    for batch in events.combine_chunks().to_batches(max_chunksize=size):
        offset += batch.num_rows
        engine.apply("seen", batch, offset)
        found.append(engine.stabilize().outputs["out"].column("number"))
    engine.close()
    found.append(engine.stabilize().outputs["out"].column("number"))
    return pa.chunked_array(found).to_pylist()


def _duckdb(events: pa.Table) -> list[int]:
    import duckdb  # noqa: PLC0415 - of the extra bench

    connection = duckdb.connect(config={"threads": 1})
    connection.register("events", events)
    kept = connection.sql(
        "select number from (select *, lag(at_ns) over (partition by key order by at_ns, number) "
        f"was from events) where was is null or at_ns - was > {WITHIN_NS} order by at_ns, number"
    )
    return [number for (number,) in kept.fetchall()]


def _polars(events: pa.Table) -> list[int]:
    import polars as pl  # noqa: PLC0415 - of the extra bench

    ordered = pl.DataFrame(events).sort("at_ns", "number")
    gap = ordered.with_columns(gap=pl.col("at_ns").diff().over("key"))
    return gap.filter(pl.col("gap").is_null() | (pl.col("gap") > WITHIN_NS))["number"].to_list()


def _best(calls: dict[str, Callable[[], list[int]]]) -> dict[str, float]:
    """Return the least processor seconds of each; they take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            started = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - started)
    return best
