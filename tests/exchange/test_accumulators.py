"""Whatever a fold of the next stage needs of a partition can be sent to it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.codec import arrow
from ripple.engine.machine import Engine
from ripple.exchange.edges import edges_of
from ripple.model.schema.arrow import to_arrow
from tests.engine.machine.ticks import Tick

NAMES = ("symbol", "price", "size", "venue", "timestamp_ns")
AGGREGATES = {
    "count": rp.count(),
    "sum of integers": rp.sum("volume"),
    "sum of floats": rp.sum("price"),
    "mean of integers": rp.mean("volume"),
    "vwap": rp.vwap("price", "volume"),
    "variance": rp.variance("price"),
    "variance of integers": rp.variance("volume"),
    "min": rp.min("price"),
    "max of integers": rp.max("volume"),
    "middle, as rows": rp.median("price"),
}


@pytest.mark.parametrize("name", AGGREGATES)
def test_changes_travel_as_they_are(name: str) -> None:
    plan = (
        rp.Pipeline("totals")
        .source("ticks", Tick)
        .partition("by-symbol", key="symbol")
        .fold("each", price=rp.vwap("price", "size"), volume=rp.sum("size"))
        .partition("everything", key=())
        .fold("all", value=AGGREGATES[name])
        .sink("out", of="all")
        .plan()
    )
    (edge,) = edges_of(plan).values()
    arrow.check_types(edge.schema)
    engine = Engine(plan, 0, ("ticks",), staged=True)
    rows = [("A", 1.5, 2**62, None, 0), ("B", 2.5, 2**62, None, 0), ("A", None, 7, None, 1)]
    records = pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in rows])
    (batch,) = records.cast(to_arrow(plan.source.schema).remove_metadata()).to_batches()
    engine.apply("ticks", batch, len(rows))
    engine.stabilize()
    (changes,) = engine.outgoing()
    assert changes.rows.num_rows
    assert arrow.loads(arrow.dumps(changes.rows), edge.schema).equals(changes.rows)
