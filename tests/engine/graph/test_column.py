"""A column against a dictionary of rows: changes, digests, retirement."""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.errors import NodeError
from ripple.engine.graph.column import Column, DerivedColumn, InputColumn, Tap
from ripple.model.keys.space import key_space
from ripple.model.schema.types import Field, Int64
from ripple.notebook.graph import Graph

FIELDS = [
    ("price", "float", True),
    ("size", "int", False),
    ("open", "bool", False),
    ("tags", "object", True),
]
rows = st.tuples(
    st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf])),
    st.integers(-2, 2),
    st.booleans(),
    st.one_of(st.none(), st.sampled_from(["a", ["a", 1.0], "b"])),
)
writes = st.dictionaries(st.integers(0, 5), st.one_of(st.none(), rows), max_size=6)


def _bits(row: tuple | None) -> tuple | None:
    if row is None:
        return None
    price = row[0]
    return (price if price is None else struct.pack("<d", price), *row[1:])


def _write(column: InputColumn, slots: dict[int, int], batch: dict[int, tuple | None]) -> None:
    set_rows = {k: r for k, r in batch.items() if r is not None}
    if set_rows:
        price, size, is_open, tags = zip(*set_rows.values(), strict=True)
        column.write(
            np.array([slots[k] for k in set_rows], np.int64),
            [
                np.array([0.0 if p is None else p for p in price]),
                np.array(size, np.int64),
                np.array(is_open),
                list(tags),
            ],
            [
                np.array([p is not None for p in price]),
                None,
                None,
                np.array([t is not None for t in tags]),
            ],
        )
    column.erase(np.array([slots[k] for k, r in batch.items() if r is None], np.int64))


def _row(gathered: list, i: int) -> tuple:
    out = []
    for values, valid in gathered:
        value = values[i] if isinstance(values, list) else values[i].item()
        out.append(None if valid is not None and not valid[i] else value)
    return tuple(out)


@given(st.lists(st.lists(writes, min_size=1, max_size=3), max_size=8))
def test_changes_are_the_rows_that_differ_between_stabilizes(steps: list) -> None:
    graph = Graph()
    space = key_space([Field("id", Int64())])
    slots = dict(enumerate(space.slots([pa.array(range(6))]).tolist()))
    keys = {slot: key for key, slot in slots.items()}
    column = InputColumn(graph, (), space, FIELDS)
    heard: list[tuple] = []
    digest = 0

    def hear(changed: Column) -> None:
        nonlocal digest
        at, was, now = changed.changes()
        digest = (digest + changed.digest_changes(space.hashes(at))) % 2**64
        new = changed.rows(at[now == 1])
        old = changed.old_rows()
        position = 0
        for i, slot in enumerate(at.tolist()):
            before = _row(old, i) if was[i] else None
            after = None
            if now[i]:
                after = _row(new, position)
                position += 1
            heard.append((keys[slot], before, after))

    Tap(column, hear)
    model: dict[int, tuple] = {}
    for batches in steps:
        before = dict(model)
        for batch in batches:
            _write(column, slots, batch)
            for key, row in batch.items():
                if row is None:
                    model.pop(key, None)
                else:
                    model[key] = row
        heard.clear()
        graph.stabilize()
        graph.check_invariants()
        expected = {
            k: (_bits(before.get(k)), _bits(model.get(k)))
            for k in range(6)
            if _bits(before.get(k)) != _bits(model.get(k))
        }
        assert {k: (_bits(b), _bits(a)) for k, b, a in heard} == expected
        assert len(heard) == len(expected)
        assert len(column) == len(model)
        present = column.present_slots()
        assert digest == column.digest_rows(present, space.hashes(present))
    if not model:
        assert digest == 0


def test_every_nan_is_the_same_nan_and_zero_has_a_sign() -> None:
    graph = Graph()
    space = key_space([Field("id", Int64())])
    slots = space.slots([pa.array([7])])
    column = InputColumn(graph, (), space, [("x", "float", False)])
    heard: list[float] = []
    Tap(column, lambda c: heard.append(c.rows(slots)[0][0][0].item()))
    other_nan = struct.unpack("<d", struct.pack("<q", -1))[0]
    for value in (math.nan, other_nan, 0.0, -0.0, -0.0):
        column.write(slots, [np.array([value])], [None])
        graph.stabilize()
    assert [struct.pack("<d", x) for x in heard[1:]] == [struct.pack("<d", x) for x in (0.0, -0.0)]


def test_retired_row_leaves_without_a_change_and_its_slot_starts_empty() -> None:
    graph = Graph()
    space = key_space([Field("id", Int64())])
    slots = space.slots([pa.array([7, 8])])
    column = InputColumn(graph, (), space, [("x", "int", True)])
    heard: list[int] = []
    Tap(column, lambda c: heard.append(c.changed_count))
    column.write(slots, [np.array([1, 2])], [None])
    graph.stabilize()
    column.retire(slots[:1])
    assert graph.stabilize() == ()
    assert heard == [2]
    assert column.present_slots().tolist() == slots[1:].tolist()
    graph.check_invariants()


class _Doubled(DerivedColumn):
    fail = False

    def parent_changed_now(self, parent: Column) -> None:  # type: ignore[override]
        slots, _, now = parent.changes()
        self.pending = (slots[now == 1], slots[now == 0], parent)

    def recompute_now(self) -> None:
        live, gone, parent = self.pending
        self.put(live, [parent.rows(live)[0][0] * 2], [None])
        if self.fail:
            raise ValueError("no luck")
        self.drop(gone)


def test_derived_column_that_failed_is_retried_and_reports_the_whole_change() -> None:
    graph = Graph()
    space = key_space([Field("id", Int64())])
    slots = space.slots([pa.array([7, 8])])
    column = InputColumn(graph, (), space, [("x", "int", False)])
    doubled = _Doubled(graph, [column], space, [("y", "int", False)], "doubled")
    heard: list[list[int]] = []
    Tap(doubled, lambda c: heard.append(c.rows(c.changes()[0])[0][0].tolist()))
    column.write(slots, [np.array([1, 2])], [None])
    doubled.fail = True
    with pytest.raises(NodeError, match="doubled"):
        graph.stabilize()
    doubled.fail = False
    graph.stabilize()
    assert heard == [[2, 4]]
    graph.check_invariants()
