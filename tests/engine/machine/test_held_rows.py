"""Rows that are held until a mark has passed them: the memory of others goes with those."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ripple.engine.operators.held_rows import HeldRows
from ripple.model.schema.types import Field, Float, String

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
    assert sum(part.get_total_buffer_size() for part in held.parts()) <= 2 * held.nbytes
