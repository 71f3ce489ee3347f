"""Who applies the changes of a view has its table, whatever ranges they come in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.aggregate as ra
from ripple.delta import columns
from ripple.delta.column_table import ColumnTable
from ripple.delta.layout import Layout, layout_of
from ripple.engine import Changes, Engine
from ripple.expression import col
from ripple.pipeline.plan import Plan
from ripple.window import Assigner, Session, Trigger
from tests.engine.test_prefix import IDS, SHAPES
from tests.engine.ticks import AGGREGATES, EXAMPLES, TOTALS, keyed, ticks

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

each_shape = pytest.mark.parametrize(("assigner", "trigger"), SHAPES, ids=IDS)
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


@settings(max_examples=40 * EXAMPLES)
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
