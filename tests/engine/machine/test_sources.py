"""Plans of several sources against the reference, and against themselves read in another order."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.core.errors import InputError, PlanError
from ripple.engine.machine import Engine
from ripple.engine.machine.graph_engine import GraphEngine
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.input_names import source_of
from ripple.model.schema.columns import records_of
from ripple.testing import Marker, check_pipeline
from tests.engine.machine.several import (
    INPUTS,
    WAYS,
    Quote,
    Starts,
    mixed,
    nested,
    pipeline_of,
    plain,
    quoted,
    separate,
    windowed,
)
from tests.engine.machine.ticks import Tick, ticks
from tests.examples import EXAMPLES, SAMPLED

SIZES = (1, 7, 1000)

# Ways that together read all three sources.
chosen = st.lists(st.sampled_from(WAYS), min_size=1, unique=True).filter(
    lambda ways: any(way in ways for way in (windowed, nested)) or {plain, separate} <= {*ways}
)


def owners(parts: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(INPUTS[parts]), min_size=45, max_size=45)


@pytest.mark.parametrize("parts", INPUTS)
@settings(max_examples=12 * EXAMPLES // SAMPLED)
@given(data=st.data(), ways=chosen, happened=ticks(extreme=True), restart=st.integers(0, 45))
def test_sources_equal_their_evaluation_from_scratch(
    parts: int, data: Any, ways: list[Any], happened: list[Any], restart: int
) -> None:
    events: list[Any] = mixed(happened, data.draw(owners(parts)))
    marker = Marker(data.draw(st.sampled_from(INPUTS[parts])), 150)
    events.insert(data.draw(st.integers(0, len(events))), marker)
    check_pipeline(
        pipeline_of(ways),
        events,
        SIZES,
        inputs=INPUTS[parts],
        restarts=[min(restart, len(events))],
    )


class Reading:
    """The results of an engine that reads the lanes of its inputs in a random order."""

    def __init__(self, pipeline: Pipeline, lanes: dict[str, list[Any]], seed: int) -> None:
        plan, chance = pipeline.plan(), random.Random(seed)
        engine = Engine(plan, inputs=list(lanes))
        shown: dict[str, list[str]] = {one.name: [] for one in plan.outputs if one.is_stream}
        left = {name: list(events) for name, events in lanes.items()}
        while any(left.values()):
            name = chance.choice([name for name, events in left.items() if events])
            size = chance.randint(1, 7)
            events, left[name] = left[name][:size], left[name][size:]
            batch = records_of(events, source_of(plan, name).fields)
            engine.apply(name, batch, engine.cut[name] + len(events))
            if chance.random() < 0.5:
                self._note(engine, shown)
            if chance.random() < 0.1:
                self._note(engine, shown)
                engine = Engine.restore(plan, engine.snapshot())
        self._note(engine, shown)
        counts = {name: one.as_dict() for name, one in engine.counters_by_source.items()}
        tables = {
            one.name: sorted(map(repr, engine.table(one.name).to_pylist())) for one in plan.outputs
        }
        self.open = (engine.cut, engine.digests, tables, counts, engine.watermarks_ns)
        engine.close()
        self._note(engine, shown)
        rows = {name: sorted(rows) for name, rows in shown.items()}
        self.closed = (engine.digests, engine.uncomputable_counts, rows)

    def _note(self, engine: Engine, shown: dict[str, list[str]]) -> None:
        changes = engine.stabilize()
        for name, rows in shown.items():
            rows.extend(map(repr, changes.outputs[name].to_pylist()))


@settings(max_examples=20 * EXAMPLES // SAMPLED)
@given(data=st.data(), ways=chosen, happened=ticks(), seeds=st.tuples(st.integers(), st.integers()))
def test_a_cut_does_not_tell_how_its_inputs_interleaved(
    data: Any, ways: list[Any], happened: list[Any], seeds: tuple[int, int]
) -> None:
    lanes: dict[str, list[Any]] = {name: [] for name in INPUTS[2]}
    for name, event in mixed(happened, data.draw(owners(2))):
        lanes[name].append(event)
    one, other = (Reading(pipeline_of(ways), lanes, seed) for seed in seeds)

    assert one.open == other.open
    assert one.closed == other.closed


def batch(rows: list[tuple[str, int, int]], *, of: type = Tick) -> Any:
    events = [
        {"symbol": symbol, "price": 1.0, "size": size, "venue": None, "timestamp_ns": at}
        for symbol, size, at in rows
    ]
    if of is Quote:
        events = [quoted(event) for event in events]
    return records_of(events, rp.schema_of(of).fields)


@pytest.mark.parametrize("arrival", [("ticks", "more"), ("more", "ticks")])
def test_a_tie_goes_to_the_source_that_was_declared_first(arrival: tuple[str, str]) -> None:
    starts = Starts()
    # By offsets alone, rows of the other source would come first.
    rows = {
        "ticks": [("B", 8, 5), ("B", 9, 5), ("A", 1, 5), ("A", 2, 5)],
        "more": [("A", 3, 5), ("A", 4, 5)],
    }
    for united in (
        rp.union("u", starts.ticks, starts.more),
        rp.union("u", starts.more, starts.ticks),
    ):
        fold = united.partition("p", key="symbol").fold(
            "f", first=ra.first("size"), last=ra.last("size")
        )
        engine = Engine(fold.sink("o").plan())
        for name in arrival:
            engine.apply(name, batch(rows[name]), len(rows[name]))
        engine.stabilize()

        [row] = [row for row in engine.table("o").to_pylist() if row["symbol"] == "A"]
        assert row == {"symbol": "A", "first": 1, "last": 4}


def test_a_window_waits_for_the_sources_that_come_to_it_alone() -> None:
    starts = Starts()
    keyed = starts.quotes.partition("p", key="symbol").window("w", rp.Tumbling(10), lateness=0)
    both = rp.union("u", starts.ticks, starts.more).partition("q", key="symbol")
    other = both.window("v", rp.Tumbling(10), lateness=0).fold("g", n=ra.count())
    engine = Engine(keyed.fold("f", n=ra.count()).sink("o").also(other.sink("r")).plan())
    engine.apply("quotes", batch([("A", 1, 5), ("A", 1, 25)], of=Quote), 2)
    engine.apply("ticks", batch([("A", 1, 5), ("A", 1, 500)]), 2)
    first = engine.stabilize().outputs

    assert first["o"].num_rows == 1
    assert first["r"].num_rows == 0, "the other source of the union has no watermark yet"
    engine.apply("more", batch([("A", 1, 500)]), 1)
    assert engine.stabilize().outputs["r"].num_rows == 1
    counts = {name: one.consumed for name, one in engine.counters_by_source.items()}
    assert counts == {"ticks": 2, "more": 1, "quotes": 2}
    assert engine.counters.consumed == 5


def test_a_plan_of_one_source_has_the_engine_that_it_had() -> None:
    plan = Starts().ticks.partition("p", key="symbol").fold("f", n=ra.count()).sink("o").plan()

    assert plan.is_chain
    assert type(Engine(plan)) is Engine
    assert type(Engine(pipeline_of([nested]).plan())) is GraphEngine


def test_inputs_are_called_after_their_sources() -> None:
    plan = pipeline_of([nested]).plan()

    with pytest.raises(InputError, match=r"'trades/0' is of no source.*reads ticks, more, quotes"):
        Engine(plan, inputs=["ticks", "more", "trades/0"])
    with pytest.raises(InputError, match=r"source 'quotes' has no input.*reads ticks, more"):
        Engine(plan, inputs=["ticks/0", "ticks/1", "more"])
    with pytest.raises(InputError, match="source 'quotes': a batch lacks the fields"):
        Engine(plan).apply("quotes", batch([("A", 1, 1)]), 1)


def test_a_snapshot_is_of_the_sources_that_it_has_read() -> None:
    starts = Starts()
    fold = starts.ticks.partition("p", key="symbol").fold("f", n=ra.count()).sink("o")
    one, two = Engine(fold.plan()), Engine(fold.also(starts.more.sink("m")).plan())
    for engine in (one, two):
        engine.apply("ticks", batch([("A", 1, 1)]), 1)
        engine.stabilize()

    with pytest.raises(SnapshotError, match=r"read the sources ticks, and.* reads ticks, more"):
        Engine.restore(two.plan, one.snapshot())
    with pytest.raises(SnapshotError, match=r"read the sources ticks, more, and.* reads ticks:"):
        Engine.restore(one.plan, two.snapshot())
    later = Pipeline("test")
    more = later.source("more", Tick, out_of_order=40).sink("m")
    ticks = later.source("ticks", Tick, out_of_order=10, reject_future=100_000)
    swapped = ticks.partition("p", key="symbol").fold("f", n=ra.count()).sink("o").also(more)
    with pytest.raises(SnapshotError, match=r"read the sources ticks, more, and.* more, ticks:"):
        Engine.restore(swapped.plan(), two.snapshot())


def test_the_only_source_of_several_is_asked_for_in_vain() -> None:
    plan = pipeline_of([nested]).plan()

    with pytest.raises(PlanError, match=r"has the sources ticks, more, quotes, and this takes"):
        _ = plan.source
