"""Each compiled loop against the same loop in Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.row_ops import OP_FINAL, OP_PATCH, OP_REMOVE, OP_SET
from ripple.engine.changes.kernel import note_changes, place_rows, scatter

NONE = np.empty(0, np.uint8)
OPS = [OP_SET, OP_PATCH, OP_REMOVE, OP_FINAL]


def packed(flags, offset):
    """A bitmap whose first ``offset`` bits belong to somebody else."""
    return np.packbits([True] * offset + list(flags), bitorder="little")


@st.composite
def columns(draw):
    rows = draw(st.integers(1, 40))
    many = {"min_size": rows, "max_size": rows}
    ops = np.array(draw(st.lists(st.sampled_from(OPS), **many)), np.int8)
    valid = draw(st.just([True] * rows) | st.lists(st.booleans(), **many))
    cleared = [
        draw(st.booleans()) and op == OP_PATCH and not has
        for op, has in zip(ops, valid, strict=True)
    ]
    return ops, valid, cleared, draw(st.integers(0, 9))


def as_bitmaps(valid, cleared, offset):
    return (
        NONE if all(valid) else packed(valid, offset),
        offset,
        packed(cleared, offset) if any(cleared) else NONE,
        offset,
    )


@given(columns(), st.booleans(), st.booleans())
def test_note_changes_finds_what_the_slow_loop_finds(column, required, mixed_up):
    ops, valid, cleared, offset = column
    if mixed_up:
        cleared = cleared[::-1]
    changed = np.zeros(len(ops), np.uint8)
    bad = note_changes(ops, *as_bitmaps(valid, cleared, offset), required, changed)
    expected = np.zeros(len(ops), np.uint8)
    for i, (op, has, clear) in enumerate(zip(ops, valid, cleared, strict=True)):
        sound = {
            OP_SET: not clear and (has or not required),
            OP_FINAL: not clear and (has or not required),
            OP_PATCH: not (has and clear),
            OP_REMOVE: not has and not clear,
        }[int(op)]
        if op == OP_PATCH and (has or clear):
            expected[i] = 1
        if not sound:
            assert bad == i
            return
    assert bad == -1
    assert changed.tolist() == expected.tolist()


@given(st.data())
def test_place_rows_skips_and_refuses_what_the_slow_loop_does(data):
    rows = data.draw(st.integers(0, 12))
    many = {"min_size": rows, "max_size": rows}
    ops = np.array(data.draw(st.lists(st.sampled_from(OPS), **many)), np.int8)
    unique = data.draw(st.booleans())
    slots = np.array(data.draw(st.lists(st.integers(0, 15), unique=unique, **many)), np.int64)
    changed = np.array(data.draw(st.lists(st.integers(0, 1), **many)), np.uint8)
    present = np.array(data.draw(st.lists(st.integers(0, 1), min_size=16, max_size=16)), np.uint8)
    placed = slots.copy()
    bad = place_rows(ops, placed, changed, present, np.zeros(16, np.int64), 1)
    met = set()
    for i, (op, slot) in enumerate(zip(ops, slots, strict=True)):
        if slot in met or (op == OP_PATCH and changed[i] and not present[slot]):
            assert bad == i
            return
        met.add(slot)
        skipped = op in (OP_REMOVE, OP_FINAL) or (op == OP_PATCH and not present[slot])
        assert placed[i] == (-1 if skipped else slot)
    assert bad == -1


@pytest.mark.parametrize("op", [-128, -1, 4, 127])
def test_place_rows_refuses_an_operation_that_does_not_exist(op):
    one = np.zeros(1, np.int64)
    ops = np.array([op], np.int8)
    assert place_rows(ops, one.copy(), np.zeros(1, np.uint8), np.ones(1, np.uint8), one, 1) == 0


@given(columns(), st.sampled_from([1, 2, 3, 4, 8, 16]), st.randoms(use_true_random=False))
def test_scatter_writes_what_the_slow_loop_writes(column, width, random):
    ops, valid, cleared, offset = column
    rows = len(ops)
    slots = np.array(random.sample(range(50), rows), np.int64)
    slots[random.randrange(rows)] = -1
    values = np.array([random.randrange(256) for _ in range(rows * width)], np.uint8)
    held = np.full(50 * width, 255, np.uint8)
    held_valid = np.array([random.randrange(2) for _ in range(50)], np.uint8)
    expected, expected_valid = held.copy().reshape(50, width), held_valid.copy()
    for i, slot in enumerate(slots):
        if slot >= 0 and valid[i]:
            expected[slot] = values.reshape(rows, width)[i]
            expected_valid[slot] = 1
        elif slot >= 0 and (ops[i] == OP_SET or cleared[i]):
            expected_valid[slot] = 0
    scatter(ops, slots, values, *as_bitmaps(valid, cleared, offset), width, held, held_valid)
    assert held.tobytes() == expected.tobytes()
    assert held_valid.tolist() == expected_valid.tolist()
