"""Linked columns against columns that hold copies: the same rows, changes and digests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ripple.engine.graph.canonical import Form
from ripple.engine.graph.column import Column, DerivedColumn, InputColumn, Tap
from ripple.engine.graph.node import Graph
from ripple.engine.kernels.beside import follow, lay_beside, lay_touched, link_sides, unplaced
from ripple.engine.kernels.view import View
from ripple.model.keys.slots import SlotSet
from ripple.model.keys.space import KeySpace, key_space
from ripple.model.schema.types import Field, Int64

FIELDS = [("price", "float", True), ("size", "int", False), ("text", Form(pa.string()), True)]
SHOWN = np.array([2, 0], np.int64)
KEY = pa.schema([("key", pa.int64())])
VALUE = pa.schema(
    [
        ("left_price", pa.float64()),
        ("left_size", pa.int64()),
        ("left_text", pa.string()),
        ("right_text", pa.string()),
        ("right_price", pa.float64()),
    ]
)
ROOM = 4
rows = st.tuples(
    st.one_of(st.none(), st.sampled_from([0.0, 1.5])),
    st.integers(0, 2),
    st.one_of(st.none(), st.sampled_from(["", "a", "a long text of more than a word"])),
)
writes = st.dictionaries(st.integers(0, ROOM - 1), st.one_of(st.none(), rows), max_size=ROOM)
places = st.one_of(st.none(), st.tuples(st.integers(0, ROOM - 1), st.integers(0, ROOM - 1)))
steps = st.lists(
    st.tuples(writes, writes, st.dictionaries(st.integers(0, 5), places, max_size=3)), max_size=6
)


def _keys(count: int) -> KeySpace:
    keys = key_space([Field("key", Int64())])
    keys.slots([pa.array(range(count))])
    return keys


def _write(column: InputColumn, batch: dict[int, Any]) -> None:
    there = {slot: row for slot, row in batch.items() if row is not None}
    if there:
        price, size, text = zip(*there.values(), strict=True)
        column.write(
            np.array(list(there), np.int64),
            [np.array([p or 0.0 for p in price]), np.array(size, np.int64), list(text)],
            [
                np.array([p is not None for p in price]),
                None,
                np.array([t is not None for t in text]),
            ],
        )
    column.erase(np.array([slot for slot, row in batch.items() if row is None], np.int64))


class Beside(DerivedColumn):
    """All of ``pairs``, by slot, each time."""

    def __init__(self, graph: Graph, left: Column, right: Column, *, linked: bool) -> None:
        fields = [(f"left_{name}", *rest) for name, *rest in FIELDS]
        fields += [(f"right_{FIELDS[at][0]}", *FIELDS[at][1:]) for at in SHOWN]
        super().__init__(graph, [left, right], _keys(6), fields)
        self._sides = left, right
        self.pairs: dict[int, tuple[int, int] | None] = {}
        if linked:
            link_sides(self, left, right, SHOWN)

    def recompute_now(self) -> None:
        """Lay the rows beside each other that are there on both sides."""
        slots = np.array(list(self.pairs), np.int64)
        found = [pair or (-1, -1) for pair in self.pairs.values()]
        at = (
            [np.array(side, np.int64) for side in zip(*found, strict=True)]
            if found
            else [slots] * 2
        )
        for side, of in zip(self._sides, at, strict=True):
            known = of >= 0
            of[np.flatnonzero(known)[~side.has_rows(of[known])]] = -1
        lay_beside(self, *self._sides, SHOWN, slots, *at, needs_left=True, needs_right=True)


def _listed(columns: list[tuple[Any, Any]]) -> list[list[Any]]:
    listed = []
    for values, valid in columns:
        there = np.ones(len(values), np.bool_) if valid is None else valid.view(np.bool_)
        plain = values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
        listed.append([v if t else None for v, t in zip(plain, there.tolist(), strict=True)])
    return listed


@given(steps)
@example([({0: (1.5, 1, "a")}, {0: (0.0, 2, "")}, {0: (0, 0)}), ({0: (0.0, 0, None)}, {}, {})])
def test_a_linked_column_is_as_one_with_copies(of: list[Any]) -> None:
    graph, space = Graph(), _keys(ROOM)
    left, right = (InputColumn(graph, [], space, FIELDS) for _ in range(2))
    both = [Beside(graph, left, right, linked=linked) for linked in (False, True)]
    seen: list[list[Any]] = [[], []]

    def receive(column: Column) -> None:
        slots, was, now = column.changes()
        hashes = np.asarray(slots * 7 + 1, np.uint64)
        order = np.argsort(slots)
        old, new = _listed(column.old_rows()), _listed(column.rows(slots[now.view(np.bool_)]))
        told = [slots, was, now, *(np.array(one, object) for one in old)]
        seen[both.index(column)].append(
            ([one[order].tolist() for one in told], new, column.digest_changes(hashes))
        )

    for column in both:
        Tap(column, receive)
    views = [View(one, (KEY, VALUE), retractions=True, in_order=True) for one in both]
    for left_rows, right_rows, pairs in of:
        _write(left, left_rows)
        _write(right, right_rows)
        for column in both:
            column.pairs.update(pairs)
            column.set_dirty()
        graph.stabilize()
        copied, linked = (view.take().arrow() for view in views)
        assert linked == copied
        copied, linked = (view.take_retracted() for view in views)
        assert linked == copied
        for column in both:
            column.check()
        slots = both[0].present_slots()
        assert both[1].present_slots().tolist() == slots.tolist()
        assert _listed(both[1].rows(slots)) == _listed(both[0].rows(slots))
        assert views[1].live_digest() == views[0].live_digest()
    assert seen[1] == seen[0]


def test_a_linked_column_takes_no_values() -> None:
    graph, space = Graph(), _keys(ROOM)
    left, right = (InputColumn(graph, [], space, FIELDS) for _ in range(2))
    linked = Beside(graph, left, right, linked=True)
    with pytest.raises(AssertionError, match="no values"):
        linked.put(np.array([0]), [None] * 5, [None] * 5)
    with pytest.raises(AssertionError):
        link_sides(linked, left, left, SHOWN[:1])


class ByPlace(Beside):
    """The rows of both sides that have one place, laid where a side changed."""

    def __init__(
        self, graph: Graph, left: Column, right: Column, at: Any, *, follows: bool
    ) -> None:
        super().__init__(graph, left, right, linked=False)
        self._at = [np.array(one, np.int64) for one in at]
        self._follows, self._touched = follows, SlotSet()
        self._slots = [np.full(6, -1, np.int64) for _ in range(2)]

    def parent_changed_now(self, parent: Any) -> None:
        """Touch the places of its changes."""
        side = self._sides.index(parent)
        slots, _, now = parent.changes()
        places = self._at[side][slots]
        before = self._touched.members().tolist()
        followed = self._follows and follow(parent, self._at[side], self._touched, 6)
        if self._follows:
            assert followed == bool(now.all() and (places >= 0).all())
            assert followed or self._touched.members().tolist() == before
            new = unplaced(parent, self._at[side])
            assert (new is None) == (not now.all())
            assert new is None or new.tolist() == slots[places < 0].tolist()
        slots, now, places = slots[places >= 0], now[places >= 0], places[places >= 0]
        self._slots[side][places] = np.where(now, slots, -1)
        if not followed:
            self._touched.add(places, 6)

    def recompute_now(self) -> None:
        """Lay what was touched beside each other."""
        needs = {"needs_left": True, "needs_right": False}
        if self._follows:
            gone = lay_touched(self, *self._sides, SHOWN, self._touched, *self._slots, **needs)
            assert len(self._touched) == 0
        else:
            rows = self._touched.take()
            left, right = (slots[rows] for slots in self._slots)
            lay_beside(self, *self._sides, SHOWN, rows, left, right, **needs)
            gone = rows[(left < 0) & (right < 0)]
        self.gone = gone.tolist()


placed = st.permutations([0, 1, 5, -1])


@given(st.lists(st.tuples(writes, writes), max_size=6), st.tuples(placed, placed))
def test_rows_of_one_place_are_laid_as_those_found_one_by_one(of: list[Any], at: Any) -> None:
    graph, space = Graph(), _keys(ROOM)
    left, right = (InputColumn(graph, [], space, FIELDS) for _ in range(2))
    both = [ByPlace(graph, left, right, at, follows=follows) for follows in (False, True)]
    views = [View(one, (KEY, VALUE), retractions=True, in_order=True) for one in both]
    for left_rows, right_rows in of:
        _write(left, left_rows)
        _write(right, right_rows)
        for one in both:
            one.gone = []
        graph.stabilize()
        plain, fast = (view.take().arrow() for view in views)
        assert fast == plain
        assert both[1].gone == both[0].gone
        both[1].check()
