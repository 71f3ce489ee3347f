"""Many keys at once against the key space and against a plain sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.engine.kernels.key_fields import KeyFields
from ripple.model.keys.space import key_space
from ripple.model.schema.types import Bool, Field, Int64, String

SHAPES = {
    "text": [Field("name", String())],
    "number": [Field("id", Int64())],
    "numbers": [Field("id", Int64()), Field("open", Bool()), Field("window_start_ns", Int64())],
    "several": [Field("name", String()), Field("open", Bool()), Field("window_start_ns", Int64())],
    "total": [],
}
VALUES = {
    "name": st.text(max_size=20),
    "id": st.integers(-(2**63), 2**63 - 1),
    "open": st.booleans(),
    "window_start_ns": st.integers(-2, 2),
}


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data(), bits=st.sampled_from([0, 3, 64]))
def test_keys_come_by_start_then_hash_then_key(shape: str, data: Any, bits: int) -> None:
    fields = SHAPES[shape]
    of = st.tuples(*(VALUES[field.name] for field in fields))
    keys = data.draw(st.lists(of, unique=True, max_size=150 if fields else 1))
    space = key_space(fields)
    columns = [pa.array([key[at] for key in keys]) for at in range(len(fields))]
    if not keys:
        return
    slots = space.slots(columns or [np.empty(1)])
    # The fewer bits of a hash there are, the more often keys must be compared.
    hashes = space.hashes(slots) >> np.uint64(64 - bits) if bits < 64 else space.hashes(slots)
    if bits == 0:
        hashes = np.zeros(len(keys), np.uint64)
    order = KeyFields(space).positions(slots, hashes)
    named = [dict(zip([field.name for field in fields], key, strict=True)) for key in keys]

    def rank(at: int) -> tuple[Any, ...]:
        own = [v.encode() if isinstance(v, str) else v for v in keys[at]]
        return (named[at].get("window_start_ns", 0), int(hashes[at]), *own)

    assert order.tolist() == sorted(range(len(keys)), key=rank)


def test_many_keys_whose_hashes_begin_alike_come_in_their_order() -> None:
    space = key_space([Field("key", Int64())])
    slots = space.slots([pa.array(range(300))])
    for step in (1, 7, 293):
        hashes = (np.arange(300, dtype=np.uint64) * np.uint64(step)) % np.uint64(300)
        order = KeyFields(space).positions(slots, hashes)
        assert order.tolist() == np.argsort(hashes).tolist()


def test_a_slot_that_was_never_handed_out_is_refused() -> None:
    space = key_space(SHAPES["several"])
    slots = space.slots([pa.array(["a"]), pa.array([True]), pa.array([0])])
    space.adopt(slots)
    for wrong in (-1, 1, 2**40):
        with pytest.raises(IndexError, match="outside"):
            KeyFields(space).positions(np.array([0, wrong]), np.zeros(2, np.uint64))
