"""Where a join is: rows and watermark of each side, and how many rows had a partner."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.engine.machine import Engine
from ripple.engine.operators.arrow_types import arrow_fields

SECOND = 1_000_000_000


@rp.record
class Trade:
    symbol: str | None
    t: rp.Timestamp


@rp.record
class Quote:
    symbol: str
    t: rp.Timestamp
    bid: float


def engine_of(join: str, how: str, **more: Any) -> Engine:
    start = rp.Pipeline("p")
    trades, quotes = start.source("trades", Trade), start.source("quotes", Quote)
    more |= {"lateness": "1s", "emit": "final"}
    made: Any = getattr(trades, join)("j", quotes, on="symbol", how=how, **more)
    return Engine(made.sink("out").plan())


def take(engine: Engine, source: str, *rows: tuple[str | None, int]) -> None:
    more = {"bid": 1.0} if source == "quotes" else {}
    values = [{"symbol": symbol, "t": at * SECOND} | more for symbol, at in rows]
    of = next(one for one in engine.plan.sources if one.name == source)
    batch = pa.RecordBatch.from_pylist(values, pa.schema(arrow_fields(of.fields)))
    engine.apply(source, batch, engine.cut[source] + len(rows))
    engine.stabilize()


def behind(engine: Engine) -> list[bool]:
    return [side.is_behind for side in engine.join_states["j"].sides]


JOINS = [
    ("join_asof", {"tolerance": "2s"}),
    ("join_asof", {"tolerance": "2s", "strategy": "nearest"}),
    ("join_interval", {"within": ("-2s", "0s")}),
]


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize(("join", "more"), JOINS)
def test_join_of_streams_says_where_its_sides_are(
    join: str, more: dict[str, Any], how: str
) -> None:
    engine = engine_of(join, how, **more)
    assert behind(engine) == [False, False]
    take(engine, "trades", ("A", 10), ("B", 11), (None, 12), ("A", 20), ("A", 90))
    left, right = engine.join_states["j"].sides
    assert (left.reads, left.rows, left.watermark_ns) == (
        "trades",
        4 if how == "inner" else 5,
        90 * SECOND,
    )
    assert (right.reads, right.rows) == ("quotes", 0)
    assert behind(engine) == [False, True]
    assert engine.inspected()["nodes"][2]["sides"][1]["watermark_ns"] is None
    take(engine, "quotes", ("A", 9), ("C", 12), ("A", 15), ("A", 91))
    state = engine.join_states["j"]
    assert (state.matched, state.unmatched) == (1, 3)
    assert state.sides[0].rows == 1
    assert state.sides[1].rows > 0
    take(engine, "quotes", ("A", 300))
    assert behind(engine) == [True, False]
    node = next(one for one in engine.inspected()["nodes"] if one["kind"] == "join")
    assert [side["is_behind"] for side in node["sides"]] == [True, False]
    assert (node["matched"], node["unmatched"]) == (1, 3)
    restored = Engine.restore(engine.plan, engine.snapshot())
    again = restored.join_states["j"]
    assert [side.watermark_ns for side in again.sides] == [90 * SECOND, 300 * SECOND]
    assert again.sides[0].rows == 1
    assert (again.matched, again.unmatched) == (0, 0)  # since it was restored


def test_side_that_must_be_further_on_is_behind_at_the_same_watermark() -> None:
    engine = engine_of("join_asof", "left", tolerance="2s", strategy="forward")
    for source in ("trades", "quotes"):
        take(engine, source, ("A", 10))
    assert behind(engine) == [False, True]


def test_rows_of_a_record_with_too_many_pairs_are_in_neither_count() -> None:
    engine = engine_of("join_interval", "left", within=("-2s", "2s"))
    take(engine, "quotes", *[("A", 10)] * 10_001)
    take(engine, "trades", ("A", 10), ("A", 90))
    take(engine, "quotes", ("A", 90))
    state = engine.join_states["j"]
    assert (state.matched, state.unmatched) == (0, 0)
    assert engine.uncomputable_counts["j"] == 1


def test_join_of_tables_has_the_rows_of_both() -> None:
    quotes = rp.Pipeline("p").source("quotes", Quote).partition("by", key="symbol")
    counts = quotes.fold("counts", n=rp.count())
    bids = quotes.filter("high", rp.col("t") > SECOND).fold("bids", bid=rp.last("bid"))
    engine = Engine(counts.join("j", bids, on="symbol").sink("out").plan())
    take(engine, "quotes", ("A", 1), ("B", 2), ("C", 1))
    state = engine.join_states["j"]
    assert [(side.rows, side.watermark_ns) for side in state.sides] == [(3, None), (1, None)]
    assert state.matched is state.unmatched is None
    node = next(one for one in engine.inspected()["nodes"] if one["kind"] == "join")
    assert [side["rows"] for side in node["sides"]] == [3, 1]
