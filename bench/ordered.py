"""Distinct rows, and keys that end: events a second of one core, beside DuckDB and Polars at once.

The rows are compared with both before a time counts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import ripple as rp
from bench.row import Row
from bench.timing import QUICK, cpu_in_turns
from ripple.engine.machine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ripple.engine.machine import Changes
    from ripple.model.pipeline.plan import Plan

    Found = list[Any]
    Calls = Mapping[str, Callable[[], Found]]
    Read = Callable[[Engine, list[Changes]], Found]

EVENTS = 200_000 if QUICK else 2_000_000
ROUNDS = 3 if QUICK else 5
SPAN_NS, LATE_NS = 5 * 10**9, 10**9


@rp.record(version=1)
class Seen:
    key: str
    number: int
    at_ns: rp.Timestamp


def measure() -> list[Row]:
    rows = []
    for keys in (100, 10_000, 200_000):
        events = _events(keys)
        for what, plan, read, peers in (
            ("distinct within 5 s", _distinct_plan(), _shown, (_duckdb, _polars)),
            ("count of keys with ttl of 5 s", _ttl_plan(), _held, (_duckdb_ttl, _polars_ttl)),
        ):
            calls = {
                f"batches of {size:,}": partial(_ripple, plan, read, events, size)
                for size in (1_000, 16_384)
            }
            others = dict(
                zip(("DuckDB", "Polars"), (partial(one, events) for one in peers), strict=True)
            )
            rows += list(_beside(f"{what}, {keys:,} keys", calls, others))
    return rows


def _beside(what: str, calls: Calls, peers: Calls) -> Iterator[Row]:
    expected = peers["DuckDB"]()
    for name, call in {**calls, **peers}.items():
        assert call() == expected, f"{what}, {name}: other rows than DuckDB's"
    best = cpu_in_turns({**calls, **peers}, ROUNDS)
    for name in calls:
        for peer in peers:
            versus, other = f"{peer}, once", EVENTS / best[peer]
            yield Row(f"{what}, {name}", EVENTS / best[name], "events/s", versus, other)


def _events(keys: int) -> pa.Table:
    """Return events of 20 s for each 100,000, of which 1 % are late."""
    rng = np.random.default_rng(5)
    at_ns = np.arange(EVENTS) * 200_000
    late = rng.random(EVENTS) < 0.01
    at_ns[late] -= rng.integers(0, LATE_NS, late.sum())
    names = pa.array([f"key-{number}" for number in range(keys)])
    texts = names.take(pa.array(rng.integers(0, keys, EVENTS)))
    return pa.table({"key": texts, "number": np.arange(EVENTS), "at_ns": at_ns + LATE_NS})


def _distinct_plan() -> Plan:
    seen = rp.Pipeline("seen").source("seen", Seen)
    return seen.distinct("once", "key", within=SPAN_NS, lateness=LATE_NS).sink("out").plan()


def _ttl_plan() -> Plan:
    keyed = rp.Pipeline("seen").source("seen", Seen).partition("by-key", key="key")
    return keyed.fold("seen-n", n=rp.count(), ttl=SPAN_NS).sink("out").plan()


def _ripple(plan: Plan, read: Read, events: pa.Table, size: int) -> Found:
    engine, offset, changes = Engine(plan), 0, []
    for batch in events.combine_chunks().to_batches(max_chunksize=size):
        offset += batch.num_rows
        engine.apply("seen", batch, offset)
        changes.append(engine.stabilize())
    return read(engine, changes)


def _shown(engine: Engine, changes: list[Changes]) -> Found:
    engine.close()
    parts = [one.outputs["out"].column("number") for one in (*changes, engine.stabilize())]
    return pa.chunked_array(parts).to_pylist()


def _held(engine: Engine, changes: list[Changes]) -> Found:
    del changes
    return sorted(zip(*engine.table("out").to_pydict().values(), strict=True))


def _duckdb(events: pa.Table) -> Found:
    import duckdb  # noqa: PLC0415 - of the extra bench

    connection = duckdb.connect(config={"threads": 1})
    connection.register("events", events)
    kept = connection.sql(
        "select number from (select *, lag(at_ns) over (partition by key order by at_ns, number) "
        f"was from events) where was is null or at_ns - was > {SPAN_NS} order by at_ns, number"
    )
    return [number for (number,) in kept.fetchall()]


def _polars(events: pa.Table) -> Found:
    import polars as pl  # noqa: PLC0415 - of the extra bench

    ordered = pl.DataFrame(events).sort("at_ns", "number")
    gap = ordered.with_columns(gap=pl.col("at_ns").diff().over("key"))
    return gap.filter(pl.col("gap").is_null() | (pl.col("gap") > SPAN_NS))["number"].to_list()


def _duckdb_ttl(events: pa.Table) -> Found:
    import duckdb  # noqa: PLC0415 - of the extra bench

    connection = duckdb.connect(config={"threads": 1})
    connection.register("events", events)
    return sorted(
        connection.sql(
            "with gaps as (select key, at_ns, coalesce(at_ns - lag(at_ns) over "
            f"(partition by key order by at_ns) >= {SPAN_NS}, true)::int gap from events), "
            "parts as (select *, sum(gap) over (partition by key order by at_ns "
            "rows unbounded preceding) part from gaps), "
            "newest as (select *, max(part) over (partition by key) last from parts) "
            "select key, count(*) from newest where part = last group by key "
            f"having max(at_ns) + {SPAN_NS} > (select max(at_ns) from events)"
        ).fetchall()
    )


def _polars_ttl(events: pa.Table) -> Found:
    import polars as pl  # noqa: PLC0415 - of the extra bench

    ordered = pl.DataFrame(events).sort("at_ns")
    end = ordered["at_ns"].max()
    gap = (pl.col("at_ns").diff() >= SPAN_NS).fill_null(value=True).cum_sum().over("key")
    parts = ordered.with_columns(part=gap)
    newest = parts.filter(pl.col("part") == pl.col("part").max().over("key"))
    kept = newest.group_by("key").agg(n=pl.len(), last=pl.col("at_ns").max())
    return sorted(kept.filter(pl.col("last") + SPAN_NS > end).select("key", "n").rows())
