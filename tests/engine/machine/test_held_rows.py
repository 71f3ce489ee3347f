"""Rows that are held until a mark has passed them: the memory of others goes with those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.engine.kernels.stored import gathered
from ripple.engine.operators import held_rows
from ripple.engine.operators.held_rows import HeldRows
from ripple.model.schema.exported import Made
from ripple.model.schema.types import Field, Float, String
from tests.examples import EXAMPLES, SAMPLED

COUNT = 8192


def test_a_few_rows_that_are_ahead_hold_no_memory_of_others() -> None:
    held = HeldRows((Field("price", Float()), Field("symbol", String())))
    for turn in range(20):
        times = turn * COUNT + np.arange(COUNT)
        places, symbols = times.copy(), pa.array(["A"] * COUNT)
        times[::100] += 10**9
        columns = [pa.array(np.zeros(COUNT)), symbols, pa.array(times), pa.array(places)]
        held.add(pa.RecordBatch.from_arrays(columns, schema=held.schema))
        held.take_below((turn + 1) * COUNT)

    assert held.count == 20 * len(range(0, COUNT, 100))
    rows_alone = HeldRows((Field("price", Float()), Field("symbol", String())))
    (rows,) = held.parts()
    rows_alone.add(rows)
    assert held.nbytes <= 5 * rows_alone.nbytes


def test_more_text_than_fits_a_batch_is_given_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(schema: pa.Schema, count: int, parts: list[Any]) -> Made:
        if count > 3:
            raise OverflowError
        return gathered(schema, count, parts)

    monkeypatch.setattr(held_rows, "gathered", few)
    held = HeldRows((Field("symbol", String()),))
    assert held.parts() == []
    times = pa.array([3, 1, 2, 7, 6, 5, 4])
    columns = [pa.array(list("CABGFED")), times, pa.array(range(7))]
    held.add(pa.RecordBatch.from_arrays(columns, schema=held.schema))

    parts = held.parts()
    assert [part.num_rows for part in parts] == [3, 2, 2]
    assert [one for part in parts for one in part.column(0).to_pylist()] == list("ABCDEFG")


steps = st.lists(
    st.one_of(st.lists(st.integers(-30, 30), min_size=1, max_size=40), st.integers(-5, 15)),
    max_size=14,
)


@settings(max_examples=20 * EXAMPLES // SAMPLED)
@given(steps=steps, size=st.integers(0, 40))
def test_rows_are_taken_in_order_after_any_order_of_arrival(steps: Any, size: int) -> None:
    held, expected, mark, places = HeldRows(()), [], 0, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_rows, "_PASSED_ROWS_MAX", size)
        for step in [*steps, 1000]:
            if isinstance(step, list):
                times = [mark + max(at + n // 3, 0) for n, at in enumerate(step)]
                rows = list(zip(times, range(places, places + len(times)), strict=True))
                places += len(times)
                columns = [pa.array(column) for column in zip(*rows, strict=True)]
                held.add(pa.RecordBatch.from_arrays(columns, schema=held.schema))
                expected = sorted(expected + rows)
            else:
                mark += step
                below = [row for row in expected if row[0] < mark]
                expected = expected[len(below) :]
                taken = held.take_below(mark)
                assert below == ([] if taken is None else rows_of(taken))
            assert sorted(row for part in held.parts() for row in rows_of(part)) == expected
            assert held.count == len(expected)


def rows_of(batch: pa.RecordBatch) -> list[tuple[int, int]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
