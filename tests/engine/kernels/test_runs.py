"""Rows of each slot in order, and those near a time: the compiled form against lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.engine.kernels.runs import Runs, paired, records_of
from tests.examples import EXAMPLES, SAMPLED

SLOTS, MOST, NEVER = 3, 4, -(1 << 63)

rows = st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(-9, 9)), max_size=12)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), rows),
        st.tuples(st.just("match"), rows, st.integers(-12, 5), st.integers(0, 9)),
        st.tuples(st.just("free"), st.integers(-12, 12)),
    ),
    max_size=12,
)


def ints(values: Any) -> Any:
    return np.array(list(values), np.int64)


@settings(max_examples=40 * EXAMPLES // SAMPLED)
@given(steps=steps)
def test_rows_near_a_time_are_those_of_a_list(steps: list[Any]) -> None:
    runs, held, number, last = Runs(), [], 0, -9
    for kind, *given_one in steps:
        if kind == "add":
            (added,) = given_one
            times = sorted(max(time, last) for _, time in added)
            last = times[-1] if times else last
            runs.add(ints(slot for slot, _ in added), ints(times), number, SLOTS, NEVER)
            for (slot, _), time in zip(added, times, strict=True):
                held.append((time, slot, number))
                number += 1
        elif kind == "match":
            asked, lo, span = given_one
            slots, times = ints(slot for slot, _ in asked), ints(time for _, time in asked)
            counts, numbers = runs.match(slots, times, lo, lo + span, MOST)
            found = [
                [n for at, of, n in held if of == slot and lo <= at - time <= lo + span]
                for slot, time in asked
            ]
            assert counts.tolist() == [min(len(one), MOST + 1) for one in found]
            assert numbers.tolist() == [n for one in found if len(one) <= MOST for n in one]
        else:
            (bound,) = given_one
            empty = runs.free_below(np.arange(SLOTS), bound)
            held = [one for one in held if one[0] >= bound]
            assert set(range(SLOTS)) - set(empty.tolist()) == {slot for _, slot, _ in held}
        assert runs.count == len(held)


def test_slots_without_rows_have_none_whatever_their_number() -> None:
    runs = Runs()
    counts, numbers = runs.match(ints([0, 7, -1]), ints([0, 0, 0]), -1, 1, MOST)
    assert (counts.tolist(), numbers.tolist()) == ([0, 0, 0], [])
    assert runs.free_below(ints([5]), 0).tolist() == [5]
    with pytest.raises(IndexError):
        runs.add(ints([3]), ints([0]), 0, 3, 0)
    with pytest.raises(ValueError, match="one value for each slot"):
        runs.add(ints([0, 1]), ints([0]), 0, 3, 0)
    with pytest.raises(ValueError, match="position 1 is before the last one"):
        runs.add(ints([0, 0]), ints([1, 0]), 0, 3, 0)


def test_bounds_beyond_the_range_of_times_are_its_ends() -> None:
    runs, far = Runs(), 1 << 62
    runs.add(ints([0, 0]), ints([-far, far - 1]), 0, 1, NEVER)
    counts, numbers = runs.match(ints([0, 0]), ints([far - 1, -far]), -(1 << 63), (1 << 63) - 1, 9)
    assert (counts.tolist(), numbers.tolist()) == ([2, 2], [0, 1, 0, 1])


@pytest.mark.parametrize("sweeps", [True, False])
def test_freed_rows_give_their_memory_back(*, sweeps: bool) -> None:
    runs = Runs()
    for turn in range(200):
        times, free_ns = np.arange(100) + 100 * turn, 100 * turn - 100
        runs.add(np.zeros(100, np.int64), times, 100 * turn, 1, NEVER if sweeps else free_ns)
        if sweeps:
            runs.free_below(ints([0]), free_ns)
        _, numbers = runs.match(ints([0]), ints([free_ns]), 0, 300, 1000)
        assert numbers.tolist() == list(range(max(free_ns, 0), 100 * turn + 100))
    assert 200 <= runs.count <= (200 if sweeps else 400)
    assert runs.nbytes < 30_000


def test_rows_are_matched_in_pieces_of_whole_records() -> None:
    runs, last, most = Runs(), 6, 4
    times = np.arange(6, dtype=np.int64)
    runs.add(np.zeros(6, np.int64), times, 0, 1, -9)
    slots, records = np.zeros(7, np.int64), np.array([1, 1, 2, 3, 3, 3, 4])
    asked = np.array([0, 0, 3, 1, 1, 9, 5])
    counts, numbers = runs.match(slots, asked, 0, 1, most, records)
    assert counts.tolist() == [2, 2, 2, 2, 2, 0, 1]
    assert numbers.tolist() == [0, 1, 0, 1, 3, 4, 1, 2, 1, 2, 5]
    for room in range(1, 13):
        at, found = 0, []
        while at <= last:
            some, more = runs.match(slots[at:], asked[at:], 0, 1, most, records[at:], room)
            assert len(more) <= room + most
            assert some.tolist() == counts[at : at + len(some)].tolist()
            at, found = at + len(some), [*found, *more.tolist()]
            assert at == last + 1 or records[at] != records[at - 1]
        assert found == numbers.tolist()
    counts, numbers = runs.match(slots, asked, 0, 1, 3, records)
    assert (counts.tolist(), numbers.tolist()) == (
        [2, 4, 2, 2, 4, 0, 1],
        [0, 1, 3, 4, 1, 2, 5],
    )


@settings(max_examples=EXAMPLES)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 1), st.integers(-3, 3), st.integers(0, MOST + 1), st.booleans()),
        max_size=9,
    )
)
def test_rows_beside_their_partners_are_those_of_a_plain_loop(
    rows: list[tuple[int, int, int, bool]],
) -> None:
    times = np.sort(ints([time for time, *_ in rows]))
    places = ints([place * MOST for _, place, *_ in rows])
    records = records_of(times, places + 1, MOST)
    changes = [
        i > 0 and (times[i], places[i]) != (times[i - 1], places[i - 1]) for i in range(len(rows))
    ]
    assert records.tolist() == np.cumsum(ints(changes)).tolist()
    counts, least = ints([n for _, _, n, _ in rows]), ints([int(own) for *_, own in rows])
    numbers = np.arange(int(counts[counts <= MOST].sum())) + 5
    wanted, lost, alone, left = [], [], 0, iter(numbers.tolist())
    for row, record in enumerate(records):
        made = int(np.maximum(counts, least)[records == record].sum())
        own = [next(left) for _ in range(counts[row])] if counts[row] <= MOST else []
        if made > MOST:
            lost.append(row)
            continue
        alone += not own
        index = sum(one[3] == record for one in wanted)
        for number in own or [4] * least[row]:
            wanted.append((row, number - 5, int(places[row]) + index, record))
            index += 1
    found = paired(records, places + 1, counts, numbers, MOST, least, 5)
    assert [one.tolist() for one in found[:3]] == [[one[k] for one in wanted] for k in range(3)]
    assert (found[3].tolist(), found[4]) == (lost, alone)
    if len(numbers):
        with pytest.raises(ValueError, match="one value for each slot"):
            paired(records, places, counts, numbers[1:], MOST)
