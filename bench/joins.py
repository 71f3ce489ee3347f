"""Joins of tables: records a second of one core, beside DuckDB and Polars at once.

The rows are compared with both before a time counts. And what joins of streams keep, and how soon.
"""

from __future__ import annotations

from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

import ripple as rp
from bench import join_peers, kept_rows, two_streams
from bench.row import Row, at_least
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


@rp.record(version=1)
class Book:
    desk: int
    kind: int
    most: int


class Right(NamedTuple):
    """The right side of a join: its source, the key of its fold, and the compared field."""

    name: str
    record: type
    key: list[str]
    on: str

    @property
    def how(self) -> str:
        """A pair of several on both sides needs both."""
        return "left" if self.key == [self.on] else "inner"

    @property
    def shown(self) -> list[str]:
        """The fields of the result."""
        return ["key", "desk", "held", *(name for name in self.key if name != self.on), "most"]


RIGHTS = {
    "by key": Right("limits", Limit, ["key"], "key"),
    "by reference": Right("desks", Desk, ["desk"], "desk"),
    "many to many": Right("books", Book, ["desk", "kind"], "desk"),
}
KINDS = 3


UPSERTS = at_least(10)


def measure() -> list[Row]:
    return [*upserts(), *table_joins(), *kept_rows.measure()]


def upserts() -> Iterator[Row]:
    """Yield changes a second of two tables that are joined by their key."""
    right = RIGHTS["by key"]
    p = rp.Pipeline("risk")
    positions = p.table("positions", Position, key="key")
    limits = p.table(right.name, Limit, key="key")
    plan = positions.join("joined", limits, on="key", how="left").sink("out").plan()
    for keys in (100, 10_000):
        tables = _events(keys)
        peers: dict[str, Callable[[], Any]] = {
            "DuckDB": partial(_duckdb_newest, tables),
            "Polars": partial(_polars_newest, tables),
        }
        expected = peers["DuckDB"]()
        assert peers["Polars"]() == expected
        for size in (1_000, 16_384):
            name = f"tables joined by their key, {keys:,} keys, batches of {size:,}"
            found = _rows(_ripple(plan, tables, size).table("out"), right.shown)
            assert found == expected, f"{name}: other rows"
            ours = {"joined": partial(_ripple, plan, tables, size)}
            best = cpu_in_turns(ours | peers, ROUNDS)
            for peer in peers:
                rates = (EVENTS / best[one] / 1e6 for one in ("joined", peer))
                rate, other = rates
                aim = UPSERTS if peer == "DuckDB" else None
                yield Row(name, rate, "M upserts/s", f"{peer}, newest and join, once", other, aim)
        yield from _beside_streams(f"tables joined by their key, {keys:,} keys", plan, tables)


def _beside_streams(name: str, plan: Plan, tables: Tables) -> Iterator[Row]:
    right = RIGHTS["by key"]
    few = {"positions": tables["positions"], right.name: tables[right.name]}
    few = {
        of: rows.slice(0, join_peers.LEFT * count)
        for (of, rows), count in zip(few.items(), (two_streams.RIGHTS, 1), strict=True)
    }

    def ours() -> pa.Table:
        return _ripple(plan, few, 1_000).table("out").select(right.shown)

    yield from join_peers.beside("by_key", name, few, ours)


def table_joins() -> Iterator[Row]:
    """Yield events a second where two folds of them are joined, and the cost of the join."""
    for keys in (100, 10_000):
        tables = _events(keys)
        for what, right in RIGHTS.items():
            yield from _table_join(f"{what}, {keys:,} keys", tables, right)


def _table_join(what: str, tables: Tables, right: Right) -> Iterator[Row]:
    joined, alone = _plan(right), _plan(right, joins=False)
    peers: dict[str, Callable[[], Any]] = {
        "DuckDB": lambda: _duckdb(tables, right),
        "Polars": lambda: _polars(tables, right),
    }
    expected = peers["DuckDB"]()
    assert peers["Polars"]() == expected
    for size in (1_000, 16_384):
        found = _rows(_ripple(joined, tables, size).table("out"), right.shown)
        assert found == expected, f"{what}: other rows"
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
        "books": pa.table(
            {
                "desk": rng.integers(0, desks, few),
                "kind": rng.integers(0, KINDS, few),
                "most": most,
            }
        ),
    }


def _plan(right: Right, *, joins: bool = True) -> Plan:
    p = rp.Pipeline("risk")
    positions = p.source("positions", Position).partition("by-key", key="key")
    held = positions.fold("held", desk=rp.max("desk"), held=rp.sum("held"))
    limits = p.source(right.name, right.record).partition("there", key=right.key)
    most = limits.fold("most", most=rp.sum("most"))
    if joins:
        joined = held.join("joined", most, on=right.on, how=right.how)
        return joined.sink("out").plan()
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


def _rows(table: pa.Table, names: list[str]) -> Rows:
    columns = (table.column(name).to_pylist() for name in names)
    return sorted(zip(*columns, strict=True))


def _duckdb(tables: Tables, right: Right) -> Rows:
    import duckdb  # noqa: PLC0415 - of the extra bench

    sql = duckdb.connect(config={"threads": 1})
    for name in ("positions", right.name):
        sql.register(name, tables[name])
    key = ", ".join(right.key)
    found = sql.sql(
        "select l.*, r.* exclude (" + right.on + ") from "
        "(select key, max(desk) as desk, sum(held)::bigint as held from positions group by key) l "
        f"{right.how} join "
        f"(select {key}, sum(most)::bigint as most from {right.name} group by {key}) r "
        f"on l.{right.on} = r.{right.on}"
    )
    return _rows(found.to_arrow_table(), right.shown)


def _duckdb_newest(tables: Tables) -> Rows:
    import duckdb  # noqa: PLC0415 - of the extra bench

    sql = duckdb.connect(config={"threads": 1})
    for name in ("positions", "limits"):
        sql.register(name, _numbered(tables[name]))
    newest = "select arg_max({0}, place) as it from {0} group by key"
    found = sql.sql(
        "select l.it.key as key, l.it.desk as desk, l.it.held as held, r.it.most as most from "
        f"({newest.format('positions')}) l left join ({newest.format('limits')}) r "
        "on l.it.key = r.it.key"
    )
    return _rows(found.to_arrow_table(), RIGHTS["by key"].shown)


def _polars_newest(tables: Tables) -> Rows:
    import polars as pl  # noqa: PLC0415 - of the extra bench

    positions, limits = (
        pl.from_arrow(tables[name]).unique("key", keep="last", maintain_order=False)
        for name in ("positions", "limits")
    )
    return _rows(positions.join(limits, on="key", how="left").to_arrow(), RIGHTS["by key"].shown)


def _numbered(table: pa.Table) -> pa.Table:
    return table.append_column("place", pa.array(np.arange(table.num_rows)))


def _polars(tables: Tables, right: Right) -> Rows:
    import polars as pl  # noqa: PLC0415 - of the extra bench

    positions, others = (pl.from_arrow(tables[name]) for name in ("positions", right.name))
    held = positions.group_by("key").agg(pl.max("desk"), pl.sum("held"))
    most = others.group_by(right.key).agg(pl.sum("most"))
    return _rows(held.join(most, on=right.on, how=right.how).to_arrow(), right.shown)
