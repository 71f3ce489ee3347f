"""Subscribers of an output have its rows, however rarely they take changes."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from ripple.core.row_ops import OP, OP_FINAL
from ripple.engine.changes.column_table import ColumnTable
from ripple.engine.changes.layout import layout_of
from ripple.engine.machine import Engine
from ripple.engine.machine.output_stream import WAITING_ROWS_MIN, OutputStream, shown_schema
from ripple.engine.operators.arrow_types import arrow_fields
from tests.engine.machine.stage_plans import PLANS, trades

NAMES = ("by-venue", "windows-by-venue", "rows-of-windows", "three")


class Reader:
    """Somebody outside, who has what he was given."""

    def __init__(self, showing: OutputStream, schema: pa.Schema) -> None:
        self.showing, self.schema = showing, schema
        self.cut: Any = None
        self.ops: list[int] = []

    def take(self) -> int:
        """Take in what there is; return how many rows that were."""
        given = self.showing.outgoing_to([0])[0]
        assert given.rows.schema.equals(self.schema)
        if given.since is None:
            self.table = ColumnTable(layout_of(self.schema))
        else:
            assert given.since == self.cut
        self.table.apply(given.rows)
        self.ops += given.rows.column(OP).to_pylist()
        self.cut = given.cut
        return given.rows.num_rows

    def rows(self) -> list[str]:
        return sorted(map(repr, self.table.rows().to_pylist()))


@pytest.mark.parametrize("finals", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_subscriber_has_the_rows_that_the_partition_shows(name: str, finals: bool) -> None:
    plan, random = PLANS[name], Random(name)
    engine = Engine(plan, finals=finals)
    schema = pa.schema(arrow_fields(plan.source.fields))
    readers = {
        one.name: Reader(engine.showing(one.name), shown_schema(plan, one)) for one in plan.outputs
    }
    events, at = trades(random, 200), 0
    while at < len(events):
        batch = events[at : at + random.choice([1, 3, 10])]
        at += len(batch)
        engine.apply(plan.source.name, pa.RecordBatch.from_pylist(batch, schema), at)
        changes = engine.stabilize()
        assert bool(changes.final) <= finals
        for output, reader in readers.items():
            if random.random() < 0.3:
                reader.take()
                assert reader.rows() == sorted(map(repr, engine.table(output).to_pylist()))
            if random.random() < 0.1:
                reader.showing.restart(0)
    engine.advance(plan.source.name, 10**6, at + 1)
    engine.stabilize()
    for output, reader in readers.items():
        reader.take()
        assert reader.rows() == sorted(map(repr, engine.table(output).to_pylist()))
    engine.check_invariants()


def test_windows_that_are_freed_are_told_as_final() -> None:
    plan = PLANS["windows-by-venue"]
    engine = Engine(plan)
    schema = pa.schema(arrow_fields(plan.source.fields))
    output = plan.outputs[0]
    reader = Reader(engine.showing(output.name), shown_schema(plan, output))
    reader.take()
    events = trades(Random(1), 60)
    engine.apply(plan.source.name, pa.RecordBatch.from_pylist(events, schema), 60)
    engine.stabilize()
    engine.advance(plan.source.name, 10**6, 61)
    engine.stabilize()
    reader.take()
    assert OP_FINAL in reader.ops


def _many(symbols: int, schema: pa.Schema) -> pa.RecordBatch:
    one = trades(Random(0), 1)[0]
    rows = [{**one, "venue": f"V{n}", "symbol": f"S{n}", "t": 0} for n in range(symbols)]
    return pa.RecordBatch.from_pylist(rows, schema)


def test_slow_subscriber_costs_a_table_at_most() -> None:
    plan = PLANS["by-venue"]
    engine = Engine(plan)
    schema = pa.schema(arrow_fields(plan.source.fields))
    output = plan.outputs[0].name
    showing = engine.showing(output)
    assert not showing.keeps
    showing.outgoing_to([0])
    assert showing.keeps
    keys, turns = 5_000, 2 * WAITING_ROWS_MIN // 5_000
    batch = _many(keys, schema)
    for turn in range(turns):
        engine.apply(plan.source.name, batch, (turn + 1) * keys)
        engine.stabilize()
        assert showing._rows <= WAITING_ROWS_MIN
    assert not showing.keeps
    given = showing.outgoing_to([0])[0]
    assert given.since is None
    assert given.rows.num_rows == engine.table(output).num_rows
