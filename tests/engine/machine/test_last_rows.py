"""Aggregates over the last rows of a key: against the reference, DuckDB, and worked examples."""

from __future__ import annotations

import decimal
import random
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.core.errors import PlanError
from ripple.engine.machine import Engine
from ripple.engine.migration.adaptation import ChangedPlanError, decide
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.description import describe
from ripple.model.pipeline.division import need_one_division
from ripple.model.pipeline.keeping import keeping
from ripple.model.schema.columns import records_of
from ripple.testing import check_pipeline, crash_test
from tests.engine.machine.stream_ways import ended, shown
from tests.engine.machine.ticks import Tick, ticks
from tests.examples import EXAMPLES, SAMPLED, SCATTERED

SIZES = (1, 7, 1000)
FIELDS = rp.schema_of(Tick).fields


def added(state: list[int], size: int) -> list[int]:
    return sorted([*state, size])


def gap(state: list[int]) -> int:
    if state[-1] == 7:
        raise ValueError("a seven")
    return state[-1] - state[0]


AGGREGATES: dict[str, Any] = {
    "n": rp.count(),
    "there": rp.count("price"),
    "total": rp.sum("size"),
    "worth": rp.sum("price"),
    "mean": rp.mean("size"),
    "level": rp.mean("price"),
    "vwap": rp.vwap("price", "size"),
    "spread": rp.stddev("size"),
    "squares": rp.variance("price"),
    "most": rp.max("size"),
    "least": rp.min("price"),
    "low": rp.percentile("size", 12.5),
    "near": rp.percentile("size", 50, method="nearest-rank"),
    "middle": rp.median("price"),
    "top": rp.top_k("size", 2),
    "venues": rp.count_distinct("venue"),
    "first": rp.first("venue"),
    "last": rp.last("price"),
    "bar": rp.ohlc("size"),
    "oldest": rp.first_row(["size", "venue"]),
    "best": rp.arg_max("size", ["venue", "timestamp_ns"]),
    "largest": rp.top_rows(2, "size", "venue"),
    "gap": rp.custom("size", init=list, add=added, result=gap, type=int, name="gap"),
}


def start() -> Pipeline:
    return Pipeline("test").source("ticks", Tick, out_of_order=10, reject_future=100_000)


def of_last(base: Pipeline, rows: int, said: Any = None, **aggregates: Any) -> Pipeline:
    more = {"settled": True, "lateness": 20} | (said or {})
    return base.scan("recent", "symbol", window=rp.Last(rows), **more, **aggregates)


def counted(rows: Pipeline) -> Pipeline:
    keyed = rows.derive("g", of=rp.col("n")).partition("gp", key="of")
    return keyed.fold("counted", k=ra.count(), total=ra.last("total")).sink("counted-out")


@settings(max_examples=10 * EXAMPLES // SAMPLED)
@given(
    rows=st.sampled_from([1, 2, 5, 1000]),
    ttl=st.sampled_from([None, 3, 40]),
    some=st.lists(st.sampled_from(sorted(AGGREGATES)), max_size=4, unique=True),
    happened=ticks(extreme=True),
    restart=st.integers(0, 45),
)
def test_aggregates_of_last_rows_equal_their_evaluation_from_scratch(
    rows: int, ttl: int | None, some: list[str], happened: Any, restart: int
) -> None:
    base = start()
    chosen = {name: AGGREGATES[name] for name in dict.fromkeys(["n", "total", *some])}
    pipeline = ended(of_last(base, rows, {"ttl": ttl}, **chosen), [shown, counted], base)
    check_pipeline(pipeline, happened, SIZES, restarts=[min(restart, len(happened))])


def scattered(count: int) -> list[dict[str, Any]]:
    chance = random.Random(5)
    return [
        {
            "symbol": chance.choice("ABC"),
            "price": chance.choice([None, chance.random(), 1e17, -0.0]),
            "size": chance.choice([1, 2, 3, -2, 7, 2**62]),
            "venue": chance.choice([None, "x", "y"]),
            "timestamp_ns": max(0, 10 * at + chance.randint(-40, 20)),
        }
        for at in range(count)
    ]


def test_every_aggregate_fits() -> None:
    base = start()
    pipeline = ended(of_last(base, 3, {"ttl": 90}, **AGGREGATES), [shown], base)
    check_pipeline(pipeline, scattered(60), SIZES, restarts=[30])


def test_last_rows_survive_crashes() -> None:
    base = start()
    rows = of_last(base, 3, n=rp.count(), total=rp.sum("size"), venues=rp.count_distinct("venue"))
    happened = scattered(24)
    crash_test(ended(rows, [shown], base), happened, seeds=range(1), every=SCATTERED, pairs=1)


def test_last_rows_are_those_of_duckdb() -> None:
    import duckdb

    happened = [one | {"price": at / 7} for at, one in enumerate(scattered(900))]
    chosen = ("there", "level", "venues", "most", "bar")
    rows = of_last(start(), 20, {"lateness": 100}, **{name: AGGREGATES[name] for name in chosen})
    engine, found = Engine(rows.sink("out").plan()), []
    for at in range(0, len(happened), 50):
        engine.apply("ticks", records_of(happened[at : at + 50], FIELDS), at + 50)
        found += engine.stabilize().outputs["out"].to_pylist()
    engine.close()
    found += engine.stabilize().outputs["out"].to_pylist()
    assert engine.counters.very_late == 0
    ticks_in = records_of(happened, FIELDS)  # noqa: F841 - DuckDB reads it by its name
    duck = duckdb.sql(
        "select price, count(price) over w, max(size) over w, first(size) over w, "
        "count(distinct venue) over w, min(size) over w from (select *, row_number() over () k "
        "from ticks_in) window w as (partition by symbol order by timestamp_ns, k "
        "rows 19 preceding) order by timestamp_ns, k"
    ).fetchall()
    names = ("price", "there", "most", "bar_open", "venues", "bar_low")
    assert [tuple(row[name] for name in names) for row in found] == duck


def test_the_last_bars_of_a_key_and_decimals() -> None:
    @rp.record
    class Trade:
        symbol: str
        price: Annotated[decimal.Decimal, rp.Decimal(12, 2)]
        at: rp.Timestamp

    bars = Pipeline("bars").source("trades", Trade).partition("p", key="symbol")
    final = bars.window("w", rp.Tumbling("1s")).fold("b", close=rp.last("price")).finals("f")
    rows = final.scan(
        "recent",
        key="symbol",
        settled=True,
        window=rp.Last(2),
        total=rp.sum("close"),
        bar=rp.ohlc("close"),
    )
    second = 1_000_000_000
    trades = [Trade("A", decimal.Decimal(at), at * second) for at in range(1, 5)]
    found = rp.collect(rows.sink("out"), source=trades).rows()
    assert [(int(row["total"]), int(row["bar_open"]), int(row["bar_close"])) for row in found] == [
        (1, 1, 1),
        (3, 1, 2),
        (5, 2, 3),
        (7, 3, 4),
    ]


def refused(make: Any) -> str:
    with pytest.raises(PlanError) as raised:
        make()
    return str(raised.value)


def test_bad_uses_are_told_what_to_write() -> None:
    base, n = start(), rp.count()
    last = {"key": "symbol", "settled": True, "window": rp.Last(3)}
    assert "say settled=True" in refused(lambda: of_last(base, 3, {"settled": False}, n=n))
    assert "rp.Last(20), or another" in refused(
        lambda: base.scan("s", **last | {"window": rp.Tumbling("1s")}, n=n)
    )
    assert "y is an aggregate, rp.sum('size'): say of which rows" in refused(
        lambda: base.scan("s", key="symbol", settled=True, y=rp.sum("size"))
    )
    assert "takes aggregates of its rows" in refused(lambda: base.scan("s", **last))
    assert "y is a running value" in refused(lambda: base.scan("s", **last, y=rp.lag("size")))
    assert "'size'" in refused(lambda: base.scan("s", **last, size=n))
    computed = rp.sum(rp.col("size") * 2)
    assert ".derive it before the scan" in refused(lambda: base.scan("s", **last, y=computed))
    assert "Last: rows must be" in refused(lambda: rp.Last(0))
    assert "counts rows in their order" in refused(
        lambda: base.partition("p", key="symbol").window("w", rp.Last(3))
    )
    named = base.scan("s", key="symbol", settled=True, window=rp.lag("size"))
    assert "window" in [field.name for field in named.sink("out").plan().output("out").fields]


def test_states_are_kept_or_refused_after_a_change() -> None:
    def plan(rows: int, **aggregates: Any) -> Any:
        return of_last(start(), rows, **aggregates).sink("out").plan()

    engine = Engine(plan(3, n=rp.count(), top=rp.top_k("size", 2)))
    engine.apply("ticks", records_of(scattered(9), FIELDS), 9)
    engine.stabilize()
    kept = decide(plan(3, n=rp.count(), top=rp.top_k("size", 2)), engine.snapshot())
    assert kept.snapshot is not None
    for changed in (plan(4, n=rp.count(), top=rp.top_k("size", 2)), plan(3, n=rp.count())):
        with pytest.raises(ChangedPlanError):
            decide(changed, engine.snapshot())


def test_a_cluster_divides_it_by_its_key_and_the_plan_says_what_it_keeps() -> None:
    plan = of_last(start(), 3, n=rp.count()).sink("out").plan()
    need_one_division(plan, "a cluster", {"ticks": ("symbol",)})
    with pytest.raises(PlanError, match="divided by size, and recent needs all of one symbol"):
        need_one_division(plan, "a cluster", {"ticks": ("size",)})
    (kept,) = [one.keeps for one in keeping(plan)]
    assert "the last 3 rows of a key for ever" in kept


def test_the_plan_shows_the_parameters_of_aggregates() -> None:
    chosen = {name: AGGREGATES[name] for name in ("low", "top", "largest", "n")}
    told = describe(of_last(start(), 3, **chosen).sink("out").plan())
    assert (
        "last 3 rows: low = percentile(size, 12.5), top = top_k(size, 2), "
        "largest = top_rows(size, venue, 2), n = count()\n"
    ) in told
