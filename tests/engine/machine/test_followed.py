"""A subscriber that applies the changes of a view has its table, for any ranges of changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.core.errors import InputError
from ripple.core.row_ops import OP, OP_FINAL, OP_SET
from ripple.engine.changes import columns
from ripple.engine.changes.column_table import ColumnTable
from ripple.engine.changes.layout import Layout, layout_of, snapshot_of
from ripple.engine.graph.column import InputColumn
from ripple.engine.graph.node import Graph
from ripple.engine.kernels.view import View
from ripple.engine.machine import Changes, Engine
from ripple.engine.machine.deltas import deltas_of
from ripple.engine.operators.result_rows import column_fields, typed_column
from ripple.model.expression import col
from ripple.model.expression.typed import kind_of
from ripple.model.keys.space import key_space
from ripple.model.pipeline.nodes import type_of
from ripple.model.pipeline.plan import Plan
from ripple.model.window import Assigner, OnEveryElement, Session, Trigger, Tumbling, watermark
from tests.engine.machine.shapes import IDS, SHAPES, SOME
from tests.engine.machine.ticks import AGGREGATES, TOTALS, keyed, ticks
from tests.examples import EXAMPLES, FEW

SCHEMA = pa.schema(
    [
        ("symbol", pa.string()),
        ("price", pa.float64()),
        ("size", pa.int64()),
        ("venue", pa.string()),
        ("timestamp_ns", pa.int64()),
    ]
)
OUTPUTS = ("rows", "totals")

some_shapes = pytest.mark.parametrize(("assigner", "trigger"), SHAPES[SOME], ids=IDS[SOME])
sizes = st.lists(st.integers(1, 12), min_size=1, max_size=5)
groups = st.sampled_from(["", "n", "window_start_ns", "some"])


def plan_of(assigner: Assigner | None, trigger: Trigger | None, group: str) -> Plan:
    """Return every aggregate by symbol and window, and totals of them by ``group``."""
    if group == "window_start_ns" and (assigner is None or isinstance(assigner, Session)):
        group = "some"
    return (
        keyed(assigner, trigger, lateness=20)
        .fold("each", **AGGREGATES)
        .derive("whether", some=col("n") > 2, share=col("volume") // (col("n") - 3))
        .partition("again", key=group or ())
        .fold("over-all", **TOTALS, share=ra.max("share"))
        .sink("rows", of="each")
        .sink("totals", of="over-all")
        .plan()
    )


def run(engine: Engine, events: list[Any], sizes: list[int]) -> Iterator[Changes]:
    """Yield what changes in batches of ``sizes``, in turn, and when the input has ended."""
    at = turn = 0
    while at < len(events):
        part = events[at : at + sizes[turn % len(sizes)]]
        at, turn = at + len(part), turn + 1
        engine.apply("ticks", pa.RecordBatch.from_pylist(part, SCHEMA), at)
        yield engine.stabilize()
    engine.close()
    yield engine.stabilize()


def sorted_rows(rows: pa.Table | pa.RecordBatch) -> list[str]:
    """Return rows as text, in which -0.0 is not 0.0, in an order that slots have no part in."""
    return sorted(repr(row) for row in rows.to_pylist())


def layouts_of(engine: Engine, changes: Changes) -> dict[str, Layout]:
    """Return the layout of each output, checked against that of its table."""
    layouts = {name: layout_of(batch.schema) for name, batch in changes.outputs.items()}
    for name, layout in layouts.items():
        assert layout.table.names == engine.table(name).schema.names
    return layouts


@settings(max_examples=5 * EXAMPLES)
@given(events=ticks(), sizes=sizes, group=st.sampled_from(["", "n", "some"]), data=st.data())
def test_changes_are_deltas_as_they_are(
    events: list[Any], sizes: list[int], group: str, data: st.DataObject
) -> None:
    engine = Engine(plan_of(None, None, group))
    tables: dict[str, ColumnTable] = {}
    slow: dict[str, ColumnTable] = {}
    waiting: dict[str, pa.RecordBatch] = {}
    for changes in run(engine, events, sizes):
        layouts = layouts_of(engine, changes)
        gather = data.draw(st.booleans())
        for name, one in changes.outputs.items():
            layout = layouts[name]
            table = tables.setdefault(name, ColumnTable(layout))
            table.apply(one)
            table.check_invariants()
            assert sorted_rows(table.rows()) == sorted_rows(engine.table(name))
            before = waiting.pop(name, None)
            batch = one if before is None else columns.compose(layout, before, one)
            if gather:
                waiting[name] = batch
                continue
            table = slow.setdefault(name, ColumnTable(layout))
            table.apply(batch)
            assert sorted_rows(table.rows()) == sorted_rows(engine.table(name))


class Keeper:
    """Keeps what is final beside what may still change."""

    def __init__(self, layout: Layout) -> None:
        self.live = ColumnTable(layout)
        self.final: list[pa.RecordBatch] = []

    def apply(self, deltas: pa.RecordBatch) -> None:
        """Follow deltas."""
        self.live.apply(deltas)
        is_final = pa.array(deltas.column(OP).to_numpy() == OP_FINAL)
        self.final.append(deltas.filter(is_final).select(self.live.layout.table.names))

    def digest(self, plan: Plan, output: str) -> str:
        """Return the digest of a view that shows all of these rows, and none before."""
        whole = pa.Table.from_batches(
            [rows.cast(self.live.layout.table) for rows in (self.live.rows(), *self.final)]
        ).combine_chunks()
        keys = self.live.layout.keys
        fields = next(one.fields for one in plan.outputs if one.name == output)
        kinds = {field.name: kind_of(type_of(field)) for field in fields if field.name not in keys}
        stored = column_fields(
            [self.live.layout.table.field(name) for name in kinds],
            [(kind, True) for kind, _ in kinds.values()],
        )
        space = key_space([field for field in fields if field.name in keys])
        graph = Graph()
        column = InputColumn(graph, (), space, stored)
        layout = self.live.layout
        types = [layout.table.field(name) for name in keys], layout.values
        view = View(column, types, retractions=False, in_order=False)
        parts = [whole.column(name).combine_chunks() for name in keys]
        slots = space.slots(parts or [whole.column(0)])
        space.adopt(slots)
        assert len(np.unique(slots)) == len(slots), "a final row is there again"
        if len(slots):
            typed = [
                typed_column(whole.column(name).combine_chunks(), kind, True)
                for name, (kind, _) in kinds.items()
            ]
            column.write(slots, [values for values, _ in typed], [valid for _, valid in typed])
            graph.stabilize()
        return f"{view.digest:016x}"


@some_shapes
@settings(max_examples=FEW)
@given(events=ticks(), sizes=sizes, group=groups, joins=st.integers(0, 20), data=st.data())
def test_subscribers_have_the_table_and_keepers_of_final_rows_all_rows(
    *,
    assigner: Assigner | None,
    trigger: Trigger | None,
    events: list[Any],
    sizes: list[int],
    group: str,
    joins: int,
    data: st.DataObject,
) -> None:
    plan = plan_of(assigner, trigger, group)
    engine = Engine(plan, finals=True)
    keepers: dict[str, Keeper] = {}
    slow: dict[str, Keeper] = {}
    joined: dict[str, ColumnTable] = {}
    waiting: dict[str, pa.RecordBatch] = {}
    for number, changes in enumerate(run(engine, events, sizes)):
        is_last = changes.watermark_ns == watermark.END
        gather = data.draw(st.booleans()) and not is_last
        for name, layout in layouts_of(engine, changes).items():
            table = engine.table(name)
            deltas = deltas_of(changes, name)
            keeper = keepers.setdefault(name, Keeper(layout))
            keeper.apply(deltas)
            assert sorted_rows(keeper.live.rows()) == sorted_rows(table)
            assert keeper.digest(plan, name) == engine.digests[name]
            if number > joins:
                joined[name].apply(deltas)
                assert sorted_rows(joined[name].rows()) == sorted_rows(table)
            elif number == joins:
                joined[name] = ColumnTable(layout)
                for rows in table.to_batches():
                    joined[name].apply(snapshot_of(layout, rows))
            before = waiting.pop(name, None)
            deltas = deltas if before is None else columns.compose(layout, before, deltas)
            if gather:
                waiting[name] = deltas
            else:
                slow.setdefault(name, Keeper(layout)).apply(deltas)
                assert sorted_rows(slow[name].live.rows()) == sorted_rows(table)
                assert slow[name].digest(plan, name) == engine.digests[name]


def test_row_that_changes_and_is_final_is_told_once() -> None:
    plan = (
        keyed(Tumbling(50), OnEveryElement(), lateness=0, out_of_order=0)
        .fold("each", n=ra.count())
        .sink("rows")
        .plan()
    )
    engine = Engine(plan, finals=True)

    def told(*times: int) -> list[tuple[Any, ...]]:
        rows = [
            {"symbol": f"S{time}", "price": 1.0, "size": 1, "timestamp_ns": time} for time in times
        ]
        at = engine.cut["ticks"] + len(rows)
        engine.apply("ticks", pa.RecordBatch.from_pylist(rows, SCHEMA), at)
        deltas = deltas_of(engine.stabilize(), "rows")
        return [(row["symbol"], row["op"], row["n"]) for row in deltas.to_pylist()]

    assert told(1) == [("S1", OP_SET, 1)]
    assert sorted(told(2, 50)) == [("S1", OP_FINAL, 1), ("S2", OP_FINAL, 1), ("S50", OP_SET, 1)]
    assert told() == []
    with pytest.raises(InputError, match="no output 'raws'"):
        deltas_of(engine.stabilize(), "raws")
    with pytest.raises(InputError, match="with finals=True only"):
        deltas_of(Engine(plan).stabilize(), "rows")
