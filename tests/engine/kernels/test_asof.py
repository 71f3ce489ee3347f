"""Matches of an as-of join: the compiled form against the definition over plain lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.engine.kernels.asof import Matches
from ripple.engine.kernels.stored import Beside, Stored, Waiting
from ripple.engine.operators.passed_rows import Parts
from ripple.engine.operators.waiting import settled_ns
from ripple.model.keys.index import KeyIndex
from tests.examples import EXAMPLES, SAMPLED

SLOTS, END, NONE = 3, (1 << 63) - 1, -(1 << 63)
KEYS = KeyIndex()
OWN = {"time": pa.int64(), "place": pa.int64(), "slot": pa.int64()}
LEFT = pa.schema({"id": pa.int64(), **OWN})
RIGHT = pa.schema({"value": pa.int64(), "gone": pa.bool_(), **OWN})
MADE = pa.schema({"id": pa.int64(), "value": pa.int64()})

left_rows = st.lists(st.tuples(st.integers(-1, SLOTS - 1), st.integers(0, 9)), max_size=6)
right_rows = st.lists(
    st.tuples(st.integers(0, SLOTS - 1), st.integers(0, 9), st.sampled_from([None, False, True])),
    max_size=6,
)
turns = st.lists(st.tuples(left_rows, right_rows, st.integers(0, 6), st.booleans()), max_size=5)


class Side:
    """Rows of one side, held and in a list."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = Stored(schema, Parts)
        self.waiting = Waiting(self.rows, "time", "place")
        self.all: list[tuple[int, ...]] = []

    def add(self, columns: list[pa.Array], slots: list[int], times: list[int]) -> None:
        places = [len(self.all) + at for at in range(len(slots))]
        self.all += zip(times, places, slots, strict=True)
        own = [pa.array(one, pa.int64()) for one in (times, places, slots)]
        self.rows.add([*columns, *own], len(slots))
        self.waiting.add()


def matches(left: Side, right: Side, **how: Any) -> Matches:
    plain = {"is_strict": False, "is_inner": False, "tolerance_ns": None, "deleted": None}
    given_ones = {"strategy": "backward", **plain, **how}
    return Matches(
        left.waiting,
        right.waiting,
        "slot",
        KEYS,
        Beside(MADE, [(left.rows, ["id"]), (right.rows, ["value"])]),
        latenesses_ns=given_ones.pop("latenesses_ns", (0, 0)),
        **given_ones,
    )


def expected(row: tuple[int, ...], others: list[tuple[int, ...]], how: dict[str, Any]) -> int:
    """The place of the match of a row, by the definition; -1 for none."""
    time, _, slot = row
    tolerance = how["tolerance_ns"]
    near = sorted(
        (at, place)
        for at, place, of in others
        if of == slot
        and (tolerance is None or abs(at - time) <= tolerance)
        and not (how["is_strict"] and at == time)
    )
    before, after = [one for one in near if one[0] <= time], [one for one in near if one[0] >= time]
    if how["strategy"] == "backward" or not after:
        return before[-1][1] if before and how["strategy"] != "forward" else -1
    if how["strategy"] == "forward" or not before:
        return after[0][1]
    is_nearer = after[0][0] - time < time - before[-1][0]
    return after[0][1] if is_nearer else before[-1][1]


@settings(max_examples=80 * EXAMPLES // SAMPLED)
@given(
    turns=turns,
    strategy=st.sampled_from(["backward", "forward", "nearest"]),
    tolerance=st.integers(0, 4),
    is_bounded=st.booleans(),
    is_strict=st.booleans(),
    is_inner=st.booleans(),
    deletes=st.booleans(),
)
def test_matches_are_those_of_the_definition(
    turns: list[Any],
    strategy: str,
    tolerance: int,
    *,
    is_bounded: bool,
    is_strict: bool,
    is_inner: bool,
    deletes: bool,
) -> None:
    how = {
        "strategy": strategy,
        "tolerance_ns": tolerance if is_bounded or strategy != "backward" else None,
        "is_strict": is_strict,
        "is_inner": is_inner,
    }
    left, right, mark, found, unmatched = Side(LEFT), Side(RIGHT), 0, [], 0
    known = matches(left, right, **how, deleted="gone" if deletes else None)
    gone: list[bool | None] = []
    ahead = 0 if strategy == "backward" else tolerance

    def take(left_ns: int, right_ns: int) -> int:
        taken = known.take(left_ns, right_ns)
        if taken is None:
            return 0
        half, count = taken.count // 2, taken.count
        for span in ((0, half), (half, count)):
            rows, places = taken.batch(*span).arrow().to_pylist(), taken.places(*span).tolist()
            assert [left.all[at][0] for at in places] == taken.times(*span).tolist()
            assert left.rows.words("place", taken.numbers(*span)).tolist() == places
            assert [row["id"] for row in rows] == places
            found.extend((one, row["value"]) for one, row in zip(places, rows, strict=True))
        return taken.unmatched

    for ours, theirs, rise, drops in turns:
        slots, times = [one[0] for one in ours], [mark + one[1] for one in ours]
        ids = pa.array([len(left.all) + at for at in range(len(ours))], pa.int64())
        left.add([ids], slots, times)
        marks = [one[2] for one in theirs]
        values = [pa.array([len(gone) + at for at in range(len(theirs))], pa.int64())]
        right.add(
            [*values, pa.array(marks, pa.bool_())],
            [one[0] for one in theirs],
            [mark + one[1] for one in theirs],
        )
        gone += marks
        mark += rise
        unmatched += take(mark - ahead, mark)
        if drops:
            oldest = mark if strategy == "forward" else mark - tolerance
            oldest = mark - ahead if strategy == "forward" else oldest - ahead
            known.drop(-END if how["tolerance_ns"] is None else oldest)
            held = {*left.rows.words("slot").tolist(), *right.rows.words("slot").tolist()}
            assert np.flatnonzero(known.used()).tolist() == sorted(held - {-1})
    unmatched += take(END, END)

    wanted = []
    for row in sorted(left.all):
        match = expected(row, right.all, how) if row[2] >= 0 else -1
        if match >= 0 and deletes and gone[match]:
            match = -1
        wanted.append((row[1], None if match < 0 else match))
    without = sum(match is None for _, match in wanted)
    assert found == [one for one in wanted if one[1] is not None or not is_inner]
    assert unmatched == without
    assert known.take(END, END) is None
    assert known.nbytes >= 0


@pytest.mark.parametrize("side", ["left", "right"])
def test_slots_beyond_the_known_ones_are_refused(side: str) -> None:
    left, right = Side(LEFT), Side(RIGHT)
    known = matches(left, right)
    if side == "left":
        left.add([pa.array([0])], [KEYS.capacity], [0])
    else:
        right.add([pa.array([0]), pa.array([False])], [KEYS.capacity], [0])
    with pytest.raises(IndexError, match=f"slot {KEYS.capacity}"):
        known.take(END, END)


def test_rows_beyond_the_taken_ones_are_refused() -> None:
    left, right = Side(LEFT), Side(RIGHT)
    left.add([pa.array([0])], [0], [0])
    taken = matches(left, right).take(END, END)
    assert taken is not None
    for first, end in ((0, 2), (-1, 1), (1, 0)):
        for ask in (taken.batch, taken.times, taken.numbers):
            with pytest.raises(IndexError, match=f"rows {first} to {end} of 1"):
                ask(first, end)


marks = st.sampled_from([NONE, NONE + 1, -1, 0, 5, END - 1, END])


@given(
    own=marks,
    theirs=marks,
    latenesses_ns=st.tuples(st.integers(0, 3), st.integers(0, END)),
    strategy=st.sampled_from(["backward", "forward", "nearest"]),
    is_strict=st.booleans(),
    tolerance=st.integers(0, END),
)
def test_bounds_are_watermarks_less_what_may_come(
    own: int,
    theirs: int,
    latenesses_ns: tuple[int, int],
    strategy: str,
    *,
    is_strict: bool,
    tolerance: int,
) -> None:
    how = {"strategy": strategy, "is_strict": is_strict, "tolerance_ns": tolerance}
    known = matches(Side(LEFT), Side(RIGHT), latenesses_ns=latenesses_ns, **how)
    left, right = map(settled_ns, (own, theirs), latenesses_ns)
    if right not in (NONE, END):
        strictly = right + 1 if is_strict else right
        right = strictly if strategy == "backward" else settled_ns(right, tolerance)
    assert known.bounds(own, theirs) == (left, right)
