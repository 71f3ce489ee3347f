"""Unchanged columns are read in place, and only as long as they are valid."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.engine.kernels.columns import Columns, Layout
from ripple.model.keys.index import KeyIndex
from ripple.model.schema.exported import Lent

BATCH = pa.record_batch(
    {
        "text": ["a", "bb", "a", "d"],
        "real": pa.array([1.5, None, 3.5, 4.5]),
        "whole": [1, 2, 3, 4],
        "flag": [True, False, True, False],
    }
)


def columns(batch: pa.RecordBatch = BATCH) -> Columns:
    return Columns(batch, Layout(batch.schema))


def test_lent_column_stays_readable_as_long_as_it_is_referenced() -> None:
    lent = columns(BATCH.slice(1, 2)).lent("whole")
    gc.collect()
    assert np.asarray(lent).tolist() == [2, 3]
    assert not lent.has_nulls
    assert columns().lent("real").has_nulls
    assert not columns(BATCH.slice(2)).lent("real").has_nulls


def test_no_more_is_lent_than_loops_can_read() -> None:
    assert columns().lent("flag") is None
    with pytest.raises(BufferError):
        memoryview(columns().lent("text"))
    with pytest.raises(KeyError):
        columns().lent("other")


def test_dropped_or_replaced_columns_are_not_lent() -> None:
    kept, replaced = columns(), columns()
    kept.keep(np.array([0, 3]))
    replaced.add({"whole": np.arange(4)})
    assert kept.lent("whole") is None
    assert kept["whole"].values.tolist() == [1, 4]
    assert replaced.lent("whole") is None
    assert replaced["whole"].tolist() == [0, 1, 2, 3]
    assert replaced.lent("text") is not None


def test_rows_left_are_those_of_every_layer() -> None:
    some = columns()
    some.keep(np.array([1, 2, 3]))
    some.add({"more": np.array([10, 20, 30])})
    some.keep(np.array([0, 2]))
    assert some["more"].tolist() == [10, 30]
    assert some["text"].to_pylist() == ["bb", "d"]
    assert some.valid("real").tolist() == [False, True]
    assert some.arrow("real").to_pylist() == [None, 4.5]
    assert list(some) == [*BATCH.schema.names, "more"]
    key = some.key("text")
    assert key.rows.tolist() == [1, 3]


@given(st.lists(st.text(max_size=20), max_size=40), st.data())
def test_texts_find_the_same_slots_wherever_they_lie(texts: list[str], data: st.DataObject) -> None:
    index = KeyIndex()
    slots = index.slots_of_texts(Lent.of(pa.array(texts, pa.string())))
    first = data.draw(st.integers(0, len(texts)))
    rows = np.array(data.draw(st.permutations(range(len(texts) - first))), np.int64)
    part = Lent.of(pa.array(["x", *texts], pa.string()).slice(1 + first))
    assert index.slots_of_texts(part).tolist() == slots[first:].tolist()
    assert index.slots_of_texts(part, rows).tolist() == slots[first:][rows].tolist()
    assert len(index) == len(set(texts))


@given(st.lists(st.sampled_from([None, False, True]), max_size=12), st.integers(0, 12))
def test_a_true_among_flags_is_found(flags: list[bool | None], at: int) -> None:
    batch = pa.record_batch({"flag": pa.array(flags, pa.bool_())}).slice(min(at, len(flags)))
    expected = any(batch.column(0).to_pylist())
    assert columns(batch).any_true("flag") is expected
    rows = columns(batch)
    rows.keep(np.arange(0, batch.num_rows, 2))
    assert rows.any_true("flag") is any(batch.column(0).to_pylist()[::2])
