"""Arrays by slot."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ripple.engine.snapshots.slot_arrays import order_by_slot

few = st.integers(0, 3)
slots = st.one_of(few, few.map(lambda x: x << 16 | 5), few.map(lambda x: x << 33 | x))


@given(st.lists(slots))
def test_slots_are_ordered_as_by_a_stable_sort_of_their_numbers(of: list[int]) -> None:
    found = order_by_slot(np.array(of, np.int64))
    assert found.tolist() == sorted(range(len(of)), key=of.__getitem__)
