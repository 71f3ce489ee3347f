"""Rows in pieces among which others may come: the compiled form against sorted arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripple.engine.kernels.row_order import Near, RowOrder

SLOTS, SPAN = 3, 400
FIRST, LAST = -(1 << 63), (1 << 63) - 1
NEARS = [
    (strategy, is_strict, tolerance)
    for strategy in ("backward", "forward", "nearest")
    for is_strict in (False, True)
    for tolerance in (None, 0, 7)
    if tolerance is not None or strategy == "backward"
]


def rows_of(rng: np.random.Generator, count: int, first: int) -> Any:
    """Return slots, times, places and numbers of rows, of which many have the same time."""
    slots, times = rng.integers(0, SLOTS, count), rng.integers(-SPAN, SPAN, count)
    numbers = first + np.arange(count)
    return slots, times, rng.permutation(count) + first, numbers


def batches(seed: int, count: int = 4000) -> Any:
    """Yield batches of rows of any sizes."""
    rng, first = np.random.default_rng(seed), 0
    while first < count:
        size = int(rng.choice([0, 1, 1, 7, 300, 1500]))
        yield rows_of(rng, size, first)
        first += size


def in_order(added: list[Any]) -> Any:
    slots, times, places, numbers = (np.concatenate(each) for each in zip(*added, strict=True))
    order = np.lexsort((places, times, slots))
    return slots[order], times[order], numbers[order]


def match(rows: Any, slot: int, time: int, how: tuple[str, bool, int | None]) -> int:
    """Return the number of the row that matches, by the definition alone."""
    strategy, is_strict, tolerance = how
    own = [(t, n) for s, t, n in zip(*rows, strict=True) if s == slot]
    before = [(t, n) for t, n in own if t < time or (t == time and not is_strict)]
    after = [(t, n) for t, n in own if t > time or (t == time and not is_strict)]
    found = []
    if strategy != "forward":
        found += [(time - t, n) for t, n in before[-1:]]
    if strategy != "backward":
        found += [(t - time, n) for t, n in after[:1]]
    near = [one for one in found if tolerance is None or one[0] <= tolerance]
    return min(near, key=lambda one: one[0])[1] if near else -1


def test_rows_are_in_the_order_of_sorted_arrays() -> None:
    order, added = RowOrder(), []
    for rows in batches(1):
        order.add(*rows)
        added.append(rows)
        expected = in_order(added)
        assert [one.tolist() for one in order.rows()] == [one.tolist() for one in expected]
    slots, times, numbers = expected
    asked, at = np.repeat(np.arange(-1, SLOTS + 1), 3), np.tile([FIRST, 5, LAST], SLOTS + 2)
    begins, ends = order.first_at(asked, at), order.end_at(asked, at)
    pairs = list(zip(slots.tolist(), times.tolist(), strict=True))
    wanted = list(zip(asked.tolist(), at.tolist(), strict=True))
    assert begins.tolist() == [sum(one < each for one in pairs) for each in wanted]
    assert ends.tolist() == [sum(one <= each for one in pairs) for each in wanted]
    ranges = [numbers[a:b] for a, b in zip(begins[:-1], ends[1:], strict=True)]
    found = order.numbers_in(begins[:-1], ends[1:])
    assert found.tolist() == np.concatenate(ranges).tolist()
    covered, times_covered = order.covered(begins[:-1], ends[1:])
    counted = np.bincount(np.concatenate(ranges), minlength=len(numbers))
    assert sorted(covered) == np.flatnonzero(counted).tolist()
    assert times_covered.tolist() == counted[covered].tolist()
    fewer = np.where(np.arange(len(numbers)) % 3, -1, np.arange(len(numbers)) // 3)
    kept = fewer[numbers] >= 0
    parts = (slots[kept], times[kept], fewer[numbers[kept]])
    assert [one.tolist() for one in order.renumbered(fewer).rows()] == [x.tolist() for x in parts]
    assert 32 * len(order) <= order.nbytes <= 5 * 32 * len(order)


@pytest.mark.parametrize("how", NEARS)
def test_matches_and_the_rows_that_others_touch_follow_from_the_definition(how: Any) -> None:
    rng = np.random.default_rng(2)
    near = Near(how[0], is_strict=how[1], tolerance_ns=how[2])
    others, waiting, added = RowOrder(), RowOrder(), []
    slots, times, places, numbers = rows_of(rng, 60, 0)
    waiting.add(slots, times, places, numbers)
    before = [-1] * len(numbers)
    for rows in batches(3, 2000):
        others.add(*rows)
        added.append(rows)
        theirs = in_order(added)
        touched = others.touched(*rows[:3], waiting, near)
        after = [match(theirs, *one, how) for one in zip(slots, times, strict=True)]
        assert others.matches(slots, times, near).tolist() == after
        changed = {n for n in numbers.tolist() if after[n] != before[n]}
        assert changed <= set(touched.tolist())
        assert len(rows[0]) > 1 or len(touched) < len(numbers)
        before = after
    assert others.matches(np.array([-1]), np.array([0]), near).tolist() == [-1]


def test_rows_that_are_over_leave_in_their_order() -> None:
    order, rng = RowOrder(), np.random.default_rng(4)
    _, times, places, numbers = rows_of(rng, 3000, 0)
    order.add(np.zeros_like(times), times, places, numbers)
    left = numbers[np.lexsort((places, times))]
    for mark in (-SPAN, -100, -100, -99, 7, LAST):
        gone = times[left] < mark
        assert order.take_below(mark).tolist() == left[gone].tolist()
        left = left[~gone]
        assert order.rows()[2].tolist() == left.tolist()
        assert order.end_at(np.array([0]), np.array([LAST])).tolist() == [len(left)]


def test_ranges_and_numbers_outside_are_refused() -> None:
    order, one = RowOrder(), np.zeros(1, np.int64)
    order.add(one, one, one, one)
    with pytest.raises(IndexError, match=r"range 0\.\.2 is outside 0\.\.1"):
        order.numbers_in(one, one + 2)
    with pytest.raises(IndexError, match="numbers of rows are outside"):
        order.renumbered(one[:0])
    with pytest.raises(ValueError, match="one value for each slot"):
        order.add(one, one[:0], one, one)
