"""The ordered multiset against a sorted list, long enough for chunks to split and join."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import ripple.model.aggregate as ra
from ripple.model.aggregate.ordered import OrderedEvents, OrderedValues
from ripple.model.schema.types import Float
from tests.model.aggregate.aggregate_twin import at, floats, slots


@pytest.mark.parametrize("pattern", ["random", "ascending", "descending", "few"])
def test_long_multiset_matches_a_sorted_list(pattern):
    rng = random.Random(7)
    values = OrderedValues(integer=True)
    values.resize(1)
    held: list[int] = []
    for step in range(12):
        fresh = [rng.randrange(1000 if pattern == "few" else 10**9) for _ in range(1500)]
        if pattern in ("ascending", "descending"):
            fresh.sort(reverse=pattern == "descending")
        values.add(at(0, fresh), np.array(fresh, np.int64))
        held += fresh
        rng.shuffle(held)
        gone, held = held[: 2900 if step % 3 == 2 else 300], held[2900 if step % 3 == 2 else 300 :]
        values.remove(at(0, gone), np.array(gone, np.int64))
        assert values.check()
        ranked = sorted(held)
        ranks = np.array([0, -1, len(ranked) // 2, *range(0, len(ranked), 97)], np.int64)
        found = values.select(np.zeros(len(ranks), np.int64), ranks)
        assert found.tolist() == [ranked[r] for r in ranks]
        assert values.size(slots(0))[0] == len(held)
        assert values.distinct(slots(0))[0] == len(set(held))
        starts, upper = values.upper(slots(0), 50)
        assert (starts.tolist(), upper.tolist()) == ([0, 50], ranked[::-1][:50])
        starts, upper = values.upper(slots(0), 2**40)
        assert (starts.tolist(), upper.tolist()) == ([0, len(ranked)], ranked[::-1])
    values.remove(at(0, held), np.array(held, np.int64))
    assert values.check()
    assert values.size(slots(0))[0] == 0


def test_sliding_events_do_not_let_memory_grow():
    events = OrderedEvents(integer=False)
    events.resize(1)
    block = np.arange(2000, dtype=np.int64)
    sizes = []
    for step in range(30):
        now = block + 2000 * step
        events.add(at(0, now), now * 0.5, now, now)
        if step >= 3:
            old = now - 6000
            events.remove(at(0, old), old * 0.5, old, old)
        assert events.check()
        sizes.append(events.nbytes)
    assert max(sizes[10:]) <= sizes[9] * 1.2
    assert events.size(slots(0))[0] == 6000
    assert [events.edge(slots(0), last)[0][0] for last in (False, True)] == [27000.0, 29999.5]


def test_merging_long_multisets_counts_together():
    rng = np.random.default_rng(2)
    values = OrderedValues(integer=False)
    values.resize(2)
    left, right = np.round(rng.normal(size=3000), 2), np.round(rng.normal(size=5000), 2)
    values.add(at(0, left), left)
    values.add(at(1, right), right)
    values.merge(slots(0), slots(1))
    assert values.check()
    _, found, counts = values.encode(slots(0))
    expected = Counter((left + 0.0).tolist() + (right + 0.0).tolist())
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == expected
    assert values.size(slots(1))[0] == 0


def test_zeros_are_one_value_and_nan_is_above_infinity():
    values = OrderedValues(integer=False)
    values.resize(1)
    held = [np.nan, -0.0, np.inf, 0.0, -np.inf, -np.nan, 5e-324, -5e-324]
    values.add(at(0, held), floats(held))
    assert values.distinct(slots(0))[0] == 6
    assert repr(values.select(at(0, held), np.arange(8)).tolist()) == (
        "[-inf, -5e-324, 0.0, 0.0, 5e-324, inf, nan, nan]"
    )
    values.remove(slots(0, 0), floats([np.nan, 0.0]))
    assert values.size(slots(0))[0] == 6


def test_wrong_types_lengths_and_slots_are_refused():
    values, events = OrderedValues(integer=False), OrderedEvents(integer=True)
    values.resize(1)
    events.resize(1)
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        values.add(slots(0), np.array([1], np.int64))
    with pytest.raises(TypeError):
        events.add(slots(0), floats([1.0]), slots(0), slots(0))
    with pytest.raises(IndexError):
        values.add(slots(1), floats([1.0]))
    with pytest.raises(ValueError, match="2 values"):
        events.add(slots(0), slots(1), slots(0, 1), slots(0))


@pytest.mark.parametrize(
    "change",
    [
        {"values": pa.array([[1.0, 2.0]], pa.large_list(pa.float64()))},
        {"counts": pa.array([[0]], pa.large_list(pa.int64()))},
        {"values": pa.array([["x"]], pa.large_list(pa.string()))},
        {"counts": pa.array([None], pa.large_list(pa.int64()))},
    ],
)
def test_loading_a_damaged_dump_is_a_state_error(change):
    bound = ra.max("x").bind((Float(),))
    state = bound.state(retractable=True)
    state.resize(1)
    state.add(slots(0), floats([1.0]))
    dump = state.dump(slots(0))
    damaged = dump | {f"max_{name}": array for name, array in change.items()}
    with pytest.raises(ra.StateError):
        state.load(slots(0), damaged)
