"""Validation of whole batches finds an invalid row at any position."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import ripple as rp


@rp.record(version=1)
class Price:
    symbol: str
    price: float = rp.field(gt=0, lt=10, finite=True)


PLAN = (
    rp.Pipeline("screened")
    .source("prices", Price)
    .partition("by-symbol", key="symbol")
    .fold("total", total=rp.sum("price"))
    .sink("output")
    .plan()
)


@pytest.mark.parametrize("count", range(1, 8))
@pytest.mark.parametrize("bad", [math.nan, -math.nan, math.inf, -math.inf, 0.0, 10.0])
def test_float_out_of_bounds_is_refused_at_any_position(bad: float, count: int) -> None:
    for at in range(count):
        prices = [1.0 + i for i in range(count)]
        prices[at] = bad
        batch = pa.record_batch({"symbol": ["A"] * count, "price": prices})
        engine = rp.Engine(PLAN)
        assert [row.row for row in engine.apply("prices", batch, count)] == [at]
        assert engine.counters.applied == count - 1
