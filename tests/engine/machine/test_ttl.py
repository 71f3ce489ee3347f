"""Folds with keys that end: against the reference, other readings, and DuckDB."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.core.errors import PlanError
from ripple.engine.machine import Engine
from ripple.engine.snapshots.increment import applied
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.division import need_one_division
from ripple.model.schema.columns import records_of
from ripple.testing import check_pipeline, crash_test
from tests.engine.machine.interleaved import read_mixed
from tests.engine.machine.ticks import AGGREGATES, Tick, of_two_inputs, ticks
from tests.examples import EXAMPLES, SAMPLED, SCATTERED

SIZES = (1, 7, 1000)
FIELDS = rp.schema_of(Tick).fields
SOME = ("n", "total", "vwap", "opened", "closed", "newest", "dearest", "ranked")


def start() -> Pipeline:
    return Pipeline("test").source("ticks", Tick, out_of_order=10, reject_future=100_000)


def ending(base: Pipeline, ttl: int) -> Pipeline:
    """Return folds with keys that end, steps on their results, and folds over them."""
    some = {name: AGGREGATES[name] for name in SOME}
    fold = base.partition("p", key="symbol").fold("f", ttl=ttl, **some)
    steps = base.partition("p1", key=["size", "symbol"]).fold("g", n=ra.count(), ttl=ttl)
    part = steps.derive("d", part=10 // (rp.col("n") - 2)).filter("k", rp.col("part") != 5)
    over = part.partition("every", key=()).fold("all", n=ra.sum("n"), parts=ra.max("part"))
    return (
        fold.sink("f-out")
        .also(part.sink("g-out"))
        .also(over.sink("all-out"))
        .also(base.partition("p2", key="symbol").fold("h", n=ra.count()).sink("h-out"))
    )


spans = st.sampled_from([1, 30, 150, 10**6])


@settings(max_examples=12 * EXAMPLES // SAMPLED)
@given(ttl=spans, happened=ticks(extreme=True), restart=st.integers(0, 45))
def test_keys_that_end_equal_their_evaluation_from_scratch(
    ttl: int, happened: Any, restart: int
) -> None:
    check_pipeline(ending(start(), ttl), happened, SIZES, restarts=[min(restart, len(happened))])


@settings(max_examples=8 * EXAMPLES // SAMPLED)
@given(
    ttl=spans,
    happened=of_two_inputs(),
)
def test_keys_that_end_by_several_inputs_with_markers(
    ttl: int, happened: tuple[list[Any], int]
) -> None:
    mixed, at = happened
    check_pipeline(ending(start(), ttl), mixed, SIZES, inputs=["a", "b"], restarts=[at])


@settings(max_examples=8 * EXAMPLES // SAMPLED)
@given(data=st.data(), ttl=spans, happened=ticks())
def test_a_cut_does_not_tell_how_its_inputs_interleaved(data: Any, ttl: int, happened: Any) -> None:
    lanes: dict[str, list[Any]] = {"a": [], "b": []}
    for event in happened:
        lanes[data.draw(st.sampled_from(["a", "b"]))].append(event)
    one, other = (
        read_mixed(ending(start(), ttl), lanes, data.draw(st.integers())) for _ in range(2)
    )

    assert one == other


def rows_of(*rows: tuple[str, int, int]) -> list[dict[str, Any]]:
    return [
        {"symbol": symbol, "price": 1.0, "size": size, "venue": None, "timestamp_ns": at}
        for symbol, size, at in rows
    ]


def counted(ttl: Any) -> Pipeline:
    keyed = Pipeline("test").source("ticks", Tick).partition("p", key="symbol")
    return keyed.fold("f", n=ra.count(), ttl=ttl).sink("out")


def test_a_row_is_removed_and_a_late_event_brings_it_back() -> None:
    second = 10**9
    engine = Engine(counted("100s").plan())

    def table(*rows: tuple[str, int, int]) -> dict[str, int]:
        events = rows_of(*((symbol, size, at * second) for symbol, size, at in rows))
        engine.apply("ticks", records_of(events, FIELDS), engine.cut["ticks"] + len(rows))
        engine.stabilize()
        return {row["symbol"]: row["n"] for row in engine.table("out").to_pylist()}

    assert table(("A", 1, 0), ("A", 1, 90), ("B", 1, 95)) == {"A": 2, "B": 1}
    assert table(("C", 1, 189)) == {"A": 2, "B": 1, "C": 1}
    assert table(("C", 1, 190)) == {"B": 1, "C": 2}
    assert table(("A", 1, 150)) == {"A": 3, "B": 1, "C": 2}
    assert table(("C", 1, 255)) == {"C": 3}
    assert table(("A", 1, 252)) == {"A": 1, "C": 3}
    assert table(("A", 1, 249)) == {"A": 5, "C": 3}  # two sessions become one
    engine.close()
    engine.stabilize()
    assert engine.table("out").num_rows == 2  # that inputs ended ends no key


def test_state_shrinks() -> None:
    engine = Engine(counted("1000s").plan())
    sizes = []
    for turn in range(40):
        first = turn * 200
        rows = rows_of(*((f"key-{first + at}", 1, (first + at) * 10**9) for at in range(200)))
        engine.apply("ticks", records_of(rows, FIELDS), first + 200)
        engine.stabilize()
        (table,) = engine.snapshot().tables.values()
        sizes.append((engine.keys_held, table.num_rows, engine.table("out").num_rows))

    assert sizes[-1] == (1060, 1060, 1000)
    assert max(size for size, _, _ in sizes) <= 1300


def test_increments_lead_to_the_state() -> None:
    plan = ending(start(), 30).plan()
    engine = Engine(plan)
    base, increments = None, []
    for turn in range(12):
        rows = rows_of(*(("ABC"[at % 3], at, turn * 40 + 10 * at) for at in range(4)))
        engine.apply("ticks", records_of(rows, FIELDS), 4 * turn + 4)
        engine.stabilize()
        pending = engine.begin_snapshot(None if base is None else turn)
        while not pending.step(2):
            pass
        if base is None:
            base = pending.finish()
        else:
            increments.append(pending.finish())
    assert base is not None
    assert increments[-1].since is not None
    restored = Engine.restore(plan, applied(base, *increments))
    assert restored.digests == engine.digests


def test_keys_that_end_survive_crashes() -> None:
    happened = rows_of(*((symbol, at % 5, 40 * at) for at in range(7) for symbol in "AB"))
    crash_test(ending(start(), 70), happened, seeds=range(2), every=SCATTERED, pairs=1)


def refused(make: Any) -> str:
    with pytest.raises(PlanError) as raised:
        make()
    return str(raised.value)


def test_bad_uses_are_told_what_to_write() -> None:
    keyed = start().partition("p", key="symbol")
    window = keyed.window("w", rp.Tumbling(50))
    assert refused(lambda: window.fold("f", n=ra.count(), ttl="1d")) == (
        "fold 'f': the windows end already, and their rows with them: leave ttl= out"
    )
    table = keyed.fold("f", n=ra.count()).partition("q", key=())
    assert "give it to the fold of events below 'f'" in refused(
        lambda: table.fold("g", n=ra.sum("n"), ttl="1d")
    )
    topic = Pipeline("test").table("t", Tick, key="symbol").partition("q", key="size")
    assert "end with their deletions: leave ttl= out" in refused(
        lambda: topic.fold("g", n=ra.count(), ttl="1d")
    )
    assert "ttl" in refused(lambda: keyed.fold("f", n=ra.count(), ttl="soon"))
    assert "longer than zero" in refused(lambda: keyed.fold("f", n=ra.count(), ttl=0))
    custom = rp.custom("size", init=lambda: 0, add=lambda a, b: a + b, result=lambda a: a, type=int)
    assert "the sessions of a key with ttl= are" in refused(
        lambda: keyed.fold("f", n=custom, ttl="1d")
    )
    assert [field.name for field in keyed.fold("f", ttl=ra.count()).fields] == ["symbol", "ttl"]
    plan = counted("1d").plan()
    need_one_division(plan, "a cluster", {plan.source.name: ("symbol",)})
    why = "needs all of one symbol, while the keys of f end in their partition: run it in one"
    with pytest.raises(PlanError, match=why):
        need_one_division(plan, "a cluster", {plan.source.name: ("size",)})
    assert counted("1d").plan().topology_hash != counted("2d").plan().topology_hash
    assert counted(None).plan().is_chain


def test_keys_that_end_are_those_of_duckdb() -> None:
    import duckdb

    chance = random.Random(7)
    rows = rows_of(
        *(
            (f"k{chance.randint(0, 40)}", at % 7, 4 * at - chance.randint(0, 15))
            for at in range(4, 1500)
        )
    )
    keyed = Pipeline("test").source("ticks", Tick).partition("p", key="symbol")
    engine = Engine(keyed.fold("f", n=ra.count(), t=ra.sum("size"), ttl=150).sink("out").plan())
    for at in range(0, len(rows), 37):
        batch = records_of(rows[at : at + 37], FIELDS)
        engine.apply("ticks", batch, at + batch.num_rows)
        engine.stabilize()
    found = sorted(tuple(row.values()) for row in engine.table("out").to_pylist())
    ticks_in = records_of(rows, FIELDS)  # noqa: F841 - DuckDB reads it by its name
    expected = duckdb.sql(
        "with gaps as (select *, coalesce(timestamp_ns - lag(timestamp_ns) over "
        "(partition by symbol order by timestamp_ns) >= 150, true)::int starts from ticks_in), "
        "parts as (select *, sum(starts) over (partition by symbol order by timestamp_ns "
        "rows unbounded preceding) part from gaps), "
        "newest as (select *, max(part) over (partition by symbol) newest from parts) "
        "select symbol, count(*), sum(size)::bigint from newest where part = newest "
        "group by symbol having max(timestamp_ns) + 150 > (select max(timestamp_ns) from ticks_in)"
    )
    assert found == sorted(expected.fetchall())
    assert 5 < len(found) < 41
