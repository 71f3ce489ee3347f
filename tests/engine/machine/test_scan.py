"""A state by key and a function of it and each row: against the reference, and other readings."""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field
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
from ripple.model.pipeline.division import need_one_division
from ripple.model.schema.columns import records_of
from ripple.testing import Divergence, check_pipeline, crash_test
from tests.engine.machine.finals import bars
from tests.engine.machine.interleaved import read_mixed
from tests.engine.machine.stream_ways import ended, shown, strict
from tests.engine.machine.ticks import Tick, of_two_inputs, ticks
from tests.examples import EXAMPLES, SAMPLED, SCATTERED, THINNED

SIZES = (1, 7, 1000)
FIELDS = rp.schema_of(Tick).fields


@dataclass
class Run:
    """The state of a symbol."""

    count: int = 0
    total: int = 0
    last: float | None = None
    venues: str = ""
    is_odd: bool = False
    mean: float = 0.0

    def grow(self, size: int) -> None:
        self.count += 1
        self.total += size
        self.is_odd = not self.is_odd


@dataclass
class Seen:
    """A row of the result."""

    number: int
    size: int
    before: float | None
    venues: str


def step(state: Run, tick: Tick) -> Seen | None:
    """Change the state, then fail for some rows, and make no row of others."""
    before, state.last = state.last, tick.price
    state.grow(tick.size)
    state.venues = (tick.venue or "-") + state.venues[:3]
    state.mean = state.mean + (tick.size - state.mean) / 4
    if tick.size == -2:
        raise ValueError(f"number {state.count} is refused")
    if tick.size == 7:
        state.total = 2**63
    if tick.size == 3 and state.is_odd:
        return None
    return Seen(state.count, tick.size, before, state.venues)


def keyless(state: Run, tick: Tick) -> dict[str, Any]:
    state.count += 1
    return {"number": state.count, "size": tick.size, "before": tick.price, "venues": ""}


def start(source: str = "ticks", out_of_order: int = 10) -> Pipeline:
    return Pipeline("test").source(source, Tick, out_of_order=out_of_order, reject_future=100_000)


def scanned(
    base: Pipeline, name: str = "scan", key: Any = "symbol", function: Any = step, **more: Any
) -> Pipeline:
    said = {"settled": True, "lateness": 20} | more
    return base.scan(name, key, state=Run, step=function, into=Seen, **said)


# Ways from a scan's rows to sinks, each with names of its own.
def running(rows: Pipeline) -> Pipeline:
    fold = rows.partition("g2p", key="symbol").fold(
        "counted", n=ra.count(), first=ra.first("number"), last=ra.last("venues")
    )
    return fold.sink("counted-out")


def windowed(rows: Pipeline) -> Pipeline:
    keyed = rows.partition("g3p", key="size").window("w3", rp.Session(60))
    return keyed.fold("gw", n=ra.count(), last=ra.last("number")).sink("w-out")


@dataclass
class Count:
    n: int = 0


@dataclass
class Counted:
    size: int
    n: int


def counting(state: Count, row: Any) -> Counted:
    state.n += row.number
    return Counted(row.size, state.n)


def again(rows: Pipeline) -> Pipeline:
    """Scan the rows by another key."""
    more = rows.scan("more", "size", state=Count, step=counting, into=Counted, settled=True)
    return more.sink("more-out")


WAYS = [shown, strict, running, windowed, again]
chosen = st.lists(st.sampled_from(WAYS), min_size=1, unique=True)
spans = st.sampled_from([None, 3, 40, 10**6])


@settings(max_examples=12 * EXAMPLES // SAMPLED)
@given(
    ways=chosen,
    ttl=spans,
    lateness=st.sampled_from([0, 20, 200]),
    happened=ticks(extreme=True),
    restart=st.integers(0, 45),
)
def test_a_scan_equals_its_evaluation_from_scratch(
    ways: list[Any], ttl: int | None, lateness: int, happened: Any, restart: int
) -> None:
    base = start()
    pipeline = ended(scanned(base, lateness=lateness, ttl=ttl), ways, base)
    check_pipeline(pipeline, happened, SIZES, restarts=[min(restart, len(happened))])


@settings(max_examples=6 * EXAMPLES // THINNED)
@given(
    ways=chosen,
    ttl=spans,
    happened=of_two_inputs(),
)
def test_a_scan_of_several_inputs_with_markers(
    ways: list[Any], ttl: int | None, happened: tuple[list[Any], int]
) -> None:
    mixed, at = happened
    base = start()
    pipeline = ended(scanned(base, ttl=ttl), ways, base)
    check_pipeline(pipeline, mixed, SIZES, inputs=["a", "b"], restarts=[at])


def several(ttl: int | None) -> Pipeline:
    """Return a pipeline that scans rows of two sources, together and alone."""
    pipeline = Pipeline("test")
    one = pipeline.source("ticks", Tick, out_of_order=10)
    other = pipeline.source("more", Tick, out_of_order=30)
    both = scanned(rp.union("both", one, other.filter("k", rp.col("size") > 0)), ttl=ttl)
    mine = scanned(one, "mine", ["size", "symbol"], keyless, ttl=ttl)
    return both.sink("out").also(mine.sink("mine-out")).also(running(both))


@settings(max_examples=8 * EXAMPLES // SAMPLED)
@given(data=st.data(), ttl=spans, happened=ticks(), restart=st.integers(0, 45))
def test_a_scan_of_several_sources(data: Any, ttl: int | None, happened: Any, restart: int) -> None:
    lanes: dict[str, list[Any]] = {"ticks": [], "more": []}
    rows = [(data.draw(st.sampled_from(["ticks", "more"])), event) for event in happened]
    for source, event in rows:
        lanes[source].append(event)
    check_pipeline(several(ttl), rows, SIZES, restarts=[min(restart, len(rows))])
    one, other = (read_mixed(several(ttl), lanes, data.draw(st.integers())) for _ in range(2))
    assert one == other


# Ways from a table of a scan's rows to sinks.
def totals(rows: Pipeline) -> Pipeline:
    keyed = rows.partition("g4p", key="symbol")
    fold = keyed.fold("totals", n=ra.count(), most=ra.max("number"), size=ra.sum("size"))
    return fold.sink("totals-out")


def table(rows: Pipeline) -> Pipeline:
    """Show rows after steps, of which one fails."""
    steps = rows.filter("f5", rp.col("size") > 0).derive("d5", part=10 // (rp.col("size") - 3))
    return steps.sink("out")


@settings(max_examples=12 * EXAMPLES // SAMPLED)
@given(
    way=st.sampled_from([shown, totals, table]),
    ttl=spans,
    lateness=st.sampled_from([0, 20, 200]),
    happened=ticks(extreme=True),
    restart=st.integers(0, 45),
)
def test_rows_at_once_equal_their_evaluation_from_scratch(
    way: Any, ttl: int | None, lateness: int, happened: Any, restart: int
) -> None:
    base = start()
    rows = scanned(base, settled=False, lateness=lateness, ttl=ttl)
    pipeline = ended(rows, [way], base)
    check_pipeline(pipeline, happened, SIZES, restarts=[min(restart, len(happened))])


@settings(max_examples=6 * EXAMPLES // SAMPLED)
@given(data=st.data(), ttl=spans, happened=ticks(), restart=st.integers(0, 45))
def test_rows_at_once_of_several_sources(
    data: Any, ttl: int | None, happened: Any, restart: int
) -> None:
    pipeline = Pipeline("test")
    one = pipeline.source("ticks", Tick, out_of_order=10)
    other = pipeline.source("more", Tick, out_of_order=30)
    rows = scanned(rp.union("both", one, other), settled=False, ttl=ttl)
    whole = rows.sink("out").also(totals(rows))
    events = [(data.draw(st.sampled_from(["ticks", "more"])), event) for event in happened]
    check_pipeline(whole, events, SIZES, restarts=[min(restart, len(events))])


def newest(rows: Pipeline) -> Pipeline:
    """Join the last rows of symbols with a fold of themselves."""
    of_size = rows.partition("g6p", key="size").fold("sized", most=ra.max("number"))
    joined = rows.join("both", of_size.derive("d6", s=rp.col("size")), on="size", how="left")
    return joined.sink("both-out")


@settings(max_examples=12 * EXAMPLES // SAMPLED)
@given(
    way=st.sampled_from([shown, totals, table, newest]),
    ttl=spans,
    said=st.fixed_dictionaries(
        {"lateness": st.sampled_from([0, 20, 200]), "version_of": st.sampled_from([None, "venue"])}
    ),
    happened=ticks(extreme=True),
    restart=st.integers(0, 45),
)
def test_last_rows_equal_their_evaluation_from_scratch(
    way: Any, ttl: int | None, said: Any, happened: Any, restart: int
) -> None:
    base = start()
    rows = scanned(base, settled=False, show="last", ttl=ttl, **said)
    pipeline = ended(rows, [way], base)
    check_pipeline(pipeline, happened, SIZES, restarts=[min(restart, len(happened))])


def test_a_late_row_corrects_those_behind_it_until_they_are_final() -> None:
    engine = Engine(scanned(start(), settled=False, lateness=5).sink("out").plan())

    def changes(*rows: tuple[str, int, int]) -> list[tuple[int, int, int]]:
        batch = records_of(rows_of(*rows), FIELDS)
        engine.apply("ticks", batch, engine.cut["ticks"] + len(rows))
        found = engine.stabilize().outputs["out"].to_pylist()
        return sorted((row["op"], row["row_offset"], row["number"] or 0) for row in found)

    first = changes(("A", 1, 10), ("A", 2, 20))
    assert [one[1:] for one in first] == [(0, 1), (1, 2)]
    assert [one[1:] for one in changes(("A", 5, 15))] == [(1, 3), (2, 2)]
    assert [one[1:] for one in changes(("B", 1, 60))] == [(3, 1)]
    assert changes(("A", 1, 12)) == []  # too late
    assert engine.counters.very_late == 1
    assert [one[1:] for one in changes(("A", 1, 61))] == [(5, 4)]


def test_a_late_row_corrects_the_last_row_of_its_key_and_a_failing_one_counts_once_final() -> None:
    rows = scanned(start(), settled=False, show="last", lateness=5, ttl=100)
    engine = Engine(rows.sink("out").plan())

    def changes(*rows: tuple[str, int, int]) -> list[tuple[str, int | None]]:
        batch = records_of(rows_of(*rows), FIELDS)
        engine.apply("ticks", batch, engine.cut["ticks"] + len(rows))
        found = engine.stabilize().outputs["out"].to_pylist()
        return sorted((row["symbol"], row["number"]) for row in found)

    assert changes(("A", 1, 10), ("A", 2, 20), ("B", 1, 20)) == [("A", 2), ("B", 1)]
    assert changes(("A", 5, 15)) == [("A", 3)]
    assert changes(("A", -2, 25)) == []  # the step fails
    assert "scan" not in engine.uncomputable
    assert changes(("A", 1, 60)) == [("A", 4)]
    (lost,) = engine.uncomputable["scan"].rows
    assert (lost.key, lost.reason) == (("A", 25), "ValueError: number 4 is refused")
    assert changes(("C", 1, 135)) == [("B", None), ("C", 1)]  # the state of B has ended


def test_a_table_calls_the_step_once_for_each_row_that_comes_in_order() -> None:
    calls = []

    def counted(state: Run, tick: Tick) -> Seen | None:
        calls.append(tick.size)
        return step(state, tick)

    rows = scanned(start(), function=counted, settled=False, lateness=0)
    engine = Engine(rows.sink("out").plan())
    for size in range(1, 6):
        read(engine, ("A", size, 100 * size))
    engine.close()
    engine.stabilize()
    assert calls == [1, 2, 3, 4, 5]


def rows_of(*rows: tuple[str, int, int]) -> list[dict[str, Any]]:
    return [
        {"symbol": symbol, "price": 1.0, "size": size, "venue": None, "timestamp_ns": at}
        for symbol, size, at in rows
    ]


def read(engine: Engine, *rows: tuple[str, int, int]) -> list[tuple[str, int, int]]:
    batch = records_of(rows_of(*rows), FIELDS)
    engine.apply("ticks", batch, engine.cut["ticks"] + len(rows))
    found = engine.stabilize().outputs["out"].to_pylist()
    return [(row["symbol"], row["number"], row["size"]) for row in found]


def test_late_rows_are_applied_where_they_belong_and_none_twice() -> None:
    engine = Engine(scanned(start(), lateness=5).sink("out").plan())

    # The watermark is 17, and below 12 no row on time may come.
    assert read(engine, ("A", 5, 10), ("A", 2, 20), ("B", 1, 12), ("A", 1, 27)) == [("A", 1, 5)]
    assert read(engine, ("A", 9, 15), ("C", 1, 60)) == [
        ("B", 1, 1),
        ("A", 2, 9),
        ("A", 3, 2),
        ("A", 4, 1),
    ]
    assert read(engine, ("A", 1, 44)) == []
    assert engine.counters.very_late == 1


def test_a_step_that_fails_leaves_the_state_and_its_row_is_named() -> None:
    engine = Engine(scanned(start(), lateness=0).sink("out").plan())
    read(engine, ("A", 1, 10), ("A", -2, 20), ("A", 7, 21), ("A", 1, 30), ("B", 1, 100))

    assert engine.stabilize().outputs["out"].num_rows == 0
    lost = engine.uncomputable["scan"]
    assert (lost.count, [row.key for row in lost.rows]) == (2, [("A", 20), ("A", 21)])
    assert lost.rows[0].reason == "ValueError: number 2 is refused"
    assert "the state's field 'total'" in lost.rows[1].reason
    (states,) = (table for name, table in engine.snapshot().tables.items() if "right" in name)
    assert states.column("ripple.state.count").to_pylist() == [2]


def failing(change: Any) -> str:
    """Return the reason of a row at which a step does something that cannot be stored."""

    def odd(state: Run, tick: Tick) -> Any:
        return change(state) or keyless(state, tick)

    engine = Engine(scanned(start(), function=odd, lateness=0).sink("out").plan())
    read(engine, ("A", 1, 10), ("A", 1, 100))
    return engine.uncomputable["scan"].rows[0].reason


def test_nothing_undeclared_goes_from_row_to_row() -> None:
    def swaps(state: Run, tick: Tick) -> Any:
        if tick.size == 1:
            del state.count
            state.more = 1  # type: ignore[attr-defined]
        return Seen(len(vars(state)), tick.size, None, "")

    engine = Engine(scanned(start(), function=swaps, lateness=0).sink("out").plan())
    found = read(engine, ("A", 1, 10), ("A", 2, 20), ("A", 2, 100))
    assert found == [("A", len(vars(Run())), 2)]
    assert engine.uncomputable["scan"].count == 1


def test_what_cannot_be_stored_is_told() -> None:
    def sets(name: str, value: Any) -> Any:
        return lambda state: setattr(state, name, value)

    assert failing(sets("more", 1)) == (
        "TypeError: the step sets 'more', which the state does not declare"
    )
    assert failing(lambda state: vars(state).clear()) == (
        "TypeError: the step deletes 'total' of the state"
    )
    assert "'mean' is None, and not declared so" in failing(sets("mean", None))
    assert "'venues'" in failing(sets("venues", 3))
    assert "has no form in UTF-8" in failing(sets("venues", "\ud800"))
    assert "must return a dict or an object with number, size" in failing(lambda _: 3)
    assert "returned a dict without 'size'" in failing(lambda _: {"number": 3})
    assert "the field 'number'" in failing(
        lambda _: {"number": "x", "size": 1, "before": None, "venues": ""}
    )


def test_values_are_stored_as_a_checkpoint_gives_them_back() -> None:
    import numpy as np

    def odd(state: Run, tick: Tick) -> dict[str, Any]:
        kinds = f"{type(state.mean).__name__} {type(state.count).__name__}"
        state.mean, state.count = 2, np.int64(3)  # type: ignore[assignment]
        return {"number": state.count, "size": tick.size, "before": state.mean, "venues": kinds}

    engine = Engine(scanned(start(), function=odd, lateness=0).sink("out").plan())
    batch = records_of(rows_of(("A", 1, 1), ("A", 1, 2), ("A", 1, 50)), FIELDS)
    engine.apply("ticks", batch, 3)
    assert engine.stabilize().outputs["out"].column("venues").to_pylist() == ["float int"] * 2


@rp.record
class Frozen:
    """A state may be a record of Ripple, which is frozen elsewhere."""

    n: int = 0


def test_a_state_may_be_a_frozen_record() -> None:
    def steps(state: Any, row: Any) -> dict[str, int]:
        state.n += 1
        return {"number": state.n}

    plan = start().scan(
        "s", "symbol", state=Frozen, step=steps, into=Number, settled=True, lateness=0
    )
    engine = Engine(plan.sink("out").plan())
    engine.apply("ticks", records_of(rows_of(("A", 1, 1), ("A", 1, 2), ("A", 1, 50)), FIELDS), 3)
    assert engine.stabilize().outputs["out"].to_pylist() == [
        {"symbol": "A", "number": 1},
        {"symbol": "A", "number": 2},
    ]


@dataclass(slots=True)
class Slotted:
    """A state without a dict; a text beyond ASCII is stored as it is."""

    n: int = 0
    seen: str | None = None


def test_a_state_may_have_slots() -> None:
    def steps(state: Slotted, row: Tick) -> dict[str, Any]:
        state.n += 1
        before, state.seen = state.seen, f"{row.symbol} é"
        return {"number": state.n, "size": row.size, "before": None, "venues": before or ""}

    plan = start().scan("s", "symbol", state=Slotted, step=steps, into=Seen)
    engine = Engine(plan.sink("out").plan())
    engine.apply("ticks", records_of(rows_of(("A", 1, 1), ("A", 1, 2)), FIELDS), 2)
    found = engine.stabilize().outputs["out"]
    assert sorted(found.column("venues").to_pylist()) == ["", "A é"]


@rp.record
class Number:
    number: int


@dataclass
class Recent:
    """A state with lists, which the step changes in place before it fails."""

    sizes: list[int] = field(default_factory=list)
    prices: list[Annotated[decimal.Decimal, rp.Decimal(12, 2)]] = field(default_factory=list)


def remembers(state: Recent, tick: Tick) -> dict[str, Any] | None:
    state.sizes.append(tick.size)
    state.prices.append(decimal.Decimal(tick.size) / 4)
    if tick.size == 7:
        raise ValueError("refused")
    del state.sizes[:-3], state.prices[:-3]
    if tick.size == 3:
        state.sizes *= 400
    return {"number": sum(state.sizes), "size": tick.size, "before": None,
            "venues": str(sum(state.prices))}  # fmt: skip


@settings(max_examples=6 * EXAMPLES // SAMPLED)
@given(
    said=st.sampled_from([{"settled": True}, {"show": "rows"}, {"show": "last"}]),
    ttl=spans,
    happened=ticks(),
    restart=st.integers(0, 45),
)
def test_lists_of_a_state(said: Any, ttl: int | None, happened: Any, restart: int) -> None:
    rows = start().scan("s", "symbol", state=Recent, step=remembers, into=Seen, ttl=ttl,
        lateness=20, **said)  # fmt: skip
    check_pipeline(rows.sink("out"), happened, SIZES, restarts=[min(restart, len(happened))])


def test_lists_of_a_state_are_bounded_and_unchanged_by_a_failure() -> None:
    plan = start().scan(
        "s", "symbol", state=Recent, step=remembers, into=Seen, settled=True, lateness=0
    )
    engine = Engine(plan.sink("out").plan())
    sizes = ((1, 1), (3, 2), (7, 3), (2, 4), (3, 5), (1, 60))
    found = read(engine, *(("A", size, at) for size, at in sizes))
    reasons = [row.reason for row in engine.uncomputable["s"].rows]
    assert reasons[0] == "ValueError: refused"
    assert "'sizes' has 1200 items: a state keeps up to 1000 of a list" in reasons[1]
    assert found == [("A", 1, 1), ("A", 4 * 400, 3), ("A", 6, 2)]
    (states,) = (table for name, table in engine.snapshot().tables.items() if "right" in name)
    assert states.column("ripple.state.sizes").to_pylist() == [[1, 3, 2]]


@dataclass
class Counts:
    """A state with a map, which the step changes in place before it fails."""

    of: dict[str, int] = field(default_factory=dict)


def counts(state: Counts, tick: Tick) -> dict[str, Any]:
    state.of[str(tick.size)] = state.of.get(str(tick.size), 0) + 1
    if tick.size == 7:
        raise ValueError("refused")
    if tick.size == 3:
        state.of |= {str(one): 0 for one in range(1000, 2200)}
    return {"number": sum(state.of.values()), "size": tick.size, "before": None, "venues": ""}


def test_maps_of_a_state_are_of_one_key_bounded_and_unchanged_by_a_failure() -> None:
    plan = start().scan("s", "symbol", state=Counts, step=counts, into=Seen, settled=True)
    happened = rows_of(*(("AB"[at % 2], size, at) for at, size in enumerate((1, 1, 7, 7, 3, 2, 2))))
    check_pipeline(plan.sink("out"), happened, SIZES, restarts=[3])
    with pytest.warns(rp.LostRecordsWarning):
        result = rp.collect(plan.sink("out"), happened)
    assert [(row["symbol"], row["number"]) for row in result.rows()] == [
        ("A", 1), ("B", 1), ("B", 2), ("A", 2)]  # fmt: skip
    reasons = [row.reason for row in result.report.uncomputable["s"].rows]
    assert (
        sum(one.endswith("has 1202 items: a state keeps up to 1000 of a map") for one in reasons)
        == 1
    )


@rp.record
class Tagged:
    symbol: str
    tags: list[str]
    labels: dict[str, str]
    at: rp.Timestamp


def tagged(state: Run, row: Tagged) -> dict[str, Any]:
    state.count += 1
    row.tags.append("seen")
    row.labels["n"] = row.labels.get("n", "") + "x"
    return {"number": len(row.tags), "size": len(row.labels["n"]), "before": None, "venues": ""}


def test_lists_and_maps_of_a_row_are_as_read_when_it_is_applied_again() -> None:
    plan = rp.Pipeline("again").source("rows", Tagged)
    plan = plan.scan("s", "symbol", state=Run, step=tagged, into=Seen).sink("out")
    rows = [{"symbol": "A", "tags": ["a"], "labels": {}, "at": at} for at in (2, 3, 1)]
    result = rp.collect(plan, rows, batch_rows=1)
    assert [(row["number"], row["size"]) for row in result.rows()] == [(2, 1)] * 3


def test_states_end_and_are_freed() -> None:
    engine = Engine(scanned(start(), lateness=0, ttl=100).sink("out").plan())
    assert read(engine, ("A", 1, 10), ("A", 1, 109), ("A", 1, 209), ("A", 1, 300)) == [
        ("A", 1, 1),
        ("A", 2, 1),
        ("A", 1, 1),  # exactly at its end
    ]
    held = []
    for turn in range(2, 40):
        read(engine, *((f"key-{turn}-{at}", 1, turn * 200 + at) for at in range(200)))
        states = [t for name, t in engine.snapshot().tables.items() if "right" in name]
        held.append((states[0].num_rows, engine.nbytes))
    assert held[5][0] == held[-1][0] < 120
    assert max(size for _, size in held[-10:]) <= max(size for _, size in held[:20])


def test_a_step_that_keeps_something_elsewhere_is_found_out() -> None:
    calls: list[int] = []

    def counted(state: Run, tick: Tick) -> dict[str, Any]:
        calls.append(tick.size)
        return {"number": len(calls), "size": tick.size, "before": None, "venues": ""}

    pipeline = scanned(start(), function=counted, lateness=0).sink("out")
    with pytest.raises(Divergence, match="out"):
        check_pipeline(pipeline, rows_of(("A", 1, 1), ("A", 2, 2), ("A", 3, 99)), SIZES)


def refused(make: Any) -> str:
    with pytest.raises(PlanError) as raised:
        make()
    return str(raised.value)


@dataclass
class NoDefault:
    n: int


@dataclass
class Listed:
    of: list[list[int]] = field(default_factory=list)


@dataclass
class Wrong:
    n: int = "x"  # type: ignore[assignment]


@dataclass
class OtherKey:
    symbol: int
    number: int


def test_bad_uses_are_told_what_to_write() -> None:
    base = start()

    def made(**more: Any) -> Any:
        said: dict[str, Any] = {"state": Run, "step": step, "into": Seen, "settled": True}
        key = more.pop("key", "symbol")
        return lambda: base.scan("s", key, **(said | more))

    assert "key is missing: name the field, or fields" in refused(made(key=()))
    assert "may be null" in refused(made(key="venue"))
    assert "step takes a function of a state and a row, not 3" in refused(made(step=3))
    assert "state takes a dataclass in which every field has a default" in refused(made(state=3))
    assert "NoDefault.n has no default, and the first row" in refused(made(state=NoDefault))
    assert "a state holds numbers, texts, booleans, dates" in refused(made(state=Listed))
    assert "the default of Wrong.n" in refused(made(state=Wrong))
    assert "'symbol' is the key, which is string and not int" in refused(made(into=OtherKey))
    assert "ttl is 0" in refused(made(ttl=0))
    assert "lateness" in refused(made(lateness=-1))
    assert "show is 'first': it must be 'rows'" in refused(made(show="first"))
    assert "settled=True makes a stream: leave one of them out" in refused(made(show="last"))
    last = scanned(base, settled=False, show="last")
    assert "say settled=True there in place of show='last'" in refused(
        lambda: scanned(last, "more")
    )
    keyed = base.partition("p", key="symbol")
    assert "put it before .partition(...)" in refused(lambda: scanned(keyed))
    assert "no order in time" in refused(lambda: scanned(keyed.fold("f", n=ra.count())))
    final = bars(base, rp.Tumbling(50), None, 20).finals("final")
    book = rp.OrderBook(side="symbol", begins="empty")
    assert "these are final rows of 'final'" in refused(
        lambda: final.scan("book", key="symbol", step=book, settled=True)
    )
    rows = scanned(base)
    assert "the rows of 'scan' are never late" in refused(lambda: scanned(rows, "more"))


def test_a_cluster_divides_a_scan_by_its_key() -> None:
    plan = scanned(start()).sink("out").plan()
    need_one_division(plan, "a cluster", {"ticks": ("symbol",)})
    with pytest.raises(PlanError, match="divided by size, and scan needs all of one symbol"):
        need_one_division(plan, "a cluster", {"ticks": ("size",)})


def test_states_are_kept_or_refused_after_a_change() -> None:
    base = start()
    engine = Engine(scanned(base).sink("out").plan())
    read(engine, ("A", 1, 3), ("A", 2, 4), ("A", 5, 40))
    snapshot = engine.snapshot()
    renamed = scanned(base, "other").sink("out").plan()
    found = decide(renamed, snapshot)
    assert found.snapshot is not None
    again = Engine.restore(renamed, found.snapshot)
    for one in (engine, again):
        one.close()
        numbers = one.stabilize().outputs["out"].column("number").to_pylist()
        assert numbers == [3]
    changed = scanned(base, function=keyless).sink("other")
    with pytest.raises(ChangedPlanError, match="there are no rows for 'scan' in the checkpoint"):
        decide(changed.plan(), snapshot)


@pytest.mark.parametrize("said", [{"settled": True}, {"settled": False}, {"show": "last"}])
def test_a_scan_survives_crashes(said: dict[str, Any]) -> None:
    happened = rows_of(*((symbol, at % 5, 30 * at) for at in range(8) for symbol in "AB"))
    base = start()
    rows = scanned(base, **({"settled": False} | said), lateness=50, ttl=200)
    pipeline = ended(rows, [shown, running if said.get("settled") else totals], base)
    crash_test(pipeline, happened, seeds=range(2), every=SCATTERED, pairs=1)
