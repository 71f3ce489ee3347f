"""State of a scan made from a former one: fields by their names, or by a user's function."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import ripple as rp
from ripple.core.errors import PlanError
from ripple.engine.machine import Engine
from ripple.engine.migration.adaptation import ChangedPlanError, decide
from ripple.engine.migration.evolution import Verdict, compare
from ripple.engine.migration.migration import MigrationError
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.plan import Plan
from ripple.model.schema.columns import records_of
from tests.engine.machine.test_scan import FIELDS, rows_of, start

ROWS = rows_of(*((symbol, 1 + at % 4, 10 * at) for at in range(12) for symbol in "AB"))
CUT = 13


@dataclass
class Before:
    count: int = 0
    total: int = 0
    gone: str = "x"


@dataclass
class After:
    total: float = 0.0
    count: int = 0
    most: int = -1
    ends: rp.Timestamp | None = None


@dataclass
class Listed(After):
    sizes: list[int] = field(default_factory=list)


@dataclass
class Dated:
    at: dt.datetime | None = None


@dataclass
class Made:
    count: int
    total: float


def before(state: Before, row: Any) -> Made:
    state.count += 1
    state.total += row.size
    return Made(state.count, float(state.total))


def after(state: After, row: Any) -> Made:
    state.count += 1
    state.total += row.size
    state.most = max(state.most, row.size)
    return Made(state.count, state.total)


def line(state: type, step: Any, base: Pipeline | None = None, **more: Any) -> Pipeline:
    said = {"show": "last", "lateness": 20} | more
    return (base or start()).scan("s", "symbol", state=state, step=step, into=Made, **said)


def fed(engine: Engine, rows: list[dict[str, Any]] = ROWS) -> Engine:
    done = engine.cut["ticks"]
    for offset in range(done, len(rows)):
        engine.apply("ticks", records_of([rows[offset]], FIELDS), offset + 1)
        engine.stabilize()
    return engine


def of(engine: Engine) -> str:
    return engine.plan.scans[0].node_key


def went_on(old: Engine, plan: Plan) -> Engine:
    restoration = decide(plan, old.snapshot())
    assert restoration.snapshot is not None
    assert Verdict.MIGRATE in {one.verdict for one in restoration.comparison.nodes}
    engine = fed(Engine.restore(plan, restoration.snapshot))
    engine.check_invariants()
    return engine


def rows_in(engine: Engine) -> list[Any]:
    return sorted(engine.table("out").to_pylist(), key=repr)


def test_a_field_may_be_added_removed_and_widened() -> None:
    old = fed(Engine(line(Before, before).sink("out").plan()), ROWS[:CUT])
    plan = line(After, after).migrate("s", from_digest=of(old)).sink("out").plan()
    fresh = fed(Engine(plan))
    assert rows_in(went_on(old, plan)) == rows_in(fresh)


def test_a_function_makes_columns_and_the_rest_is_by_name() -> None:
    def halved(states: pa.Table) -> pa.Table:
        seen.append(states.column_names)
        total = pc.divide(states.column("ripple.state.total").cast(pa.float64()), 2.0)
        made = states.drop_columns(["ripple.state.gone"])
        at = made.column_names.index("ripple.state.total")
        return made.set_column(at, "ripple.state.total", total)

    seen: list[list[str]] = []
    old = fed(Engine(line(Before, before, settled=True, show="rows").sink("old").plan()), ROWS[:20])
    new = line(After, after, settled=True, show="rows", timers={"ends": over})
    plan = new.migrate("s", halved, from_digest=of(old)).sink("new").plan()
    found = decide(plan, old.snapshot())
    assert [one.verdict for one in found.comparison.nodes] == [
        Verdict.KEEP,
        Verdict.MIGRATE,
        Verdict.NEW,
        Verdict.DROP,
    ]
    assert found.snapshot is not None
    engine = Engine.restore(plan, found.snapshot)
    engine.apply("ticks", records_of(ROWS[20:], FIELDS), len(ROWS))
    rows = engine.stabilize().outputs["new"].to_pylist()
    # Six rows of each key were final.
    assert [(row["symbol"], row["count"]) for row in rows[:2]] == [("A", 7), ("B", 7)]
    assert rows[0]["total"] == sum(row["size"] for row in ROWS[:12:2]) / 2 + ROWS[12]["size"]
    assert seen[0] == [
        "symbol",
        "ripple.time",
        *(f"ripple.state.{x}" for x in ("count", "total", "gone")),
    ]


def over(state: After, at: int) -> None:
    """Do nothing at the end."""


def refused(new: Pipeline, old: Engine, function: Callable[[pa.Table], Any] | None = None) -> str:
    plan = new.migrate("s", function, from_digest=of(old)).sink("out").plan()
    with pytest.raises(MigrationError) as error:
        decide(plan, old.snapshot())
    return str(error.value)


def test_what_does_not_fit_is_named() -> None:
    @dataclass
    class Named:
        count: str = ""
        total: float = 0.0

    @dataclass
    class Whole:
        count: int = 0
        total: int | None = 0

    rows = [{**row, "size": 2**53 + 1} for row in ROWS[:CUT]]
    old = fed(Engine(line(Before, before).sink("out").plan()), rows)
    assert refused(line(Named, after), old) == (
        "migration of scan 's': column 'ripple.state.count' must be string, not int64: cast it in "
        "a function"
    )
    assert "column 'ripple.state.total'" in refused(line(After, after), old)
    whole = line(Whole, after)
    assert "must return a pyarrow.Table, not NoneType" in refused(whole, old, lambda _: None)
    unknown = refused(whole, old, lambda states: states)
    assert unknown.endswith("the state has no column 'ripple.state.gone': leave it out")
    two = refused(
        whole,
        old,
        lambda states: pa.concat_tables([states, states]).drop_columns(["ripple.state.gone"]),
    )
    assert two.endswith("each key (symbol) must have one row")
    said: Any = {"settled": True, "timers": {"ends": over}}
    timed = start().scan("s", "symbol", state=After, step=after, into=Made, lateness=20, **said)
    never = pa.array([-(2**63)] * 2)
    far = timed.migrate(
        "s",
        lambda states: states.select(["symbol", "ripple.time"]).append_column(
            "ripple.state.ends", never
        ),
        from_digest=of(old),
    )
    with pytest.raises(MigrationError, match=r"ends' has a time at which no event is: write null"):
        decide(far.sink("other").plan(), old.snapshot())
    other = line(After, after, start().derive("d", more=rp.col("size")))
    assert "rows that are not final yet have another form" in refused(other, old)
    with pytest.raises(PlanError, match="the state's field 'at' is datetime"):
        line(Dated, after).migrate("s", from_digest=of(old))
    with pytest.raises(PlanError, match=r"its rows follow from the state of a scan: migrate 's'"):
        whole.migrate("s.last", from_digest=of(old))


def test_a_list_may_be_added_where_there_are_no_states_yet() -> None:
    old = Engine(line(Before, before).sink("out").plan())
    plan = line(Listed, after).migrate("s", from_digest=of(old)).sink("out").plan()
    assert rows_in(fed(went_on(old, plan))) == rows_in(fed(Engine(plan)))


def test_without_a_migration_it_is_refused_and_named() -> None:
    old = fed(Engine(line(Before, before).sink("out").plan()), ROWS[:CUT])
    plan = line(After, after).sink("out").plan()
    with pytest.raises(ChangedPlanError) as error:
        decide(plan, old.snapshot())
    digest = of(old).rpartition("#")[2]
    assert f"or make its state from the old one with .migrate('s', from_digest='{digest}')" in str(
        error.value
    )
    both = line(After, after).migrate("s", from_digest=of(old)).sink("out").plan()
    rebuilt = compare(both, old.snapshot(), ["s"])
    assert rebuilt.rebuilds
    assert Verdict.MIGRATE not in {one.verdict for one in rebuilt.nodes}


def test_a_fold_of_the_last_rows_is_computed_from_them_and_null_keys_stay_refused() -> None:
    def sized(state: type, step: Any) -> Pipeline:
        return line(state, step).partition("by", key="count").fold("n", n=rp.count())

    rows = [{**ROWS[0], "symbol": None}, *ROWS]
    old = fed(Engine(sized(Before, before).sink("out").plan()), rows[:CUT])
    plan = sized(After, after).migrate("s", from_digest=of(old)).sink("out").plan()
    restoration = decide(plan, old.snapshot())
    assert restoration.snapshot is not None
    engine = fed(Engine.restore(plan, restoration.snapshot), rows)
    assert rows_in(engine) == rows_in(fed(Engine(plan), rows))
    assert engine.counters.dead_lettered == 1
