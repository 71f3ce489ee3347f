"""Columns from users' code: judged as a whole by their dtype, or value by value."""

from __future__ import annotations

import math
from decimal import Decimal as Exact
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.errors import SchemaError
from ripple.model.schema.columns import called, fitted, objects, records_of
from ripple.model.schema.types import (
    Bool,
    Date,
    DateTime,
    Decimal,
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Option,
    String,
)
from ripple.model.schema.values import value_of

NUMBERS = {Float(): np.float64, Int64(): np.int64, Bool(): np.bool_}


def listed(given: Any, of: FieldType) -> list[Any]:
    """Return the values, None where null, and the word "misfit" where a value is none."""
    found = fitted(given, of, "x")
    values = found.values if isinstance(found.values, list) else found.values.tolist()
    valid = [True] * len(values) if found.valid is None else found.valid.tolist()
    assert not any(valid[row] for row in found.misfits)
    return [
        "misfit" if row in found.misfits else value if ok else None
        for row, (value, ok) in enumerate(zip(values, valid, strict=True))
    ]


DAYS = np.array(["1970-01-02", "9999-12-31", "10000-01-01"], "datetime64[D]")


@pytest.mark.parametrize(
    ("of", "array", "expected"),
    [
        (Date(), DAYS, [1, 2_932_896, "misfit"]),
        (Date(), np.ma.array(DAYS, mask=[True, False, True]), [None, 2_932_896, None]),
        (Date(), pa.array([1, 2_932_897, None], pa.date32()), [1, "misfit", None]),
        (Date(), pa.array([86_400_000, 1, 10**16], pa.date64()), [1, "misfit", "misfit"]),
        (DateTime(), pa.array([1, 10**12, None], pa.timestamp("s")), [10**9, "misfit", None]),
        (Decimal(4, 2), np.array([99, 100], np.uint8), [9900, "misfit"]),
        (
            Decimal(4, 2),
            pa.array([Exact("1.50"), Exact("0.001"), Exact("1e9"), None], pa.decimal128(20, 3)),
            [150, "misfit", "misfit", None],
        ),
        (Float(), np.array([1.5, math.inf], np.float32), [1.5, math.inf]),
        (Float(), np.array([1, 2], ">i4"), [1.0, 2.0]),
        (Float(), np.arange(6.0)[::3], [0.0, 3.0]),
        (Float(), np.array([1 << 53, (1 << 53) + 1, (1 << 63) - 1]), [2.0**53, "misfit", "misfit"]),
        (Float(), np.array([1 << 63, (1 << 64) - 1], np.uint64), [2.0**63, "misfit"]),
        (Int64(), np.array([1, (1 << 63) - 1, 1 << 63], np.uint64), [1, (1 << 63) - 1, "misfit"]),
        (Int64(), np.array([-1], np.int8), [-1]),
        (Int64(), np.ma.array([1, 2], mask=[False, True]), [1, None]),
        (Int64(), np.ma.array([1, 1 << 63], np.uint64, mask=[False, True]), [1, None]),
        (Int64(), np.array([1, None, 2.0, True, "3"], object), [1, None] + ["misfit"] * 3),
        (Int64(), [1, None, 2.0], [1, None, "misfit"]),
        (Int64(), [1, 1 << 63], [1, "misfit"]),
        (Int64(), range(2), [0, 1]),
        (Bool(), np.array([True, False]), [True, False]),
        (Bool(), [True, 1, None], [True, "misfit", None]),
        (String(), np.array(["a", "ä"]), ["a", "ä"]),
        (String(), ["a", "\ud800", b"b", None, 1], ["a", "misfit", "misfit", None, "misfit"]),
        (String(), np.ma.array(["a", "b"], mask=[True, False]), [None, "b"]),
        (List(Int()), [[1], (2,), [2.5], None], [[1], [2], "misfit", None]),
        (Int64(), pa.array([1, None], pa.int8()), [1, None]),
        (Int64(), pa.chunked_array([[1], [2]]), [1, 2]),
        (Float(), pa.array([1, (1 << 53) + 1]), [1.0, "misfit"]),
        (Float(), pa.array([1.5, None], pa.float32()), [1.5, None]),
        (Bool(), pa.array([True, None]), [True, None]),
        (String(), pa.array(["a", None]).dictionary_encode(), ["a", None]),
        (String(), pa.array([b"a"]), ["misfit"]),
        (Int64(), pa.nulls(2), [None, None]),
        (Int64(), np.array([]), []),
        (String(), np.array([]), []),
    ],
)
def test_fitting_values_are_kept_and_misfits_named(
    of: FieldType, array: Any, expected: list[Any]
) -> None:
    found = listed(array, of)
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]
    assert listed(array, Option(of)) == expected
    if of in NUMBERS:
        assert fitted(array, of, "x").values.dtype == NUMBERS[of]


@pytest.mark.parametrize(
    ("of", "array", "reason"),
    [
        (Int(), np.array([5.0]), r"must be an int, not an array of float64: divide with //"),
        (Int(), pa.array([5.0]), "not an array of float64: divide with //"),
        (Int(), np.array(["7"]), "not an array of <U1"),
        (Int(), np.array([True]), "not an array of bool"),
        (Int(), np.zeros(1, "M8[D]"), r"not an array of datetime64\[D\]"),
        (Int(), np.zeros(1, "m8[ns]"), r"not an array of timedelta64\[ns\]"),
        (Int(), pa.array([0], pa.timestamp("ns")), r"not an array of timestamp\[ns\]"),
        (Float(), np.array([1j]), "not an array of complex128"),
        (Float(), np.zeros(1, np.longdouble), "must be a float, not an array of"),
        (Float(), np.zeros(1, [("a", "f8")]), "must be a float, not an array of"),
        (Bool(), np.array([1]), "must be a bool, not an array of int64"),
        (String(), np.array([1]), "must be a text, not an array of int64"),
        (String(), np.array([b"a"]), r"must be a text, not an array of \|S1"),
        (List(Int()), np.zeros((1, 1), int), "a flat array, not one of 2 dimensions"),
        (Int(), np.int64(1), "must be an array, not"),
        (Int(), 1, "must be an array, not 1"),
        (Int(), None, "must be an array, not None"),
        (Int(), {0: 1}, "must be an array"),
        (Int(), {1}, "must be an array"),
        (Int(), iter([1]), "must be an array"),
        (String(), "a", "must be an array, not 'a'"),
        (Int(), np.zeros(2, int), "must have 1 values, not 2"),
    ],
)
def test_column_of_another_type_is_refused_as_a_whole(
    of: FieldType, array: Any, reason: str
) -> None:
    with pytest.raises(SchemaError, match=f"^the field 'n' .*{reason}"):
        fitted(array, of, "the field 'n'", 1)


def test_arrow_text_that_is_no_utf8_is_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 3], np.int32))
    text = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"A\xff\xfe")])
    with pytest.raises(SchemaError, match="beyond UTF-8"):
        fitted(text, String(), "x")


WHOLE = st.integers(-(1 << 65), 1 << 65) | st.sampled_from(
    [sign * ((1 << power) + by) for sign in (1, -1) for power in (53, 62, 63) for by in (-1, 0, 1)]
)


@given(st.lists(WHOLE, max_size=6), st.sampled_from([Int64(), Float()]))
def test_arrays_and_lists_are_judged_as_each_value_is(values: list[int], of: FieldType) -> None:
    expected = []
    for value in values:
        try:
            expected.append(value_of(value, of, "x"))
        except SchemaError:
            expected.append("misfit")
    assert listed(values, of) == expected
    assert listed(objects(values), of) == expected
    for dtype in (np.int64, np.uint64):
        limits = np.iinfo(dtype)
        fits = [limits.min <= value <= limits.max for value in values]
        chosen = [value for value, ok in zip(values, fits, strict=True) if ok]
        kept = [value for value, ok in zip(expected, fits, strict=True) if ok]
        assert listed(np.array(chosen, dtype), of) == kept


def test_columns_are_not_copied_needlessly() -> None:
    for array, of in ((np.zeros(3), Float()), (np.zeros(3, np.int64), Int())):
        assert np.shares_memory(fitted(array, of, "x").values, array)


def test_a_function_gets_arrays_that_it_can_only_read() -> None:
    prices = np.array([1.0, 2.0])
    names = objects(["a", "b"])

    def in_place(columns: dict[str, Any]) -> None:
        columns["price"] *= 2

    with pytest.raises(ValueError, match=r"read-only.*compute new arrays, .*or change a copy"):
        called(in_place, {"price": prices})
    with pytest.raises(ValueError, match="read-only"):
        called(lambda columns: columns["name"].sort(), {"name": names})
    with pytest.raises(ValueError, match=r"^mine$"):
        called(lambda _: (_ for _ in ()).throw(ValueError("mine")), {"price": prices})
    assert called(lambda columns: columns["price"] * 2, {"price": prices}).tolist() == [2.0, 4.0]
    assert prices.flags.writeable
    assert (prices.tolist(), names.tolist()) == ([1.0, 2.0], ["a", "b"])


def test_mappings_become_records_or_name_the_row_and_the_field() -> None:
    fields = (Field("n", Int()), Field("x", Float(), optional=True), Field("k", String()))
    rows = [{"n": 1, "x": 2, "k": "a"}, {"n": np.int64(2), "k": None, "more": 1}]
    assert records_of(rows, fields).to_pylist() == [
        {"n": 1, "x": 2.0, "k": "a"},
        {"n": 2, "x": None, "k": None},
    ]
    assert records_of([], fields).num_rows == 0
    for bad, reason in (({"n": 1.5}, "'n' must be an int, not 1.5"), ({"k": 1}, "'k' must be a")):
        with pytest.raises(SchemaError, match=f"row 1: the field {reason}"):
            records_of([rows[0], {**rows[0], **bad}], fields)
