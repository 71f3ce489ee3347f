"""Batches with the columns that a source declares, each as if none had come before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.errors import InputError
from ripple.engine.kernels.columns import Columns, Layout
from ripple.engine.operators.admission import Declared, with_declared
from ripple.model.schema.exported import as_arrow


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
        assert made.schema.equals(expected.schema)
        rows = Columns(made, Layout(made.schema))
        for name in ("key", "size", "rate"):
            lent = rows.lent(name)
            assert lent is not None
            if name != "key" and not lent.has_nulls:
                assert np.asarray(lent).tolist() == expected[name].to_pylist()
        assert not rows.any_true("ripple.deleted") or given is NARROW
        half = made.num_rows // 2
        later = as_arrow(made.slice(half, made.num_rows - half))
        assert later.equals(expected.slice(half))
        assert as_arrow(made).equals(expected)


def test_a_batch_without_a_field_is_refused_after_one_with_it() -> None:
    declared = Declared(SOURCE)
    assert declared.of(PLAIN).num_rows == 2
    with pytest.raises(InputError, match=r"lacks the fields \['key'\]"):
        declared.of(PLAIN.drop_columns(["key"]))
