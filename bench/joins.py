"""Joins: records a second of one core, beside DuckDB and Polars at once.

The rows are compared with both before a time counts.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import ripple as rp
from bench.row import Row
from bench.timing import QUICK, cpu_in_turns
from ripple.engine.machine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ripple.model.pipeline.plan import Plan

    Rows = list[tuple[Any, ...]]
    Tables = Mapping[str, pa.Table]

EVENTS = 240_000 if QUICK else 1_200_000
ROUNDS = 3


@rp.record(version=1)
class Position:
    key: str
    desk: int
    held: int


@rp.record(version=1)
class Limit:
    key: str
    most: int


@rp.record(version=1)
class Desk:
    desk: int
    most: int


def measure() -> list[Row]:
    return [*table_joins()]


def table_joins() -> Iterator[Row]:
    """Yield events a second where two folds of them are joined, and the cost of the join."""
    for keys in (100, 10_000):
        tables = _events(keys)
        yield from _table_join(f"by key, {keys:,} keys", tables, ("limits", Limit, "key"))
        yield from _table_join(f"by reference, {keys:,} keys", tables, ("desks", Desk, "desk"))


def _table_join(what: str, tables: Tables, right: tuple[str, type, str]) -> Iterator[Row]:
    name, _, on = right
    joined, alone = _plan(*right), _plan(*right, joins=False)
    peers: dict[str, Callable[[], Any]] = {
        "DuckDB": lambda: _duckdb(tables, name, on),
        "Polars": lambda: _polars(tables, name, on),
    }
    expected = peers["DuckDB"]()
    assert peers["Polars"]() == expected
    for size in (1_000, 16_384):
        assert _rows(_ripple(joined, tables, size).table("out")) == expected, f"{what}: other rows"
        calls = {
            "joined": lambda size=size: _ripple(joined, tables, size),
            "alone": lambda size=size: _ripple(alone, tables, size),
        }
        best = cpu_in_turns(calls | peers, ROUNDS)
        label = f"tables joined {what}, batches of {size:,}"
        for peer in peers:
            other = f"{peer}, groups and join, once", EVENTS / best[peer]
            yield Row(label, EVENTS / best["joined"], "events/s", *other)
        cost_ns = (best["joined"] - best["alone"]) / EVENTS * 1e9
        yield Row(f"{label}: the join alone", cost_ns, "ns/event")


def _events(keys: int) -> Tables:
    """Return changes of positions, and of the limits of keys and of a tenth as many desks."""
    rng, many = np.random.default_rng(3), EVENTS * 5 // 6
    few, desks = EVENTS - many, max(1, keys // 10)
    names = pa.array([f"key-{number}" for number in range(keys)])

    def keyed(count: int) -> pa.Array:
        return names.take(pa.array(rng.integers(0, keys, count)))

    held, most = rng.integers(-9, 10, many), rng.integers(0, 1 << 40, few)
    return {
        "positions": pa.table(
            {"key": keyed(many), "desk": rng.integers(0, desks, many), "held": held}
        ),
        "limits": pa.table({"key": keyed(few), "most": most}),
        "desks": pa.table({"desk": rng.integers(0, desks, few), "most": most}),
    }


def _plan(right: str, record: type, on: str, *, joins: bool = True) -> Plan:
    p = rp.Pipeline("risk")
    positions = p.source("positions", Position).partition("by-key", key="key")
    held = positions.fold("held", desk=rp.max("desk"), held=rp.sum("held"))
    limits = p.source(right, record).partition(f"by-{on}-there", key=on)
    most = limits.fold("most", most=rp.sum("most"))
    if joins:
        return held.join("joined", most, on=on, how="left").sink("out").plan()
    return held.sink("out").also(most.sink("other")).plan()


def _ripple(plan: Plan, tables: Tables, size: int) -> Engine:
    """Read both in turns, five of six records from the left."""
    engine, right = Engine(plan), plan.sources[1].name
    left = tables["positions"].combine_chunks().to_batches(max_chunksize=size * 5 // 6)
    others = tables[right].combine_chunks().to_batches(max_chunksize=-(-size // 6))
    read = {"positions": 0, right: 0}
    for pair in zip_longest(left, others):
        for name, batch in zip(read, pair, strict=True):
            if batch is not None:
                read[name] += batch.num_rows
                engine.apply(name, batch, read[name])
        engine.stabilize()
    return engine


def _rows(table: pa.Table) -> Rows:
    columns = (table.column(name).to_pylist() for name in ("key", "desk", "held", "most"))
    return sorted(zip(*columns, strict=True))


def _duckdb(tables: Tables, right: str, on: str) -> Rows:
    import duckdb  # noqa: PLC0415 - of the extra bench

    sql = duckdb.connect(config={"threads": 1})
    for name in ("positions", right):
        sql.register(name, tables[name])
    found = sql.sql(
        "select l.key, l.desk, held, most from "
        "(select key, max(desk) as desk, sum(held)::bigint as held from positions group by key) l "
        f"left join (select {on}, sum(most)::bigint as most from {right} group by {on}) r "
        f"on l.{on} = r.{on}"
    )
    return _rows(found.to_arrow_table())


def _polars(tables: Tables, right: str, on: str) -> Rows:
    import polars as pl  # noqa: PLC0415 - of the extra bench

    positions, others = (pl.from_arrow(tables[name]) for name in ("positions", right))
    held = positions.group_by("key").agg(pl.max("desk"), pl.sum("held"))
    return _rows(held.join(others.group_by(on).agg(pl.sum("most")), on=on, how="left").to_arrow())
