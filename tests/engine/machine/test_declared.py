"""Batches with the columns that a source declares, each as if none had come before."""

from __future__ import annotations

import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.errors import InputError
from ripple.engine.operators.admission import Declared, with_declared


@rp.record
class Place:
    city: str
    code: int | None


@rp.record(version=1)
class Customer:
    key: str
    size: int
    rate: float | None
    home: Place | None


SOURCE = rp.Pipeline("shop").table("customers", Customer, key="key").sink("out").plan().source

PLAIN = pa.RecordBatch.from_pydict({"key": ["a", "b"], "size": [1, 2], "rate": [1.5, None]})
NESTED = pa.RecordBatch.from_pylist(
    [
        {"size": 1, "key": "a", "home": {"city": "x", "code": 1}},
        {"size": 2, "key": "b", "home": None},
    ]
)
NARROW = pa.RecordBatch.from_arrays(
    [pa.array(["c"]), pa.array([3], pa.int32()), pa.array([True])],
    ["key", "size", "ripple.deleted"],
)
OTHERS = pa.RecordBatch.from_pydict({"rate": [2.0], "more": ["z"], "size": [9], "key": ["d"]})
BATCHES = (PLAIN, NESTED, NARROW, OTHERS)


@pytest.mark.parametrize("first", BATCHES)
@pytest.mark.parametrize("then", BATCHES)
def test_a_batch_has_the_same_columns_after_any_other(
    first: pa.RecordBatch, then: pa.RecordBatch
) -> None:
    declared = Declared(SOURCE)
    for given in (first, first.slice(1), then, then):
        made, expected = declared.of(given), with_declared(given, SOURCE)
        assert made.equals(expected)
        assert made.schema.equals(expected.schema)


def test_a_batch_without_a_field_is_refused_after_one_with_it() -> None:
    declared = Declared(SOURCE)
    assert declared.of(PLAIN).num_rows == 2
    with pytest.raises(InputError, match=r"lacks the fields \['key'\]"):
        declared.of(PLAIN.drop_columns(["key"]))
