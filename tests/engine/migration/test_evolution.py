"""Code changes between two runs: state is right afterwards, or the run is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.engine.machine import Engine
from ripple.engine.migration.adaptation import ChangedPlanError, adapt, decide
from ripple.engine.migration.evolution import compare
from ripple.engine.migration.lineage import Node
from ripple.model.canonical import digest_of
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.nodes import Migration
from ripple.model.pipeline.plan import Plan
from ripple.model.schema.types import Field, Float, Int64, Schema, String
from tests.engine.machine.trades import Row, rows
from tests.engine.migration.versions import Version, edited, fed, shown
from tests.examples import EXAMPLES, SAMPLED


@settings(max_examples=54 * EXAMPLES // SAMPLED)
@given(edit=edited(), events=rows, cut=st.integers(0, 60))
def test_engine_after_an_edit_equals_a_fresh_one_or_there_is_none(
    edit: list[Version], events: list[Row], cut: int
) -> None:
    before, after = edit
    old = fed(Engine(before.plan()), events[:cut])
    snapshot = old.snapshot()
    comparison = compare(after.plan(), snapshot)
    adapted = adapt(snapshot, after.plan(), comparison)
    assert (adapted is None) == bool(comparison.problems)
    fresh = fed(Engine(after.plan()), events)
    if adapted is not None:
        assert adapted.cut == snapshot.cut
        restored = fed(Engine.restore(after.plan(), adapted), events)
        assert shown(restored) == shown(fresh)
        assert restored.digests == fresh.digests
        assert restored.counters == fresh.counters
        assert restored.snapshot().notes == fresh.snapshot().notes
        restored.check_invariants()
    for name in comparison.kept_outputs:
        prefix = fed(Engine(after.plan()), events[:cut])
        assert prefix.digests[name] == old.digests[name]


@settings(max_examples=21 * EXAMPLES // SAMPLED)
@given(history=edited(edits_max=4), events=rows)
def test_state_goes_through_many_versions_as_if_the_last_had_always_been(
    history: list[Version], events: list[Row]
) -> None:
    engine = Engine(history[0].plan())
    for number, version in enumerate(history, 1):
        plan, snapshot = version.plan(), engine.snapshot()
        adapted = adapt(snapshot, plan, compare(plan, snapshot))
        engine = Engine.restore(plan, adapted) if adapted else Engine(plan)
        fed(engine, events[: len(events) * number // len(history)])
    fresh = fed(Engine(history[-1].plan()), events)
    assert shown(engine) == shown(fresh)
    assert engine.digests == fresh.digests
    assert engine.snapshot().nodes == fresh.snapshot().nodes


def verdicts(before: Version, after: Version, rebuild: tuple[str, ...] = ()) -> dict[str, str]:
    comparison = compare(after.plan(), fed(Engine(before.plan()), LONG).snapshot(), rebuild)
    return {Node(n.kind, n.key).name: n.verdict.value for n in comparison.nodes}


def problems(before: Version, after: Version, rebuild: tuple[str, ...] = ()) -> str:
    snapshot = fed(Engine(before.plan()), LONG).snapshot()
    return "\n".join(compare(after.plan(), snapshot, rebuild).problems)


# Most windows are over at the cut, and some are not.
LONG: list[Row] = [("ABC"[at % 3], 1.5, 1 + at % 4, 7 * at, "XNAS") for at in range(60)]
PLAIN = Version()
WINDOWED = Version(window="short", above=None, shown=("rows",))
LASTING = replace(WINDOWED, above="totals", above_key="count")
PASSING = replace(WINDOWED, above="totals", above_key="window_start_ns")  # freed with its window


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (PLAIN, replace(PLAIN, fold="vwap"), "keep keep"),
        (WINDOWED, replace(WINDOWED, fold="vwap"), "keep"),
        (PLAIN, replace(PLAIN, above=None), "keep"),
        (PLAIN, replace(PLAIN, top=True), "keep keep new"),
        (PLAIN, replace(PLAIN, step=3), "keep changed"),
        (PLAIN, replace(PLAIN, above_step=3), "keep keep"),
        (PLAIN, replace(PLAIN, filtered=2), "rebuild rebuild"),
        (PLAIN, replace(PLAIN, checked="small"), "rebuild rebuild"),
        (replace(PLAIN, checked="small"), PLAIN, "rebuild rebuild"),
        (replace(PLAIN, checked="small"), replace(PLAIN, checked="tiny"), "rebuild rebuild"),
        (PLAIN, replace(PLAIN, reject_future=100), "rebuild rebuild"),
        (PLAIN, replace(PLAIN, aggregates=("total",)), "rebuild rebuild"),
        (WINDOWED, replace(WINDOWED, window="long"), "rebuild"),
        (WINDOWED, replace(WINDOWED, window="later"), "rebuild"),
        (WINDOWED, replace(WINDOWED, step=3), "rebuild"),
        (WINDOWED, replace(WINDOWED, above="totals"), "keep rebuild"),
        (replace(WINDOWED, above="totals", shown=("sums",)), WINDOWED, "rebuild"),
        (LASTING, replace(LASTING, top=True), "keep keep new"),
        (PASSING, replace(PASSING, top=True), "keep keep rebuild"),
    ],
)
def test_verdicts_on_folds(before: Version, after: Version, expected: str) -> None:
    comparison = compare(after.plan(), fed(Engine(before.plan()), LONG).snapshot())
    assert [node.verdict.value for node in comparison.folds] == expected.split()
    assert bool(comparison.problems) == ("rebuild" in expected)


def test_steps_and_sinks_are_judged_too() -> None:
    before = replace(PLAIN, filtered=2, step=2, shown=("rows", "sums"))
    after = replace(PLAIN, step=3, derived="notional", shown=("rows",))
    assert verdicts(before, after) == {
        "trades": "keep",
        "notional": "new",
        "by-symbol": "rebuild",
        "more": "changed",
        "totals": "rebuild",
        "rows": "changed",
        "large": "drop",
        "sums": "drop",
    }


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        (PLAIN, replace(PLAIN, filtered=2), "step 'large' was put before it"),
        (replace(PLAIN, filtered=2), PLAIN, "step 'large' before it was removed"),
        (replace(PLAIN, filtered=2), replace(PLAIN, filtered=3), "'large' before it changed: what"),
        (
            replace(PLAIN, filtered=2),
            replace(PLAIN, derived="notional"),
            "step 'notional' before it has replaced 'large'",
        ),
        (PLAIN, replace(PLAIN, out_of_order=20), "source 'trades' before it changed: its topic"),
        (
            replace(PLAIN, checked="small"),
            replace(PLAIN, checked="tiny"),
            "the field 'size' of source 'trades' was checked for lt=7 and is checked for lt=4",
        ),
        (PLAIN, replace(PLAIN, checked="tiny"), "was checked for nothing and is checked for lt=4"),
        (PLAIN, replace(PLAIN, key="size"), "its key, window or aggregates changed"),
        (PLAIN, replace(PLAIN, fold="f", key="size"), "its key, window or aggregates changed"),
        (WINDOWED, replace(WINDOWED, step=3), "steps on its results have changed, and rows of"),
        (WINDOWED, replace(WINDOWED, above="totals"), "no state for fold 'totals' in the"),
    ],
)
def test_refusal_names_fold_cause_and_both_ways_out(
    before: Version, after: Version, cause: str
) -> None:
    said = problems(before, after)
    fold = "totals" if "no state" in cause else after.fold
    assert cause in said
    assert f"fold {fold!r}" in said
    assert f"--rebuild {fold}" in said
    digest = digest_of(before.plan().folds[0].node_key)
    migration = f".migrate('{after.fold}', function, from_digest='{digest}')"
    assert (migration in said) == ("no state" not in cause)


def test_rebuild_of_a_fold_allows_those_above_it() -> None:
    after = replace(PLAIN, filtered=2)
    assert "'by-symbol'" in problems(PLAIN, after, ("totals",))
    assert problems(PLAIN, after, ("by-symbol",)) == ""
    assert "there is no fold 'large' to rebuild" in problems(PLAIN, after, ("large",))
    snapshot = fed(Engine(PLAIN.plan()), LONG).snapshot()
    assert decide(after.plan(), snapshot, ["by-symbol"]).snapshot is None
    with pytest.raises(ChangedPlanError, match="does not fit"):
        decide(after.plan(), snapshot)


def test_fold_above_a_migrated_one_does_not_keep_what_it_made_of_other_rows() -> None:
    snapshot = fed(Engine(replace(LASTING, shown=("sums",)).plan()), LONG).snapshot()
    plan = LASTING.plan()
    below, above = plan.folds
    assert above.node_key in snapshot.tables
    migration = Migration(below.name, digest_of(below.node_key), lambda table: table)
    comparison = compare(replace(plan, migrations=(migration,)), snapshot)
    (problem,) = comparison.problems
    assert "fold 'totals'" in problem
    assert "'by-symbol' below it does not keep its state" in problem


def test_rebuild_of_what_could_be_kept_reads_the_log_and_expects_the_same_digests() -> None:
    snapshot = fed(Engine(PLAIN.plan()), LONG).snapshot()
    restoration = decide(PLAIN.plan(), snapshot, ["by-symbol"])
    assert restoration.snapshot is None
    assert restoration.kept_outputs == ("rows", "sums")


def test_same_plan_takes_the_snapshot_as_it_is() -> None:
    snapshot = fed(Engine(PLAIN.plan()), LONG).snapshot()
    assert decide(PLAIN.plan(), snapshot).snapshot is snapshot
    old = replace(snapshot, nodes=(), notes={})
    assert decide(PLAIN.plan(), old).snapshot is old


def test_snapshot_of_another_plan_without_a_list_of_nodes_is_not_trusted() -> None:
    snapshot = replace(fed(Engine(PLAIN.plan()), LONG).snapshot(), nodes=(), notes={})
    comparison = compare(replace(PLAIN, shown=("rows",)).plan(), snapshot)
    assert len(comparison.problems) == 2
    assert "did not note" in comparison.problems[0]


def trades(schema: Schema, source: str = "trades") -> Plan:
    line = Pipeline("test").source(source, schema, time="at").partition("p", key="symbol")
    return line.fold("f", n=ra.count()).sink("o").plan()


FIELDS = (Field("symbol", String()), Field("at", Int64()), Field("lot", Int64()))


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ((*FIELDS, Field("venue", String(), optional=True)), None),
        (FIELDS[::-1], None),
        ((*FIELDS, Field("venue", String())), "the field 'venue' of source 'trades' is new and"),
        (FIELDS[:2], "the field 'lot' of source 'trades' is gone"),
        ((*FIELDS[:2], Field("lot", Float())), "'lot' of source 'trades' was Int64 and is Float"),
        ((*FIELDS[:2], Field("lot", Int64(), optional=True)), "'lot' of source 'trades' is option"),
    ],
)
def test_state_depends_on_which_records_the_source_refuses(
    fields: tuple[Field, ...], cause: str | None
) -> None:
    snapshot = Engine(trades(Schema("trade", FIELDS))).snapshot()
    plan = trades(Schema("trade", fields))
    assert plan.folds[0].node_key in snapshot.tables
    comparison = compare(plan, snapshot)
    assert bool(comparison.problems) == (cause is not None)
    assert (cause or "") in "".join(comparison.problems)
    if cause is None:
        assert adapt(snapshot, plan, comparison) is not None


def test_source_keeps_its_name_because_offsets_stand_under_it() -> None:
    schema = Schema("trade", FIELDS)
    snapshot = Engine(trades(schema)).snapshot()
    with pytest.raises(ChangedPlanError, match="'quotes' was called 'trades'"):
        decide(trades(schema, "quotes"), snapshot, ["f"])


def mapped(function) -> Plan:
    schema = Schema("trade", FIELDS)
    line = Pipeline("test").source("trades", schema, time="at")
    line = line.map("change", function, into=schema).partition("p", key="symbol")
    return line.fold("f", n=ra.count()).sink("o").plan()


def test_another_version_of_python_is_named_where_functions_are_involved() -> None:
    snapshot = Engine(mapped(lambda row: row)).snapshot()
    plan = mapped(lambda row: (row,)[0])
    here = compare(plan, snapshot).problems[0]
    assert "step 'change' before it changed" in here
    assert "Python" not in here
    old = replace(snapshot, notes={**snapshot.notes, "python": "3.9"})
    assert "written by Python 3.9, this is" in compare(plan, old).problems[0]
    assert "Python" not in problems(PLAIN, replace(PLAIN, filtered=2))
