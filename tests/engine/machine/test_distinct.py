"""Rows told apart by key and time: against the reference, other readings, and DuckDB."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.core.errors import InputError, PlanError
from ripple.core.row_ops import OP_REMOVE
from ripple.engine.machine import Engine
from ripple.engine.machine.engine import SnapshotError
from ripple.engine.migration.adaptation import ChangedPlanError, decide
from ripple.engine.operators.division import Division
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.division import need_one_division
from ripple.model.pipeline.topology import stages_of
from ripple.model.schema.columns import records_of
from ripple.testing import check_pipeline, crash_test
from tests.engine.machine.finals import WAYS as FINAL_WAYS
from tests.engine.machine.finals import bars
from tests.engine.machine.interleaved import read_mixed
from tests.engine.machine.stream_ways import ended, shown, strict
from tests.engine.machine.ticks import Tick, of_two_inputs, ticks
from tests.examples import EXAMPLES, SAMPLED, SCATTERED, THINNED

SIZES = (1, 7, 1000)
FIELDS = rp.schema_of(Tick).fields


def start(source: str = "ticks", out_of_order: int = 10) -> Pipeline:
    return Pipeline("test").source(source, Tick, out_of_order=out_of_order, reject_future=100_000)


# Ways from distinct rows to sinks, each with names of its own.
def running(rows: Pipeline) -> Pipeline:
    keyed = rows.filter("g2", rp.col("size") > 0).partition("g2p", key="symbol")
    fold = keyed.fold("counted", n=ra.count(), first=ra.first("size"), last=ra.last("size"))
    return fold.sink("counted-out")


def windowed(rows: Pipeline) -> Pipeline:
    keyed = rows.partition("g3p", key="size").window("w3", rp.Session(60))
    return keyed.fold("gw", n=ra.count(), last=ra.last("symbol")).sink("w-out")


def again(rows: Pipeline) -> Pipeline:
    """Tell the rows apart by another key, and let windows of them become final."""
    fewer = rows.derive("d4", is_large=rp.col("size") > 1).distinct("fewer", "is_large", within=90)
    final = bars(fewer, rp.Tumbling(50), None, None).finals("final")
    return fewer.sink("fewer-out").also(FINAL_WAYS[2](final)).also(final.sink("final-out"))


WAYS = [shown, strict, running, windowed, again]


def told_apart(base: Pipeline, ways: list[Any], within: int, lateness: int) -> Pipeline:
    rows = base.distinct("d", ["symbol"], within=within, lateness=lateness)
    return ended(rows, ways, base)


def several(within: int) -> Pipeline:
    """Return a pipeline that tells rows of two sources apart, together and alone."""
    pipeline = Pipeline("test")
    one = pipeline.source("ticks", Tick, out_of_order=10)
    other = pipeline.source("more", Tick, out_of_order=30)
    both = rp.union("both", one, other.filter("k", rp.col("size") > 0))
    rows = both.distinct("d", "symbol", within=within, lateness=20)
    mine = one.distinct("mine", ["size", "symbol"], within=within, lateness=5)
    mixed = rp.union("mixed", mine, other)
    keyed = mixed.partition("pm", key="symbol")
    fold = keyed.fold("m", n=ra.count(), last=ra.last("size"))
    window = keyed.window("wm", rp.Tumbling(70), lateness=30).fold("mw", n=ra.count())
    return (
        rows.sink("out")
        .also(fold.sink("m-out"))
        .also(window.sink("mw-out"))
        .also(mixed.sink("mixed-out"))
        .also(running(rows))
    )


chosen = st.lists(st.sampled_from(WAYS), min_size=1, unique=True)
spans = st.sampled_from([0, 3, 40, 10**6])


@settings(max_examples=12 * EXAMPLES // SAMPLED)
@given(
    ways=chosen,
    within=spans,
    lateness=st.sampled_from([0, 20, 200]),
    happened=ticks(extreme=True),
    restart=st.integers(0, 45),
)
def test_distinct_rows_equal_their_evaluation_from_scratch(
    ways: list[Any], within: int, lateness: int, happened: Any, restart: int
) -> None:
    pipeline = told_apart(start(), ways, within, lateness)
    check_pipeline(pipeline, happened, SIZES, restarts=[min(restart, len(happened))])


@settings(max_examples=6 * EXAMPLES // THINNED)
@given(
    ways=chosen,
    within=spans,
    happened=of_two_inputs(),
)
def test_distinct_rows_of_several_inputs_with_markers(
    ways: list[Any], within: int, happened: tuple[list[Any], int]
) -> None:
    mixed, at = happened
    pipeline = told_apart(start(), ways, within, 20)
    check_pipeline(pipeline, mixed, SIZES, inputs=["a", "b"], restarts=[at])


@settings(max_examples=8 * EXAMPLES // SAMPLED)
@given(
    within=spans,
    happened=ticks(),
    owners=st.lists(st.sampled_from(["ticks", "more"]), min_size=60, max_size=60),
    restart=st.integers(0, 45),
)
def test_distinct_rows_of_several_sources(
    within: int, happened: Any, owners: list[str], restart: int
) -> None:
    given_rows = list(zip(owners, happened, strict=False))
    check_pipeline(several(within), given_rows, SIZES, restarts=[min(restart, len(given_rows))])


@settings(max_examples=10 * EXAMPLES // SAMPLED)
@given(data=st.data(), within=spans, happened=ticks())
def test_a_cut_does_not_tell_how_its_inputs_interleaved(
    data: Any, within: int, happened: Any
) -> None:
    lanes: dict[str, list[Any]] = {"ticks": [], "more": []}
    for event in happened:
        lanes[data.draw(st.sampled_from(["ticks", "more"]))].append(event)
    one, other = (read_mixed(several(within), lanes, data.draw(st.integers())) for _ in range(2))

    assert one == other


def rows_of(*rows: tuple[str, int, int]) -> list[dict[str, Any]]:
    return [
        {"symbol": symbol, "price": 1.0, "size": size, "venue": None, "timestamp_ns": at}
        for symbol, size, at in rows
    ]


@pytest.mark.parametrize("seed", range(12))
def test_first_rows_of_sessions_are_the_distinct_rows_at_once(seed: int) -> None:
    chance, within = random.Random(f"first rows/{seed}"), seed % 4
    source = Pipeline("test").source("ticks", Tick, out_of_order=5)
    sessions = source.partition("by", key="symbol").window(
        "runs", rp.Session(within + 1), lateness=9, trigger=rp.OnEveryElement()
    )
    first = sessions.fold("first", of=rp.first_row(["size", "timestamp_ns"]))
    distinct = source.distinct("d", "symbol", within=within, lateness=9)
    engine = Engine(distinct.sink("once").also(first.sink("table")).plan())
    latest, once, table = 0, [], {}
    happened: dict[str, list[tuple[int, int]]] = {"A": [], "B": []}
    for size in range(60):
        # Never behind by more than both lateness and disorder allow.
        symbol, at = chance.choice("AB"), max(0, latest + chance.randint(-14, 4))
        latest = max(latest, at)
        happened[symbol].append((at, size))
        engine.apply("ticks", records_of(rows_of((symbol, size, at)), FIELDS), size + 1)
        if size % 7 and size < 59:
            continue
        if size == 59:
            engine.close()
        outputs = engine.stabilize().outputs
        once += [(row["symbol"], row["size"]) for row in outputs["once"].to_pylist()]
        for row in outputs["table"].to_pylist():
            place = (row["symbol"], row["window_start_ns"])
            table.pop(place, None)
            if row["op"] != OP_REMOVE:
                table[place] = (row["symbol"], row["of_size"])
        expected = []
        for key, rows in happened.items():
            rows.sort()
            preceding = [-(10**9), *(at for at, _ in rows)]
            expected += [
                (key, n)
                for (at, n), before in zip(rows, preceding, strict=False)
                if at - before > within
            ]
        assert sorted(table.values()) == sorted(expected)
    assert sorted(once) == sorted(table.values())


def test_the_row_before_decides_though_it_is_not_kept() -> None:
    plan = Pipeline("test").source("ticks", Tick).distinct("d", "symbol", within=10, lateness=5)
    engine = Engine(plan.sink("out").plan())

    def seen(*rows: tuple[str, int, int]) -> list[tuple[str, int]]:
        batch = records_of(rows_of(*rows), FIELDS)
        engine.apply("ticks", batch, engine.cut["ticks"] + len(rows))
        found = engine.stabilize().outputs["out"].to_pylist()
        return [(row["symbol"], row["timestamp_ns"]) for row in found]

    assert seen(("A", 1, 10), ("A", 1, 18), ("B", 1, 20), ("A", 1, 26)) == [("A", 10), ("B", 20)]
    assert seen(("A", 1, 36)) == []  # 26 is 10 before 36
    assert seen(("A", 1, 47)) == []
    assert seen(("B", 1, 43)) == []  # late by 4
    assert seen(("C", 1, 53)) == [("B", 43), ("A", 47)]
    assert seen(("B", 1, 40)) == []
    assert engine.counters.very_late == 1


@pytest.mark.parametrize("arrival", [("ticks", "more"), ("more", "ticks")])
def test_of_one_time_the_row_of_the_source_declared_first_stays(arrival: tuple[str, str]) -> None:
    engine = Engine(several(40).plan())
    for source in arrival:
        size = 7 if source == "ticks" else 3
        engine.apply(source, records_of(rows_of(("A", size, 50)), FIELDS), 1)
        engine.stabilize()
    engine.close()

    assert engine.stabilize().outputs["out"].column("size").to_pylist() == [7]


def test_keys_and_rows_are_freed() -> None:
    plan = Pipeline("test").source("ticks", Tick).distinct("d", "symbol", within=1000, lateness=50)
    engine = Engine(plan.sink("out").plan())
    sizes = []
    for turn in range(60):
        rows = rows_of(*((f"key-{turn}-{at}", 1, turn * 200 + at) for at in range(200)))
        engine.apply("ticks", records_of(rows, FIELDS), (turn + 1) * 200)
        engine.stabilize()
        (table,) = engine.snapshot().tables.values()
        sizes.append((table.num_rows, engine.nbytes))

    held = [rows for rows, _ in sizes]
    assert held[3] < held[6] == held[-1] <= 1000 + 50 + 200
    assert max(size for _, size in sizes[-20:]) <= max(size for _, size in sizes[:30])
    restored = Engine.restore(engine.plan, engine.snapshot())
    assert restored.snapshot().tables.keys() == engine.snapshot().tables.keys()


def refused(make: Any) -> str:
    with pytest.raises(PlanError) as raised:
        make()
    return str(raised.value)


def test_bad_uses_are_told_what_to_write() -> None:
    assert refused(lambda: start().distinct("d", "symbol")) == (
        "distinct 'd': within is missing, and every key ever seen would be kept: name a span, or "
        "take rp.first_row in a fold"
    )
    assert "a stream takes no rows back: leave emit= out, which gives" in refused(
        lambda: start().distinct("d", "symbol", within=1, emit="eager")  # type: ignore[arg-type]
    )
    assert "key is missing: name the field" in refused(lambda: start().distinct("d", (), within=1))
    assert "may be null" in refused(lambda: start().distinct("d", "venue", within=1))
    assert "within" in refused(lambda: start().distinct("d", "symbol", within="soon"))
    assert "lateness" in refused(lambda: start().distinct("d", "symbol", within=1, lateness=-1))
    keyed = start().partition("gp", key="symbol")
    assert "put it before .partition(...)" in refused(lambda: keyed.distinct("d", "symbol"))
    table = keyed.fold("f", n=ra.count())
    assert "a fold has one row a key already" in refused(lambda: table.distinct("d", "symbol"))
    final = bars(start(), rp.Tumbling(50), None, 20).finals("final")
    assert "'final' are told apart by the keys and windows of 'final', not as records" in refused(
        lambda: final.distinct("d", "symbol", within=1)
    )
    rows = start().distinct("d", "symbol", within=1)
    assert "the rows of 'd' are never late: leave lateness= out" in refused(
        lambda: rows.distinct("e", "symbol", within=1, lateness=1)
    )
    assert "put it before .distinct" in refused(
        lambda: rows.flat_map("m", lambda row: [row], into=Tick)
    )
    assert "have rows of the same events, of 'ticks'" in refused(
        lambda: rp.union("u", rows, rows.filter("k", rp.col("size") > 1))
    )
    timeless = Pipeline("t").source("s", rp.schema_of(Untimed))
    assert "has no time field" in refused(lambda: timeless.distinct("d", "symbol", within=1))


@rp.record
class Untimed:
    symbol: str


def test_a_cluster_takes_distinct_rows_where_the_partitions_of_the_source_fit_their_key() -> None:
    plan = start().distinct("d", "symbol", within=1).sink("out").plan()
    need_one_division(plan, "a cluster")
    need_one_division(plan, "a cluster", {"ticks": ("symbol",)})
    (stage,) = stages_of(plan)
    assert (stage.key, stage.edge) == (("symbol",), None)
    why = "divided by size, and d needs all of one symbol, while the rows of d stay in their part"
    with pytest.raises(PlanError, match=f"has rows by the wat.*{why}.*or divide it by a field"):
        need_one_division(plan, "a cluster", {"ticks": ("size",)})
    with pytest.raises(PlanError, match="divided by nothing, and d needs all of one symbol"):
        need_one_division(plan, "a cluster", {"ticks": ()})
    once = start().distinct("d", "symbol", within=1)
    whole = once.partition("by-size", key="size").fold("f", n=rp.count()).sink("out").plan()
    with pytest.raises(PlanError, match="keys in common: d is by symbol, f is by size, while the"):
        need_one_division(whole, "a cluster")


def test_a_key_of_distinct_rows_in_a_partition_of_another_is_an_error() -> None:
    engine = Engine(start().distinct("d", "symbol", within=1).sink("out").plan(), 0, ["ticks/0"])
    engine.expect(Division(("symbol",), {"ticks/0": 0}, 2))
    apart = {
        name: int(partition_numbers(records_of([{"symbol": name}], FIELDS[:1]), ("symbol",), 2)[0])
        for name in "ABCDEF"
    }
    here, there = (next(name for name in apart if apart[name] == at) for at in (0, 1))
    engine.apply("ticks/0", records_of(rows_of((here, 1, 3)), FIELDS), 1)
    with pytest.raises(InputError, match=f"the symbol '{there}' is in ticks/0, which is partition"):
        engine.apply("ticks/0", records_of(rows_of((there, 1, 3)), FIELDS), 2)


def test_held_rows_are_kept_or_refused_after_a_change() -> None:
    base = start()
    engine = Engine(base.distinct("d", "symbol", within=20).sink("out").plan())
    engine.apply("ticks", records_of(rows_of(("A", 1, 3), ("A", 2, 4)), FIELDS), 2)
    engine.stabilize()
    snapshot = engine.snapshot()
    renamed = base.distinct("once", "symbol", within=20).sink("out")
    found = decide(renamed.plan(), snapshot)
    assert found.kept_outputs == ("out",)
    assert found.snapshot is not None
    again = Engine.restore(renamed.plan(), found.snapshot)
    for one in (engine, again):
        one.close()
        assert one.stabilize().outputs["out"].column("size").to_pylist() == [1]
    longer = base.distinct("d", "symbol", within=21)
    changed = longer.sink("other").also(base.sink("all"))
    with pytest.raises(ChangedPlanError, match="there are no rows for 'd' in the checkpoint"):
        decide(changed.plan(), snapshot)
    rebuilt = decide(changed.plan(), snapshot, ["d", "other", "all"])
    assert rebuilt.snapshot is None
    with pytest.raises(SnapshotError, match="has not shown the rows"):
        Engine.restore(changed.plan(), snapshot)


def test_rebuilding_distinct_rows_rebuilds_the_nodes_above() -> None:
    def counted(within: int) -> rp.Plan:
        rows = start().distinct("d", "symbol", within=within)
        return running(rows.distinct("e", "size", within=1)).plan()

    engine = Engine(counted(20))
    engine.stabilize()
    assert decide(counted(21), engine.snapshot(), ["d"]).snapshot is None
    for named in ([], ["e"]):
        with pytest.raises(ChangedPlanError, match="there are no rows for 'd'") as refused:
            decide(counted(21), engine.snapshot(), named)
        assert str(refused.value).count("say --rebuild") == 1


def test_distinct_rows_survive_crashes() -> None:
    happened = rows_of(*((symbol, at % 5, 30 * at) for at in range(8) for symbol in "AB"))
    pipeline = told_apart(start(), [shown, running], 40, 50)
    crash_test(pipeline, happened, seeds=range(2), every=SCATTERED, pairs=1)


def test_distinct_rows_are_those_of_duckdb() -> None:
    import duckdb

    chance = random.Random(7)
    rows = rows_of(
        *((chance.choice("ABCDEFGH"), at, 4 * at - chance.randint(0, 15)) for at in range(4, 2000))
    )
    plan = Pipeline("test").source("ticks", Tick).distinct("d", "symbol", within=40, lateness=20)
    engine = Engine(plan.sink("out").plan())
    found: list[int] = []
    for at in range(0, len(rows), 37):
        batch = records_of(rows[at : at + 37], FIELDS)
        engine.apply("ticks", batch, at + batch.num_rows)
        if at + 37 >= len(rows):
            engine.close()
        found += engine.stabilize().outputs["out"].column("size").to_pylist()
    ticks_in = records_of(rows, FIELDS)  # noqa: F841 - DuckDB reads it by its name
    kept = duckdb.sql(
        "select size from (select *, lag(timestamp_ns) over (partition by symbol "
        "order by timestamp_ns, size) before from ticks_in) "
        "where before is null or timestamp_ns - before > 40 order by timestamp_ns, size"
    )
    assert engine.counters.very_late == 0
    assert found == [size for (size,) in kept.fetchall()]
    assert 200 < len(found) < 1500
