"""State made by a user's function: its return values, and the resulting rows and digests."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import ripple.model.aggregate as ra
from ripple.core.errors import PlanError
from ripple.engine.machine import Engine
from ripple.engine.migration.adaptation import decide
from ripple.engine.migration.evolution import Verdict
from ripple.engine.migration.migration import MigrationError
from ripple.model.canonical import digest_of
from ripple.model.expression import col
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.plan import Plan
from ripple.model.window import Session, Tumbling
from tests.engine.machine.trades import Row, Trade
from tests.engine.migration.versions import fed, shown

Change = Callable[[pa.Table], pa.Table]

EVENTS: list[Row] = [
    ("ABC"[at % 3], 100 + at / 10, 1 + at % 4, 5 * at + (at * 7) % 9, "XNAS") for at in range(160)
]
CUT = 100


def beginning(window: Tumbling | Session | None = None) -> Pipeline:
    line = Pipeline("test").source("trades", Trade, out_of_order=10).partition("p", key="symbol")
    return line if window is None else line.window("w", window, lateness=40)


def old_state(line: Pipeline) -> Engine:
    return fed(Engine(line.plan()), EVENTS[:CUT])


def digest(engine: Engine, fold: str) -> str:
    return digest_of(engine.plan.fold(fold).node_key)


def went_on(engine: Engine, plan: Plan) -> Engine:
    """Return an engine of the plan, migrated from ``engine`` and fed the rest."""
    restoration = decide(plan, engine.snapshot())
    assert restoration.snapshot is not None
    restored = fed(Engine.restore(plan, restoration.snapshot), EVENTS)
    restored.check_invariants()
    return restored


def renamed(old: pa.Table) -> pa.Table:
    return old.rename_columns(
        [name.replace("n.count", "trades.count") for name in old.schema.names]
    )


def without_count(old: pa.Table) -> pa.Table:
    return old.drop_columns(["n.count"])


def test_renamed_aggregate_goes_on_as_if_it_had_always_had_that_name() -> None:
    old = old_state(beginning().fold("f", n=ra.count(), v=ra.sum("size")).sink("o"))
    line = beginning().fold("f", trades=ra.count(), v=ra.sum("size")).sink("o")
    plan = line.migrate("f", renamed, from_digest=digest(old, "f")).plan()
    assert plan.topology_hash == line.plan().topology_hash
    restored, fresh = went_on(old, plan), fed(Engine(plan), EVENTS)
    assert shown(restored) == shown(fresh)
    assert restored.digests == fresh.digests


def test_folds_above_a_migrated_one_are_computed_from_its_rows() -> None:
    def line(**aggregates: ra.Aggregate) -> Pipeline:
        below = beginning().fold("f", **aggregates).partition("q", key=())
        return below.fold("total", total=ra.sum("v")).sink("o").sink("rows", of="f")

    old = old_state(line(n=ra.count(), v=ra.sum("size")))
    new = line(trades=ra.count(), v=ra.sum("size"))
    plan = new.migrate("f", renamed, from_digest=old.plan.fold("f").node_key).plan()
    restored, fresh = went_on(old, plan), fed(Engine(plan), EVENTS)
    assert shown(restored) == shown(fresh)
    assert restored.digests == fresh.digests
    verdicts = [node.verdict for node in decide(plan, old.snapshot()).comparison.folds]
    assert verdicts == [Verdict.MIGRATE, Verdict.CHANGED]


def test_rows_that_ended_without_being_computed_stay_counted() -> None:
    def line(name: str, **counts: ra.Aggregate) -> Pipeline:
        (count,) = counts
        fold = beginning(Tumbling(50)).fold(name, **counts)
        return fold.derive("d", q=1 // (col(count) % 2)).sink("o")

    old = old_state(line("f", n=ra.count()))
    final = old.uncomputable["f"].final
    assert final > 1
    called_otherwise = line("g", n=ra.count()).plan()
    counted_otherwise = line("f", trades=ra.count())
    migrated = counted_otherwise.migrate("f", renamed, from_digest=digest(old, "f")).plan()
    for plan, name in ((called_otherwise, "g"), (migrated, "f")):
        restoration = decide(plan, old.snapshot())
        assert restoration.snapshot is not None
        assert Engine.restore(plan, restoration.snapshot).uncomputable[name].final == final


def test_key_of_another_type() -> None:
    start = Pipeline("test").source("trades", Trade, out_of_order=10)
    old = old_state(start.partition("p", key="size").fold("f", n=ra.count()).sink("o"))
    lengths = start.derive("d", big=col("size") > 2)
    new = lengths.partition("p", key="big").fold("f", n=ra.count()).sink("o")

    def by_size(table: pa.Table) -> pa.Table:
        big = pc.greater(table["size"], 2)
        grouped = table.append_column("big", big).group_by("big").aggregate([("n.count", "sum")])
        return grouped.rename_columns(
            [{"n.count_sum": "n.count"}.get(name, name) for name in grouped.column_names]
        )

    plan = new.migrate("f", by_size, from_digest=digest(old, "f")).plan()
    assert shown(went_on(old, plan)) == shown(fed(Engine(plan), EVENTS))


@pytest.mark.parametrize("window", [Tumbling(50), Session(3)], ids=["tumbling", "sessions"])
def test_rows_of_windows_that_are_over_stay_in_the_digest_as_they_were(
    window: Tumbling | Session,
) -> None:
    old = old_state(beginning(window).fold("f", n=ra.count(), v=ra.sum("size")).sink("o"))
    new = beginning(window).fold("f", v=ra.sum("size")).sink("o")
    plan = new.migrate("f", without_count, from_digest=digest(old, "f")).plan()
    was_freed = old.snapshot().digests["f"][1]
    assert was_freed != 0
    restoration = decide(plan, old.snapshot())
    assert restoration.snapshot is not None
    _, is_freed = restoration.snapshot.digests["f"]
    assert is_freed == was_freed
    assert restoration.kept_outputs == ()
    restored, fresh = went_on(old, plan), fed(Engine(plan), EVENTS)
    assert shown(restored) == shown(fresh)
    assert restored.counters == fresh.counters


def with_column(name: str, make: Callable[[pa.Table], pa.Array]) -> Change:
    def change(table: pa.Table) -> pa.Table:
        return table.set_column(table.schema.get_field_index(name), name, make(table))

    return change


def broken(table: pa.Table) -> pa.Table:
    raise KeyError("price")


def nulls(table: pa.Table, of: pa.DataType) -> pa.Array:
    return pa.nulls(table.num_rows, of)


def ends(_: pa.Table) -> pa.Table:
    raise SystemExit(3)


def no_text(rows: int) -> pa.Array:
    """Return what says that it is text and is none."""
    _, offsets, data = pa.array([b"\xff"] * rows).buffers()
    return pa.StringArray.from_buffers(rows, offsets, data)


WRONG: dict[str, tuple[Change, str]] = {
    "raises": (broken, "the function raised KeyError: 'price'"),
    "no table": (lambda table: table.to_pydict(), "must return a pyarrow.Table, not dict"),
    "column missing": (lambda t: t.drop_columns(["v.sum"]), "missing: v.sum; too many: none"),
    "column too many": (lambda t: t.append_column("x", t["n.count"]), "too many: x"),
    "column twice": (
        lambda t: t.append_column("v.sum", t["v.sum"]),
        "each once; missing: none; too many: v.sum",
    ),
    "ends": (ends, "the function raised SystemExit: 3"),
    "no text": (
        with_column("symbol", lambda t: no_text(len(t))),
        "the table is not valid: Column 0: In chunk 0: Invalid: Invalid UTF8",
    ),
    "type": (
        with_column("n.count", lambda t: t["n.count"].cast(pa.int32())),
        "column 'n.count' must be int64, not int32",
    ),
    "key twice": (lambda t: pa.concat_tables([t, t]), "must have one row, but"),
    "null in key": (
        with_column("symbol", lambda t: nulls(t, pa.string())),
        "column 'symbol' must have no nulls",
    ),
    "null in window": (
        with_column("window_end_ns", lambda t: nulls(t, pa.int64())),
        "column 'window_end_ns' must have no nulls",
    ),
    "null in count": (with_column("n.count", lambda t: nulls(t, pa.int64())), "nulls where none"),
    "null in sum": (
        with_column("v.sum", lambda t: nulls(t, pa.decimal128(38))),
        "column 'v.sum' has 3 nulls where 0 may be",
    ),
    "no digits": (
        with_column("p.sum_digits", lambda t: pa.array([b"\0" * 900] * len(t), pa.large_binary())),
        "no fold can have the state that it returned",
    ),
    "other window": (
        with_column("window_end_ns", lambda t: pc.add(t["window_end_ns"], 1)),
        "'window_end_ns' does not go with 'window_start_ns'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_function_that_does_not_return_a_state_of_the_fold_is_told_so(name: str) -> None:
    function, said = WRONG[name]
    aggregates = {"n": ra.count(), "v": ra.sum("size"), "p": ra.sum("price")}
    line = beginning(Tumbling(10_000)).fold("f", **aggregates)
    old = old_state(line.sink("o"))
    new = beginning(Tumbling(10_000)).filter("all", col("size") > 0).fold("f", **aggregates)
    plan = new.migrate("f", function, from_digest=digest(old, "f")).sink("o").plan()
    with pytest.raises(MigrationError, match=r"^migration of fold 'f': ") as raised:
        decide(plan, old.snapshot())
    assert said in str(raised.value)


def test_total_that_lacks_rows_of_the_fold_below_is_refused() -> None:
    def line(name: str) -> Pipeline:
        below = beginning(Tumbling(50)).fold("f", v=ra.sum("size")).partition("q", key="symbol")
        return below.fold("total", **{name: ra.sum("v")}).sink("o")

    old = old_state(line("was"))

    def change(table: pa.Table) -> pa.Table:
        names = [name.replace("was.", "now.") for name in table.column_names]
        return table.rename_columns(names)

    good = line("now").migrate("total", change, from_digest=digest(old, "total")).plan()
    restored, fresh = went_on(old, good), fed(Engine(good), EVENTS)
    assert shown(restored) == shown(fresh)
    assert restored.digests == fresh.digests

    def lost(table: pa.Table) -> pa.Table:
        return change(table).slice(1)

    bad = line("now").migrate("total", lost, from_digest=digest(old, "total")).plan()
    with pytest.raises(MigrationError, match="fewer members than there are rows below"):
        decide(bad, old.snapshot())


@pytest.mark.parametrize(
    ("fold", "from_digest", "said"),
    [
        ("g", "0" * 32, "there is no such fold before this: the folds are f"),
        ("f", "0" * 31, "32 hexadecimal digits"),
        ("f", None, "32 hexadecimal digits"),
    ],
)
def test_migration_that_cannot_be_meant_is_refused(fold, from_digest, said) -> None:
    with pytest.raises(PlanError, match=f"migrate '{fold}': .*{said}"):
        beginning().fold("f", n=ra.count()).migrate(fold, renamed, from_digest=from_digest)


def test_second_migration_from_one_digest_is_refused() -> None:
    line = beginning().fold("f", n=ra.count()).migrate("f", renamed, from_digest="a" * 32)
    line = line.migrate("f", renamed, from_digest="b" * 32)
    with pytest.raises(PlanError, match=r"there is a migration from a+ already"):
        line.migrate("f", renamed, from_digest="x/y#" + "a" * 32)


def test_migration_of_a_join_is_refused_since_its_rows_follow_from_its_sides() -> None:
    line = beginning().fold("f", n=ra.count())
    trades = Pipeline("test").source("trades", Trade)
    eager = trades.join_asof("j", trades, on="symbol", tolerance="1s", emit="eager")
    for joined, name in ((line.join("j", line, on="symbol"), "j"), (eager, "j.rows")):
        with pytest.raises(PlanError, match=f"migrate '{name}': a join has no state of its own"):
            joined.migrate(name, renamed, from_digest="0" * 32)
