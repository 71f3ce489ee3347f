"""Each compiled window loop against its plain Python twin, on random events."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.model.keys.index import KeyIndex
from ripple.model.keys.slots import SlotSet
from ripple.model.schema.exported import Lent
from ripple.model.window import assign, watermark
from ripple.model.window.sessions import SessionBook
from ripple.model.window.timers import Timers
from tests.examples import EXAMPLES, SAMPLED

times = st.lists(st.integers(-500, 500), max_size=60)
small = st.integers(0, 60)
ahead = st.one_of(st.just(watermark.ANY_FUTURE_NS), st.integers(0, 300))


def _ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(times, small, small, st.tuples(small, ahead), st.integers(0, 60))
def test_verdicts_follow_the_prefix_watermark(
    events: list[int], out_of_order: int, lateness: int, futures: tuple[int, int], cut: int
) -> None:
    future, future_max = futures
    expected, mark = [], None
    for t in events:
        if mark is not None and t > mark + future_max:
            expected.append(watermark.TOO_FAR)
            continue
        if mark is None or mark <= t <= mark + future:
            expected.append(watermark.ON_TIME)
        elif t > mark:
            expected.append(watermark.FUTURE)
        else:
            late = t < mark - lateness
            expected.append(watermark.VERY_LATE if late else watermark.MILDLY_LATE)
        mark = t - out_of_order if mark is None else max(mark, t - out_of_order)
    at, verdicts = watermark.NONE, []
    for part in (events[:cut], events[cut:]):
        before, lent = at, Lent.of(pa.array(part, pa.int64()))
        at, codes, late_n, very_late_n, future_n, refused_n = watermark.judge(
            _ints(part), at, out_of_order, lateness, future, future_max
        )
        is_plain = codes is None and (before != watermark.NONE or not part)
        quick = watermark.if_on_time(lent, before, out_of_order, min(future, future_max))
        assert quick == (at if is_plain else None)
        found = [watermark.ON_TIME] * len(part) if codes is None else codes.tolist()
        assert (codes is None) == (set(found) <= {watermark.ON_TIME})
        verdicts += found
        counts = Counter(found)
        assert (late_n, very_late_n, future_n) == (counts[1], counts[2], counts[3])
        assert refused_n == counts[watermark.TOO_FAR]
    assert verdicts == expected
    assert at == (watermark.NONE if mark is None else mark)


others_at = st.one_of(st.just(watermark.END), st.integers(-500, 500))


@given(times, small, ahead, others_at, st.integers(1, 90))
def test_last_crossing_is_the_last_new_interval(
    events: list[int], out_of_order: int, future_max: int, others: int, interval: int
) -> None:
    expected, mark, before = -1, None, None
    for i, t in enumerate(events):
        if mark is not None and t > mark + future_max:
            continue
        mark = t - out_of_order if mark is None else max(mark, t - out_of_order)
        now = min(mark, others) // interval
        if before is None or now > before:
            expected, before = i, now
    found = watermark.last_crossing(
        _ints(events), watermark.NONE, out_of_order, future_max, others, interval
    )
    assert found == expected


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(-200, 200)))), st.integers(1, 90))
def test_tumbling_is_floor_division_whatever_was_freed(
    batches: list[list[tuple[int, int]]], size: int
) -> None:
    index = KeyIndex()
    windows = assign.Tumbling(index, size)
    for batch in batches:
        slots = windows.slots(_ints([k for k, _ in batch]), _ints([t for _, t in batch]))
        keys, starts = index.pairs_at(slots)
        found = zip(keys.tolist(), starts.tolist(), strict=True)
        assert list(found) == [(k, t // size * size) for k, t in batch]
        index.free(np.unique(slots)[::2].copy())  # which others get then
        index.check_invariants()


@given(times, st.integers(1, 90), st.integers(1, 90))
def test_sliding_lists_every_window_that_contains_the_event(
    events: list[int], size: int, slide: int
) -> None:
    slide = min(size, slide)
    rows, starts = assign.sliding(_ints(events), size, slide)
    expected = {
        (i, s)
        for i, t in enumerate(events)
        for s in range(-800 // slide * slide, 600, slide)
        if s <= t < s + size
    }
    found = list(zip(rows.tolist(), starts.tolist(), strict=True))
    assert set(found) == expected
    assert len(found) == len(expected)


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 7), st.integers(0, 60))
def test_count_split_is_each_slots_last_multiple(slots: list[int], count: int, cut: int) -> None:
    elements = np.zeros(5, np.int64)
    seen: Counter[int] = Counter()
    for part in (slots[:cut], slots[cut:]):
        mask, fired = assign.reached_count(_ints(part), elements, count)
        last = {}
        ordinals = []
        for slot in part:
            seen[slot] += 1
            ordinals.append(seen[slot])
            if seen[slot] % count == 0:
                last[slot] = seen[slot]
        expected = [
            o <= last.get(s, seen[s] // count * count) for s, o in zip(part, ordinals, strict=True)
        ]
        assert mask.astype(bool).tolist() == expected
        assert sorted(fired.tolist()) == sorted(last)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-100, 100)), max_size=50),
    st.integers(1, 30),
    st.lists(st.integers(1, 12), max_size=6),
)
@settings(max_examples=48 * EXAMPLES // SAMPLED)
def test_sessions_are_the_connected_events(
    events: list[tuple[int, int]], gap: int, sizes: list[int]
) -> None:
    book, index = SessionBook(gap), KeyIndex()
    members: dict[int, list[tuple[int, int]]] = defaultdict(list)
    start = 0
    for size in [*sizes, len(events)]:
        part = events[start : start + size]
        start += size
        slots, absorbed, into = book.assign(
            _ints([k for k, _ in part]), _ints([t for _, t in part]), index
        )
        for source, target in zip(absorbed.tolist(), into.tolist(), strict=True):
            members[target] += members.pop(source, [])
        for event, slot in zip(part, slots.tolist(), strict=True):
            members[slot].append(event)
        index.free(absorbed)
        book.check_invariants()
    found = {tuple(sorted(m)) for m in members.values()}
    expected = set()
    for key in range(3):
        run: list[tuple[int, int]] = []
        for event in sorted(e for e in events if e[0] == key):
            if run and event[1] >= run[-1][1] + gap:
                expected.add(tuple(run))
                run = []
            run.append(event)
        if run:
            expected.add(tuple(run))
    assert found == expected
    for slot, group in members.items():
        (key,), (first,) = index.pairs_at(_ints([slot]))
        assert (key, first) == min(group)
        assert book.ends_ns(_ints([slot]))[0] == max(group)[1] + gap


arming = st.tuples(
    st.sampled_from(["new", "again", "never"]),
    st.integers(0, 9),
    st.integers(0, 5).map(lambda n: n * 10**9),
)


@given(st.lists(st.tuples(st.lists(arming, max_size=40), st.integers(0, 6 * 10**9))))
def test_timers_give_what_is_due_once(turns: list[tuple[list[tuple[str, int, int]], int]]) -> None:
    timers, model = Timers(), {}
    for armings, limit in turns:
        for how, slot, due in armings:
            if how == "new":
                new = timers.arm_new(_ints([slot]), _ints([due]), 10)
                assert new.tolist() == ([] if slot in model else [slot])
                model.setdefault(slot, due)
            elif slot in model:
                if how == "again":
                    timers.arm(_ints([slot]), _ints([due]))
                    model[slot] = due
                else:
                    timers.disarm(_ints([slot]))
                    del model[slot]
        found = timers.pop_due(limit).tolist()
        times = [model.pop(slot) for slot in found]
        assert times == sorted(times)
        assert all(due <= limit for due in times)
        assert all(due > limit for due in model.values())


@given(st.lists(st.integers(0, 99)), st.lists(st.integers(0, 999)))
def test_slot_set_keeps_first_insertion_order(first: list[int], second: list[int]) -> None:
    slots = SlotSet()
    slots.add(_ints(first), 100)
    slots.add(_ints(second), 1000)
    slots.check_invariants()
    assert slots.take().tolist() == list(dict.fromkeys(first + second))
    assert slots.take().tolist() == []


def test_event_time_out_of_range_moves_nothing() -> None:
    at, codes, *counts = watermark.judge(
        _ints([5, 2**62, -(2**62) - 1, 2**62 - 1]), watermark.NONE, 0, 0, 0, watermark.ANY_FUTURE_NS
    )
    assert codes is not None
    assert codes.tolist() == [
        watermark.ON_TIME,
        watermark.OUT_OF_RANGE,
        watermark.OUT_OF_RANGE,
        watermark.FUTURE,
    ]
    assert (at, counts) == (2**62 - 1, [0, 0, 1, 2])


def test_timer_is_brought_forward_but_never_back() -> None:
    timers = Timers()
    timers.arm_new(_ints([0, 1]), _ints([50, 50]), 2)
    timers.bring_forward(_ints([0, 1]), _ints([60, 40]))
    assert timers.pop_due(40).tolist() == [1]
    assert timers.pop_due(50).tolist() == [0]
    assert timers.pop_due(99).tolist() == []
