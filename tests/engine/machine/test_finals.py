"""Final rows as streams: against the reference, at every batch size and interleaving."""

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
from ripple.engine.migration.adaptation import decide
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.division import need_one_division
from ripple.model.pipeline.topology import stages_of
from ripple.model.schema.columns import records_of
from ripple.testing import check_pipeline, crash_test
from tests.engine.machine.finals import (
    WAYS,
    Step,
    Trend,
    among_events,
    bars,
    grow,
    pipeline_of,
    rolled,
    windowed,
)
from tests.engine.machine.ticks import ASSIGNERS, TRIGGERS, Tick, of_two_inputs, ticks
from tests.examples import EXAMPLES, SAMPLED, SCATTERED, THINNED

SIZES = (1, 7, 1000)
FIELDS = rp.schema_of(Tick).fields

chosen = st.lists(st.sampled_from(WAYS), min_size=1, unique=True)


def events() -> Pipeline:
    return Pipeline("test").source("ticks", Tick, out_of_order=10, reject_future=100_000)


@settings(max_examples=10 * EXAMPLES // SAMPLED)
@given(
    ways=chosen,
    assigner=st.sampled_from(ASSIGNERS),
    trigger=st.sampled_from(TRIGGERS),
    lateness=st.sampled_from([0, 20, 200]),
    happened=ticks(extreme=True),
    restart=st.integers(0, 45),
)
def test_streams_of_final_rows_equal_their_evaluation_from_scratch(  # noqa: PLR0917
    ways: list[Any], assigner: Any, trigger: Any, lateness: int, happened: Any, restart: int
) -> None:
    base = bars(events(), assigner, trigger, lateness)
    check_pipeline(pipeline_of(base, ways), happened, SIZES, restarts=[min(restart, len(happened))])


@settings(max_examples=10 * EXAMPLES // SAMPLED)
@given(
    ways=chosen,
    assigner=st.sampled_from(ASSIGNERS),
    happened=of_two_inputs(),
    restart=st.integers(0, 30),
)
def test_streams_of_final_rows_of_several_inputs_with_markers(
    ways: list[Any], assigner: Any, happened: tuple[list[Any], int], restart: int
) -> None:
    mixed, _ = happened
    check_pipeline(
        pipeline_of(bars(events(), assigner, None, 20), ways),
        mixed,
        SIZES,
        inputs=["a", "b"],
        restarts=[min(restart, len(mixed))],
    )


@pytest.mark.parametrize("more", [False, True])
@settings(max_examples=6 * EXAMPLES // THINNED)
@given(
    happened=ticks(),
    owners=st.lists(st.sampled_from(["ticks", "more"]), min_size=60, max_size=60),
    restart=st.integers(0, 45),
)
def test_final_rows_among_events(
    more: bool, happened: Any, owners: list[str], restart: int
) -> None:
    given: Any = list(zip(owners, happened, strict=False)) if more else happened
    check_pipeline(among_events(more=more), given, SIZES, restarts=[min(restart, len(happened))])


def _read(pipeline: Pipeline, lanes: dict[str, list[Any]], seed: int) -> Any:
    """Return the results after a reading of lanes in a random order, with restores."""
    plan, chance = pipeline.plan(), random.Random(seed)
    engine = Engine(plan, inputs=list(lanes))
    left = {name: list(rows) for name, rows in lanes.items()}
    shown: dict[str, list[str]] = {one.name: [] for one in plan.outputs if one.is_stream}

    def note() -> None:
        for name, rows in engine.stabilize().outputs.items():
            if name in shown:
                shown[name] += map(repr, rows.to_pylist())

    while any(left.values()):
        name = chance.choice([name for name, rows in left.items() if rows])
        size = chance.randint(1, 7)
        rows, left[name] = left[name][:size], left[name][size:]
        fields = plan.sources[0].fields
        engine.apply(name, records_of(rows, fields), engine.cut[name] + len(rows))
        if chance.random() < 0.5:
            note()
            if chance.random() < 0.2:
                engine = Engine.restore(plan, engine.snapshot())
    note()
    tables = {one.name: engine.table(one.name).to_pylist() for one in plan.outputs}
    rows_of = {name: sorted(map(repr, rows)) for name, rows in tables.items()}
    return engine.digests, rows_of, {name: sorted(rows) for name, rows in shown.items()}


@settings(max_examples=8 * EXAMPLES // SAMPLED)
@given(
    data=st.data(),
    ways=chosen,
    assigner=st.sampled_from(ASSIGNERS),
    happened=ticks(),
    more=st.booleans(),
)
def test_a_cut_does_not_tell_how_its_inputs_interleaved(
    data: Any, ways: list[Any], assigner: Any, happened: Any, more: bool
) -> None:
    names = ["ticks", "more"]
    lanes: dict[str, list[Any]] = {name: [] for name in names}
    for event in happened:
        lanes[data.draw(st.sampled_from(names))].append(event)
    pipeline = among_events(more=True)
    if not more:
        pipeline = pipeline_of(bars(events(), assigner, None, 20), ways)
    one, other = (_read(pipeline, lanes, data.draw(st.integers())) for _ in range(2))

    assert one == other


def rows_of(*rows: tuple[str, int, int]) -> list[dict[str, Any]]:
    return [
        {"symbol": symbol, "price": 1.0, "size": size, "venue": None, "timestamp_ns": at}
        for symbol, size, at in rows
    ]


def test_a_row_enters_when_its_window_is_over_and_not_before() -> None:
    final = bars(Pipeline("test").source("ticks", Tick), rp.Tumbling(50), None, 20).finals("final")
    engine = Engine(final.sink("out").plan())

    def shown(*rows: tuple[str, int, int]) -> list[tuple[str, int, int]]:
        batch = records_of(rows_of(*rows), engine.plan.source.fields)
        engine.apply("ticks", batch, engine.cut["ticks"] + len(rows))
        found = engine.stabilize().outputs["out"].to_pylist()
        return [(row["symbol"], row["n"], row["window_end_ns"]) for row in found]

    assert shown(("B", 1, 3), ("A", 1, 49), ("C", 1, 52)) == []
    assert shown(("A", 1, 69)) == []
    assert shown(("B", 1, 49)) == []  # late, but not too late
    assert shown(("A", 1, 70)) == [("A", 1, 50), ("B", 2, 50)]
    assert shown(("A", 1, 71)) == []
    engine.close()
    last = engine.stabilize().outputs["out"].to_pylist()
    assert [(row["symbol"], row["n"], row["window_end_ns"]) for row in last] == [
        ("A", 3, 100),
        ("C", 1, 100),
    ]


def test_windows_of_final_rows_end_at_once() -> None:
    final = bars(Pipeline("test").source("ticks", Tick), rp.Tumbling(50), None, 20).finals("final")
    hour = final.partition("q", key="symbol").window("v", rp.Tumbling(100)).fold("h", n=ra.sum("n"))
    engine = Engine(hour.sink("out").plan(), finals=True)
    batch = records_of(rows_of(("A", 1, 3), ("A", 1, 60), ("A", 1, 120)), FIELDS)
    engine.apply("ticks", batch, 3)
    changes = engine.stabilize()

    assert changes.outputs["out"].column("n").to_pylist() == [2]
    assert changes.final["out"].column("n").to_pylist() == [2]
    assert engine.windows == 1  # of the events from 100 on


def refused(make: Any) -> str:
    with pytest.raises(PlanError) as raised:
        make()
    return str(raised.value)


def test_bad_uses_are_told_what_to_write() -> None:
    keyed = events().partition("p", key="symbol")
    base = keyed.window("w", rp.Tumbling(50)).fold("bars", n=ra.count())
    final = base.finals("final")
    again = final.partition("q", key="symbol")

    assert refused(lambda: events().finals("f")) == (
        "finals 'f': final rows are those of windows: put it after .window(...) and .fold(...)"
    )
    assert refused(lambda: keyed.fold("all", n=ra.count()).finals("f")) == (
        "finals 'f': the rows of 'all' may change for ever: put it after a fold with a .window(...)"
    )
    above = base.partition("by", key="symbol").fold("over", n=ra.sum("n"))
    assert "the rows of 'over' may change for ever" in refused(lambda: above.finals("f"))
    ends = base.partition("by-start", key="window_start_ns").fold("ends", n=ra.sum("n"))
    assert "'ends' leave with the windows of 'bars'" in (told := refused(lambda: ends.finals("f")))
    assert "by a constant, of .derive(...), in windows of rp.Tumbling('50ns')" in told
    other = keyed.window("v", rp.Tumbling(50)).fold("volumes", size=ra.sum("size"))
    both = base.join("both", other, on=("symbol", "window_start_ns"))
    told = refused(lambda: both.finals("f"))
    assert "take .finals(...) of 'bars' and 'volumes', and match their rows with .join_in" in told
    assert refused(lambda: again.window("v", rp.Tumbling(100), lateness="1s")) == (
        "window 'v': the rows of 'final' are never late: leave lateness= out"
    )
    assert "which rows of 'final' come: use OnWatermark" in refused(
        lambda: again.window("v", rp.Tumbling(100), trigger=rp.OnCount(3))
    )
    unread = final.source("more", Tick).sink("more-out")
    assert "step 'final': nothing takes its rows" in refused(unread.plan)
    assert "nothing orders those of one time" in refused(
        lambda: rp.union("u", final, base.finals("other"))
    )
    assert "with .finals(name)" in refused(lambda: rp.union("u", base, final))


def test_a_cluster_takes_final_rows_where_one_stage_has_all_folds() -> None:
    final = bars(events(), rp.Tumbling(50), None, 20).finals("final")
    need_one_division(final.sink("out").plan(), "a cluster")
    again = final.partition("again", key=("n", "symbol")).fold("g", of=rp.count())
    plan = again.sink("out").plan()
    need_one_division(plan, "a cluster", {"ticks": ("symbol",)})
    (stage,) = stages_of(plan)
    assert (stage.key, stage.edge) == (("symbol",), None)
    assert stage.folds[-1] == "g"
    total = again.partition("all", key=()).fold("total", n=rp.sum("of")).sink("out").plan()
    why = "by symbol, and total needs all of one total, while the rows of final stay in their"
    with pytest.raises(PlanError, match=why):
        need_one_division(total, "a cluster", {"ticks": ("symbol",)})
    with pytest.raises(PlanError, match=r"no field of their keys in common: .*, total is by \(\)"):
        need_one_division(total, "a cluster")


def test_final_rows_of_several_sources_stay_in_partitions_divided_alike() -> None:
    start = rp.Pipeline("p")
    ticks, more = (start.source(name, Tick, key="symbol") for name in ("ticks", "more"))
    bar = bars(rp.union("u", ticks, more), rp.Tumbling(50), None, 20).finals("final")
    need_one_division(bar.sink("out").plan(), "a cluster")
    over = bar.partition("by-n", key="n").fold("g", of=rp.count()).sink("out").plan()
    why = "by symbol, and g needs all of one n: fold the rows of final in a pipeline of its own"
    with pytest.raises(PlanError, match=why):
        need_one_division(over, "a cluster")


def test_a_branch_of_final_rows_keeps_the_state_of_the_fold_below() -> None:
    base = bars(events(), rp.Tumbling(50), None, 20)
    before = base.finals("final").sink("out")
    engine = Engine(before.plan())
    batch = records_of(rows_of(("A", 1, 3), ("A", 2, 4), ("B", 2, 200)), FIELDS)
    engine.apply("ticks", batch, 3)
    engine.stabilize()
    renamed = base.finals("ended").sink("out").also(base.sink("bars-out"))
    ended = base.finals("ended")
    hour = ended.partition("q", key="symbol").fold("h", n=ra.sum("n"))

    with pytest.raises(rp.RippleError, match="a sink shows it now that none showed before"):
        decide(renamed.plan(), engine.snapshot())
    with pytest.raises(rp.RippleError, match="there is no state for fold 'h'"):
        decide(ended.sink("out").also(hour.sink("h-out")).plan(), engine.snapshot())
    named = ended.sink("out")
    found = decide(named.plan(), engine.snapshot())
    assert found.kept_outputs == ("out",)
    assert found.snapshot is not None
    restored = Engine.restore(named.plan(), found.snapshot)
    assert restored.digests == engine.digests


def test_rebuilding_a_fold_rebuilds_the_folds_over_its_final_rows() -> None:
    def counted(lateness: int) -> rp.Plan:
        final = bars(events(), rp.Tumbling(50), None, lateness).finals("final")
        return final.partition("q", key="symbol").fold("h", n=ra.sum("n")).sink("out").plan()

    engine = Engine(counted(20))
    engine.stabilize()
    assert decide(counted(30), engine.snapshot(), ["bars"]).snapshot is None
    found = decide(counted(20), engine.snapshot(), ["bars"]).comparison
    assert [one.verdict.value for one in found.folds] == ["rebuild", "rebuild"]
    with pytest.raises(rp.RippleError, match="the state of fold 'bars'"):
        decide(counted(30), engine.snapshot(), ["h"])


def test_final_rows_survive_crashes() -> None:
    base = bars(events(), rp.Tumbling(50), None, 20)
    happened = rows_of(*((symbol, at % 5, 30 * at) for at in range(8) for symbol in "AB"))
    crash_test(
        pipeline_of(base, [rolled, windowed]), happened, seeds=range(2), every=SCATTERED, pairs=1
    )


def scattered(count: int) -> list[Any]:
    chance = random.Random(7)
    return rows_of(
        *(
            (chance.choice("ABC"), chance.randint(1, 9), 4 * at - chance.randint(0, 15))
            for at in range(4, count)
        )
    )


def test_rolling_values_of_final_rows_are_those_of_polars() -> None:
    import polars as pl

    rows = scattered(600)
    base = bars(Pipeline("test").source("ticks", Tick), rp.Tumbling(50), None, 20)
    values: dict[str, Any] = {"ema": rp.ema("size", span=5), "most": rp.rolling_max("size", 4)}
    made = base.finals("final").scan("s", "symbol", settled=True, mean=rp.lag("n"), **values)
    engine = Engine(made.sink("out").plan())
    found: list[dict[str, Any]] = []
    for at in range(0, len(rows), 37):
        engine.apply("ticks", records_of(rows[at : at + 37], FIELDS), min(at + 37, len(rows)))
        if at + 37 >= len(rows):
            engine.close()
        found += engine.stabilize().outputs["out"].to_pylist()
        if at % 3 == 0:
            engine = Engine.restore(engine.plan, engine.snapshot())
    end = (pl.col("timestamp_ns") // 50 + 1) * 50
    size = pl.col("size")
    whole = (
        pl.DataFrame(
            [{one: row[one] for one in ("symbol", "size", "timestamp_ns")} for row in rows]
        )
        .group_by("symbol", end.alias("window_end_ns"))
        .agg(pl.len().cast(pl.Int64).alias("n"), size.sum())
        .sort("window_end_ns", "symbol")
        .with_columns(
            pl.col("n").shift(1).over("symbol").alias("mean"),
            size.ewm_mean(span=5, adjust=False).over("symbol").alias("ema"),
            size.rolling_max(4, min_samples=1).over("symbol").alias("most"),
        )
    )
    shown = [{name: row[name] for name in whole.columns} for row in found]
    assert shown == whole.to_dicts()


def test_rows_at_once_of_final_rows_are_their_settled_ones() -> None:
    final = bars(events(), rp.Tumbling(50), None, 20).finals("final")
    said: dict[str, Any] = {"state": Trend, "step": grow, "into": Step}
    rows = final.scan("now", "symbol", **said).sink("now-out")
    once = final.scan("once", "symbol", **said, settled=True).sink("once-out")
    engine = Engine(rows.also(once).plan(), finals=True)
    given = 0
    for row in [*scattered(200), None]:
        if row is None:
            engine.close()
        else:
            engine.apply("ticks", records_of([row], FIELDS), engine.cut["ticks"] + 1)
        changes = engine.stabilize()
        settled = changes.outputs["once-out"]
        assert changes.final["now-out"].select(settled.schema.names).to_pylist() == (
            settled.to_pylist()
        )
        given += settled.num_rows
    assert given > 9
    assert not engine.table("now-out").num_rows


def test_final_rows_and_windows_of_them_are_those_of_duckdb() -> None:
    import duckdb

    rows = scattered(1500)
    base = bars(Pipeline("test").source("ticks", Tick), rp.Tumbling(50), None, 20)
    final = base.finals("final")
    above = final.partition("q", key="symbol").window("v", rp.Tumbling(200))
    fold = above.fold("h", n=ra.sum("n"), most=ra.max("size"))
    engine = Engine(final.sink("out").also(fold.sink("above")).plan())
    found: dict[str, list[tuple[Any, ...]]] = {"out": [], "above": []}
    for at in range(0, len(rows), 37):
        batch = records_of(rows[at : at + 37], FIELDS)
        engine.apply("ticks", batch, at + batch.num_rows)
        if at + 37 >= len(rows):
            engine.close()
        outputs = engine.stabilize().outputs
        found["out"] += [
            (row["window_end_ns"], row["symbol"], row["n"], row["size"])
            for row in outputs["out"].to_pylist()
        ]
        found["above"] += [
            (row["window_end_ns"], row["symbol"], row["n"], row["most"])
            for row in outputs["above"].to_pylist()
        ]
    ticks_in = records_of(rows, FIELDS)  # noqa: F841 - DuckDB reads it by its name
    duck = duckdb.sql(
        "select (timestamp_ns // 50 + 1) * 50 e, symbol, count(*) n, sum(size)::bigint size "
        "from ticks_in group by all order by all"
    )
    assert engine.counters.very_late == 0
    assert found["out"] == duck.fetchall()
    over = duckdb.sql(
        "select ((e - 1) // 200 + 1) * 200 e, symbol, sum(n)::bigint, max(size) from duck "
        "group by all order by all"
    )
    assert sorted(found["above"]) == over.fetchall()
