"""Subscribers of an output of events get each row once, and notice missed rows."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.client.outputs import event_rows
from ripple.client.outputs.event_rows import EventRows
from ripple.core.row_ops import OP
from ripple.engine.changes.layout import layout_of
from ripple.engine.machine import Engine
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.stream_rows import identified_schema

NAMES = ("all", "many", "both", "finals", "at-quote")


@rp.record(version=1)
class Tick:
    symbol: str
    row_index: int  # the name of a field of the identity
    at: rp.Timestamp


def twice(row: Tick) -> list[Tick]:
    return [row] * (row.row_index % 3)


def _plan() -> Any:
    desk = rp.Pipeline("desk")
    ticks = desk.source("ticks", Tick, time="at")
    quotes = desk.source("quotes", Tick, time="at")
    many = ticks.flat_map("twice", twice, into=Tick)
    bars = ticks.partition("p", key="symbol").window("w", rp.Tumbling(10), lateness=0)
    joined = ticks.join_asof("join", quotes, on="symbol", emit="final", lateness=0, suffix="_quote")
    rows = ticks.sink("all").also(many.sink("many"))
    rows = rows.also(rp.union("u", many, ticks).sink("both"))
    rows = rows.also(bars.fold("n", n=rp.count()).finals("over").sink("finals"))
    return rows.also(joined.sink("at-quote")).plan()


PLAN = _plan()


def batch_of(random: Random, first: int, count: int) -> pa.RecordBatch:
    rows = [
        {"symbol": random.choice("ab"), "row_index": random.randrange(9), "at": first + number}
        for number in range(count)
    ]
    schema = pa.schema(arrow_fields(PLAN.sources[0].fields))
    return pa.RecordBatch.from_pylist(rows, schema)


class Subscriber:
    """A subscriber with the rows of an output."""

    def __init__(self, name: str) -> None:
        output = PLAN.output(name)
        self.name, self.schema = name, identified_schema(output.fields)
        self.layout = layout_of(self.schema)
        self.rows = EventRows(self.layout, self.schema, {})
        self.cut: Any = None
        self.came: list[Any] = []
        self.shown: list[Any] = []
        self.missed = 0

    def take(self, given: Any) -> None:
        came = self.rows.add(self.cut, given)
        self.missed += came.since is None and self.cut is not None
        self.cut = given.cut
        self.came += came.rows.to_pylist()
        gone = [self.key(row) for row in came.dropped.to_pylist()]
        self.shown = [row for row in self.shown if self.key(row) not in gone]
        self.shown += came.rows.to_pylist()
        assert [self.key(row) for row in self.shown][-len(self.here()) :] == self.here()
        assert len(self.shown) == len(self.here())

    def here(self) -> list[Any]:
        return [self.key(row) for row in self.rows.rows().to_pylist()]

    def key(self, row: Any) -> Any:
        return tuple(row[name] for name in self.layout.keys)


def judge(one: Subscriber, wanted: list[Any], kept: int) -> None:
    fields = [field.name for field in PLAN.output(one.name).fields]
    keys = [one.key(row) for row in one.came]
    assert len(set(keys)) == len(keys), one.name
    assert len(wanted) > 20
    if one.missed:
        assert kept == 30
    else:
        found, there = (
            [repr([row[f] for f in fields]) for row in each] for each in (one.came, wanted)
        )
        assert sorted(found) == sorted(there), one.name
    assert len(one.here()) <= kept


@pytest.mark.parametrize("kept", [30, 10_000])
def test_each_row_comes_once_across_owners(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_rows, "ROWS_MAX", kept)
    random = Random(kept)
    inputs = ["ticks", "quotes"]
    engine, log, at = Engine(PLAN, inputs=inputs), list[Any](), dict.fromkeys(inputs, 0)
    subscribers = {name: Subscriber(name) for name in NAMES}
    all_rows: dict[str, list[Any]] = {name: [] for name in NAMES}

    def begin(one: Engine) -> Engine:
        for name in NAMES:
            one.keep_newest(name, kept, 1 << 20)
        return one

    begin(engine)
    stored, logged = engine.snapshot(), 0
    for turn in range(120):
        name = random.choice(inputs)
        batch = batch_of(random, at[name], random.choice([1, 2, 5]))
        at[name] += batch.num_rows
        log.append((name, batch, at[name]))
        engine.apply(*log[-1])
        changes = engine.stabilize()
        for output in NAMES:
            all_rows[output] += changes.outputs[output].to_pylist()
            if random.random() < 0.4:
                subscribers[output].take(engine.showing_events(output).outgoing_to([0])[0])
        if turn % 17 == 16:
            stored, logged = engine.snapshot(), len(log)
        if turn % 25 == 24:  # the next owner replays in other batches
            engine = begin(Engine.restore(PLAN, stored))
            for each in log[logged:]:
                engine.apply(*each)
            engine.stabilize()
    for output, one in subscribers.items():
        one.take(engine.showing_events(output).outgoing_to([0])[0])
        judge(one, all_rows[output], kept)
    assert any(one.missed for one in subscribers.values()) == (kept == 30)


def test_identity_gives_way_to_fields_of_its_names() -> None:
    (first, *_) = PLAN.outputs
    names = identified_schema(first.fields).names
    assert names[:4] == ["row_input_", "row_offset_", "row_index_", OP]
    assert "row_index" in names[4:]
