"""The key index against a plain dictionary."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.model.keys.index import KeyIndex
from ripple.model.schema.exported import Lent
from tests.examples import EXAMPLES, THINNED

short_keys = st.binary(max_size=24)


def _texts(keys: list[bytes]) -> Lent:
    return Lent.of(pa.array(keys, pa.binary()).view(pa.string()))


@settings(max_examples=28 * EXAMPLES // THINNED)
@given(st.lists(st.tuples(st.booleans(), st.lists(short_keys, max_size=20)), max_size=12))
def test_adding_and_freeing_keys_matches_a_dictionary(
    steps: list[tuple[bool, list[bytes]]],
) -> None:
    index, model = KeyIndex(), {}
    for add, keys in steps:
        if add:
            slots = index.slots_of_texts(_texts(keys))
            for key, slot in zip(keys, slots.tolist(), strict=True):
                assert model.setdefault(key, slot) == slot
        else:
            gone = [k for k in dict.fromkeys(keys) if k in model]
            index.free(np.array([model.pop(k) for k in gone], np.int64))
        index.check_invariants()
        assert len(index) == len(model)
        assert sorted(model.values()) == index.live_slots().tolist()
    for key in {k for _, keys in steps for k in keys}:
        assert index.slot_of(key) == model.get(key, -1)
    offsets, data = index.bytes_at(np.array(list(model.values()), np.int64))
    assert [bytes(data[offsets[i] : offsets[i + 1]]) for i in range(len(model))] == list(model)


def test_more_keys_than_are_cached_are_found_as_a_dictionary_finds_them() -> None:
    """They are looked up by blocks, the table and the keys of each fetched before."""
    random = Random(3)
    known = [random.randbytes(random.randrange(24)) for _ in range(60_000)]
    index, model = KeyIndex(), dict[bytes, int]()
    for first in range(0, 60_000, 7_000):
        keys = known[first : first + 7_000] + random.sample(known[: first + 1], first // 9)
        random.shuffle(keys)
        slots = index.slots_of_texts(_texts(keys))
        for key, slot in zip(keys, slots.tolist(), strict=True):
            assert model.setdefault(key, slot) == slot
    rows = np.array([random.randrange(60_000) for _ in range(9_000)], np.int64)
    found = index.slots_of_texts(_texts(known), rows)
    assert found.tolist() == [model[known[row]] for row in rows.tolist()]
    assert len(index) == len(model) > 50_000
    index.check_invariants()


@given(st.lists(short_keys, unique=True), st.lists(short_keys), st.data())
def test_keys_of_another_index_are_found_as_their_texts_are(
    theirs: list[bytes], mine: list[bytes], data: st.DataObject
) -> None:
    other, index = KeyIndex(), KeyIndex()
    other.slots_of_texts(_texts(theirs))
    index.slots_of_texts(_texts(mine))
    chosen = data.draw(st.lists(st.sampled_from(range(len(theirs))) if theirs else st.nothing()))
    found = index.slots_of_same(other, np.array(chosen, np.int64))
    assert found.tolist() == index.slots_of_texts(_texts([theirs[at] for at in chosen])).tolist()
    other.free(other.live_slots())  # the added keys stay
    index.check_invariants()
    for freed in chosen[:1]:
        with pytest.raises(IndexError, match="no key"):
            index.slots_of_same(other, np.array([freed], np.int64))


def test_pairs_keep_both_halves() -> None:
    index = KeyIndex()
    a = np.array([1, -1, 1, 2**62], np.int64)
    b = np.array([5, 5, 6, -(2**62)], np.int64)
    slots = index.slots_of_pairs(a, b)
    assert len(set(slots.tolist())) == 4
    assert index.slots_of_pairs(a, b).tolist() == slots.tolist()
    first, second = index.pairs_at(slots)
    assert (first.tolist(), second.tolist()) == (a.tolist(), b.tolist())


def test_key_lives_as_long_as_its_uses() -> None:
    index = KeyIndex()
    slot = index.add(b"AAPL")
    index.retain(np.array([slot, slot]))
    assert index.drop_uses(np.array([slot])).tolist() == []
    assert index.drop_uses(np.array([slot])).tolist() == [slot]
    index.free(np.array([slot]))
    assert index.slot_of(b"AAPL") == -1
    assert index.add(b"GOOG") == slot


def test_a_million_keys_dropped_leave_no_growth() -> None:
    index = KeyIndex()
    values = np.arange(200_000, dtype=np.int64)
    index.free(index.slots_of_ints(values))
    held = index.nbytes
    for start in range(1, 6):
        index.free(index.slots_of_ints(values + start * 200_000))
    assert index.nbytes == held
    assert len(index) == 0
