"""Rows come in an order that neither restores nor batches can change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.engine.kernels.key_fields import KeyFields
from ripple.engine.machine import Changes, Engine, Snapshot
from ripple.model.expression import col
from ripple.model.keys.space import key_space
from ripple.model.pipeline.plan import Plan
from ripple.model.schema.types import Field, Int64, String
from ripple.model.window import Assigner, Session, Trigger, Tumbling
from tests.engine.machine.test_against_reference import each_shape
from tests.engine.machine.ticks import keyed, ticks
from tests.examples import EXAMPLES, FEW, THINNED

NAMES = [f"key {at}" for at in range(12)]
SCHEMA = pa.schema(
    [("symbol", "string"), ("price", "float64"), ("size", "int64"), ("venue", "string")]
).append(pa.field("timestamp_ns", "int64"))


def many_keys(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the events more keys, so that an order by chance is the right one rarely."""
    return [
        {**event, "symbol": event["symbol"] and NAMES[(at * 7 + len(event["symbol"])) % 12]}
        for at, event in enumerate(events)
    ]


def plan_of(assigner: Assigner | None, trigger: Trigger | None, group: str | None) -> Plan:
    """Return a pipeline whose filters on results take rows away, with or without table folds."""
    if group == "window_start_ns" and (assigner is None or isinstance(assigner, Session)):
        group = "volume"
    pipeline = keyed(assigner, trigger).fold(
        "first", n=ra.count(), volume=ra.sum("size"), high=ra.max("size")
    )
    pipeline = pipeline.filter("some", col("volume") < 4)
    if group is not None:
        pipeline = (
            pipeline.partition("again", key=group)
            .fold("second", rows=ra.count(), sum=ra.sum("volume"), most=ra.max("n"))
            .filter("few", col("rows") < 3)
            .partition("once-more", key="rows")
            .fold("third", groups=ra.count(), total=ra.sum("sum"))
            .sink("groups", of="second")
            .sink("last")
        )
    return pipeline.sink("rows", of="first").plan()


def apply(engine: Engine, events: list[dict[str, Any]], upto: int, size: int) -> None:
    """Consume events below ``upto`` in batches of ``size``."""
    (name, start), *_ = engine.cut.items()
    for at in range(start, upto, size):
        part = events[at : min(at + size, upto)]
        batch = pa.RecordBatch.from_pylist(part, SCHEMA)
        engine.apply(name, batch, at + len(part))


def seen(changes: Changes, engine: Engine) -> list[Any]:
    """Return all that leaves an engine at a cut, row by row and bit for bit."""
    batches = [*changes.outputs.values(), *changes.retractions.values()]
    return [
        [bytes(batch.serialize()) for batch in batches],
        engine.digests,
        engine.counters.as_dict(),
    ]


def renumbered(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its rows the other way round, so that keys get other slots."""
    tables = {
        key: table.take(np.arange(table.num_rows)[::-1]) for key, table in snapshot.tables.items()
    }
    return replace(snapshot, tables=tables)


@each_shape
@settings(max_examples=7 * EXAMPLES // THINNED)
@given(
    events=ticks(max_size=75).map(many_keys),
    group=st.sampled_from([None, "window_start_ns", "volume"]),
    grid=st.sampled_from([1, 4, 11, 23]),
    from_cut=st.integers(0, 20),
    muted=st.integers(0, 30),
    size=st.integers(1, 40),
)
def test_a_recovered_engine_hands_out_the_same_rows_in_the_same_order(
    *,
    assigner: Assigner | None,
    trigger: Trigger | None,
    events: list[dict[str, Any]],
    group: str | None,
    grid: int,
    from_cut: int,
    muted: int,
    size: int,
) -> None:
    plan = plan_of(assigner, trigger, group)
    cuts = [*range(grid, len(events), grid), len(events)]
    went_on = Engine(plan, retractions=True)
    restart = from_cut % len(cuts)
    expected: list[list[Any]] = []
    snapshot = went_on.snapshot()
    for at, cut in enumerate(cuts):
        apply(went_on, events, cut, grid)
        expected.append(seen(went_on.stabilize(), went_on))
        if at + 1 == restart:
            snapshot = went_on.snapshot()
    went_on.close()
    expected.append(seen(went_on.stabilize(), went_on))

    live = min(restart + muted, len(cuts)) - 1  # the cut up to which its changes are dropped
    recovered = Engine.restore(plan, renumbered(snapshot), retractions=True)
    if live >= restart:
        apply(recovered, events, cuts[live], size)
        recovered.stabilize()
    for at in range(max(live + 1, restart), len(cuts)):
        apply(recovered, events, cuts[at], size)
        assert seen(recovered.stabilize(), recovered) == expected[at]
    recovered.close()
    assert seen(recovered.stabilize(), recovered) == expected[-1]


@settings(max_examples=FEW)
@given(events=ticks(max_size=60).map(many_keys), sizes=st.tuples(*[st.integers(1, 9)] * 2))
def test_interleaving_of_inputs_does_not_order_rows(
    events: list[dict[str, Any]], sizes: tuple[int, int]
) -> None:
    plan = plan_of(None, None, "n")
    halves = {"a": events[::2], "b": events[1::2]}
    outcomes = []
    for names in (("a", "b"), ("b", "a")):
        engine = Engine(plan, inputs=["a", "b"])
        for name in names:
            batch = pa.RecordBatch.from_pylist(halves[name], SCHEMA)
            engine.apply(name, batch, len(halves[name]))
        outcomes.append(repr({n: b.to_pydict() for n, b in engine.stabilize().outputs.items()}))
    assert outcomes[0] == outcomes[1]


def test_keys_of_one_hash_are_ordered_by_themselves() -> None:
    orders = []
    for names in (["b", "a", "c"], ["c", "b", "a"]):
        space = key_space((Field("name", String()), Field("window_start_ns", Int64())))
        slots = space.slots([pa.array(names * 2), pa.array([60] * 3 + [0] * 3)])
        order = KeyFields(space).positions(slots, np.zeros(6, np.uint64))
        orders.append(list(zip(*(a.to_pylist() for a in space.arrays(slots[order])), strict=True)))
    assert orders[0] == orders[1] == [(n, t) for t in (0, 60) for n in "abc"]


def tick(symbol: str, size: int, time_ns: int) -> dict[str, Any]:
    """Return an event."""
    return {"symbol": symbol, "price": 1.0, "size": size, "venue": "X", "timestamp_ns": time_ns}


def test_rows_without_windows_come_in_the_order_of_events_also_those_that_a_filter_takes() -> None:
    plan = plan_of(None, None, None)
    events = [tick(name, 1, 0) for name in "abcdef"] + [tick(name, 9, 0) for name in "caebdf"]
    engine = Engine(plan)
    apply(engine, events, 6, 6)
    assert engine.stabilize().outputs["rows"]["symbol"].to_pylist() == list("abcdef")
    restored = Engine.restore(plan, renumbered(engine.snapshot()))
    for one in (engine, restored):
        apply(one, events, 12, 5)
        assert one.stabilize().outputs["rows"]["symbol"].to_pylist() == list("caebdf")


def test_a_restore_retracts_nothing() -> None:
    plan = plan_of(Tumbling(50), None, "volume")
    events = [tick("a", 1, 0), tick("b", 1, 500), tick("c", 1, 600)]
    engine = Engine(plan)
    for upto in (2, 3):  # the first window is final by then and has left its group a member
        apply(engine, events, upto, 1)
        engine.stabilize()
    assert engine.table("groups")["rows"].to_pylist() == [2]
    changes = Engine.restore(plan, engine.snapshot(), retractions=True).stabilize()
    assert [batch.num_rows for batch in changes.retractions.values()] == [0, 0, 0]
