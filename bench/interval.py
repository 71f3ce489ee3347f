"""Interval joins: records of both sides a second of one core, beside DuckDB at once.

The pairs are compared before a time counts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import ripple as rp
from bench import join_peers
from bench.row import Row
from bench.timing import QUICK, cpu_in_turns
from bench.two_streams import RIGHTS, joined, turns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.model.pipeline.plan import Plan

LEFT = 30_000 if QUICK else 100_000
ROUNDS = 2 if QUICK else 3
MS, LATE_NS = 10**6, 2 * 10**9


@rp.record(version=1)
class Order:
    user: str
    number: int
    amount: float
    at_ns: rp.Timestamp


@rp.record(version=1)
class Click:
    user: str
    click: int
    weight: float
    at_ns: rp.Timestamp


def measure() -> list[Row]:
    rows, fields = [], ["number", "click", "weight"]
    for keys, reach_ns, late in (
        (1_000, 200 * MS, 0.0),
        (1_000, 200 * MS, 0.01),
        (10_000, 2000 * MS, 0.0),
        (10_000, 2000 * MS, 0.01),
    ):
        orders, clicks = _sides(keys, late)
        sides = {"orders": orders, "clicks": clicks}
        within = (-reach_ns, reach_ns)
        peer = partial(_duckdb, orders, clicks, within)
        calls = {
            f"batches of {size:,}": partial(joined, _plan(within), list(turns(sides, size)), fields)
            for size in (1_000, 16_384)
        }
        expected = peer()
        for name, call in calls.items():
            assert call().equals(expected), f"{name}: other pairs than DuckDB's"
        best = cpu_in_turns({**calls, "DuckDB": peer}, ROUNDS)
        count = orders.num_rows + clicks.num_rows
        what = f"{keys:,} keys, ±{reach_ns / 1e9:g} s, {late:.0%} late"
        pairs = f"{expected.num_rows:,} pairs"
        for name in calls:
            other = count / best["DuckDB"]
            label = f"{what}, {pairs}, {name}"
            rows.append(Row(label, count / best[name], "records/s", "DuckDB, once", other))
    return [*rows, *_beside_streams(fields)]


def _beside_streams(fields: list[str]) -> Iterator[Row]:
    orders, clicks = _sides(1_000, 0.0)
    sides = join_peers.untied({"orders": orders, "clicks": clicks})
    within = (-200 * MS, 200 * MS)
    ours = partial(joined, _plan(within), list(turns(sides, join_peers.BATCH)), fields)
    yield from join_peers.beside("interval", "interval, 1,000 keys, ±0.2 s", sides, ours)


def _sides(keys: int, late: float) -> tuple[pa.Table, pa.Table]:
    """Return orders and clicks of the same time, of which some are late by up to 2 s."""
    rng = np.random.default_rng(5)
    names = pa.array([f"user-{number}" for number in range(keys)])
    span_ns = LEFT * MS

    def side(count: int, number: str, value: str) -> pa.Table:
        at_ns = np.sort(rng.integers(0, span_ns // MS, count)) * MS + LATE_NS
        is_late = rng.random(count) < late
        at_ns[is_late] -= rng.integers(0, LATE_NS, is_late.sum())
        columns = {
            "user": names.take(pa.array(rng.integers(0, keys, count))),
            number: np.arange(count),
            value: rng.random(count),
            "at_ns": at_ns,
        }
        return pa.table(columns)

    return side(LEFT, "number", "amount"), side(LEFT * RIGHTS, "click", "weight")


def _plan(within: tuple[int, int]) -> Plan:
    pipeline = rp.Pipeline("shop")
    orders, clicks = pipeline.source("orders", Order), pipeline.source("clicks", Click)
    near = orders.join_interval(
        "near", clicks, on="user", within=within, lateness=LATE_NS, emit="final"
    )
    return near.sink("out").plan()


def _duckdb(orders: pa.Table, clicks: pa.Table, within: tuple[int, int]) -> pa.Table:
    import duckdb  # noqa: PLC0415 - of the extra bench

    connection = duckdb.connect(config={"threads": 1})
    connection.register("orders", orders)
    connection.register("clicks", clicks)
    return connection.sql(
        "select number, click, weight from orders join clicks using (user) where clicks.at_ns - "
        f"orders.at_ns between {within[0]} and {within[1]} "
        "order by orders.at_ns, number, clicks.at_ns, click"
    ).to_arrow_table()
