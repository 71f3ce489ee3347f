"""Columns of Arrow's as they are held, in canonical form, and back."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.engine.graph.canonical import Form, canonical, fingerprint

RECORD = pa.struct([("size", pa.int64()), ("name", pa.string()), ("a", pa.list_(pa.float64()))])
floats = st.floats(allow_nan=False)
records = st.fixed_dictionaries({
    "size": st.none() | st.integers(-(2**63), 2**63 - 1),
    "name": st.none() | st.text(max_size=4),
    "a": st.none() | st.lists(st.none() | floats, max_size=3),
})  # fmt: skip
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): st.text(max_size=20),
    pa.list_(pa.string()): st.lists(st.none() | st.text(max_size=20), max_size=4),
    pa.list_(pa.bool_()): st.lists(st.none() | st.booleans(), max_size=20),
    pa.list_(RECORD): st.lists(st.none() | records, max_size=4),
    RECORD: records,
}


def wide(of: pa.DataType) -> pa.DataType:
    """Return the type with offsets of 64 bits."""
    if of == pa.string():
        return pa.large_string()
    if pa.types.is_list(of):
        return pa.large_list(wide(of.value_type))
    if pa.types.is_struct(of):
        return pa.struct([(of.field(at).name, wide(of.field(at).type)) for at in range(len(of))])
    return of


@pytest.mark.parametrize("of", VALUES, ids=str)
@given(data=st.data())
def test_arrays_are_held_as_lists_of_their_values_are(of: pa.DataType, data: st.DataObject) -> None:
    listed = data.draw(st.lists(st.none() | VALUES[of], max_size=12))
    form = Form(of)
    held = form.written(listed)
    assert held.values == [None if value is None else canonical(value) for value in listed]
    assert held.fingerprints == [fingerprint(value) for value in listed]
    for kind in (of, wide(of)):
        # Not from the first value on, as a part of a larger array has it.
        array = pa.array([*listed[:1], *listed], kind)[len(listed[:1]) :]
        again = form.written(array)
        assert again.values == held.values
        assert again.fingerprints == held.fingerprints
    found = form.arrow(held)
    found.validate(full=True)
    assert found.equals(pa.array(listed, of))


def test_fields_of_a_null_record_are_not_null_themselves() -> None:
    """A field may say that it has no nulls, and Parquet's writer looks."""
    inner = pa.struct([pa.field("y", pa.int64(), False), pa.field("t", pa.string(), False)])
    form = Form(pa.struct([("x", inner)]))
    found = form.arrow(form.written([None, {"x": None}]))
    assert found.to_pylist() == [None, {"x": None}]
    assert found.field("x").null_count == 1
    assert [found.field("x").field(name).null_count for name in "yt"] == [0, 0]


def test_floats_that_no_text_tells_apart_stay_as_they_are() -> None:
    form = Form(pa.list_(pa.float64()))
    held = form.written([[0.0, -0.0, math.nan, 3]])
    values = form.arrow(held).to_pylist()[0]
    assert list(map(repr, values)) == ["0.0", "-0.0", "nan", "3.0"]


def test_values_of_another_type_are_refused() -> None:
    form = Form(RECORD)
    for value in ({"size": 1}, [], "a", {"size": "a", "name": "a", "a": []}):
        held = form.written([value])
        with pytest.raises(ValueError, match="another type"):
            form.arrow(held)
    with pytest.raises(TypeError, match="a column cannot hold date32"):
        Form(pa.date32())


def test_an_array_of_a_foreign_type_is_held_by_its_values() -> None:
    form = Form(pa.string())
    listed = ["a", None, "b"]
    held = form.written(pa.array(listed).dictionary_encode())
    assert form.arrow(held).to_pylist() == listed
