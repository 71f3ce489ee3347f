"""Key spaces of every shape against a dictionary of tuples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.model.keys.space import PairKeys, key_space, paired_space
from ripple.model.schema.types import Bool, Field, Int64, String

ARROW = {String: pa.string(), Int64: pa.int64(), Bool: pa.bool_()}
SHAPES = [
    (String,),
    (Int64,),
    (Bool,),
    (String, String),
    (String, Int64),
    (Int64, String, Bool),
    (String, String, String),
    (Int64, Bool, Int64),
    (Int64, Int64, Int64, Int64),
]


def _row(shape: tuple[type, ...]) -> st.SearchStrategy[tuple[object, ...]]:
    part = {
        String: st.sampled_from(["", "AAPL", "a much longer key than sixteen bytes", "é"]),
        Int64: st.integers(-2, 2),
        Bool: st.booleans(),
    }
    return st.tuples(*(part[t] for t in shape))


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_keys_of_every_shape_round_trip_and_are_freed(
    shape: tuple[type, ...], data: st.DataObject
) -> None:
    space = key_space([Field(f"k{i}", t()) for i, t in enumerate(shape)])
    model: dict[tuple[object, ...], int] = {}
    for rows in data.draw(st.lists(st.lists(_row(shape), min_size=1, max_size=8), max_size=6)):
        columns = [pa.array([r[i] for r in rows], ARROW[t]) for i, t in enumerate(shape)]
        slots = space.slots(columns)
        space.adopt(slots)
        for row, slot in zip(rows, slots.tolist(), strict=True):
            assert model.setdefault(row, slot) == slot
        live = np.array(list(model.values()), np.int64)
        arrays = [a.to_pylist() for a in space.arrays(live)]
        assert list(zip(*arrays, strict=True)) == list(model)
        assert len(set(space.hashes(live).tolist())) == len(model)
        gone = [r for r in dict.fromkeys(rows) if data.draw(st.booleans())]
        space.release(np.array([model.pop(r) for r in gone], np.int64))
    space.release(np.array(list(model.values()), np.int64))
    while isinstance(space, PairKeys):
        assert len(space.index) == 0
        assert space.right is None or len(space.right.index) == 0
        space = space.left
    assert len(space.index) == 0


def test_hashes_are_pinned() -> None:
    """Digests outlive processes and releases: the hash of a key must never change."""
    text, number = Field("symbol", String()), Field("window_start_ns", Int64())
    space = key_space([text, number])
    slots = space.slots([pa.array(["AAPL"]), pa.array([60])])
    assert space.hashes(slots).tolist() == [10188982615469395719]


def test_three_numbers_have_the_hashes_of_pairs() -> None:
    fields = [Field("id", Int64()), Field("open", Bool()), Field("window_start_ns", Int64())]
    columns = [pa.array([7, -1, 7]), pa.array([True, False, True]), pa.array([2**62, 0, 1])]
    one, nested = key_space(fields), paired_space(fields)
    slots = one.slots(columns)
    nested.adopt(nested.slots(columns))
    assert slots.tolist() == [0, 1, 2]
    assert one.hashes(slots).tolist() == nested.hashes(slots).tolist()
    assert one.known([column.slice(1) for column in columns]).tolist() == [1, 2]
    assert one.known([pa.array([8]), pa.array([True]), pa.array([0])]).tolist() == [-1]
    one.release(slots[:1])
    with pytest.raises(IndexError, match="slot 0 has no 3 numbers"):
        one.arrays(slots[:1])


@pytest.mark.parametrize("shape", [(), *SHAPES])
def test_no_rows_make_no_keys(shape: tuple[type, ...]) -> None:
    space = key_space([Field(f"k{i}", t()) for i, t in enumerate(shape)])
    columns = [pa.array([], ARROW[t]) for t in shape] or [np.empty(0)]

    assert len(space.slots(columns)) == 0
    assert len(space.index) == 0
