"""Small trades and pipelines for the engine's tests."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.model.expression import col
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.plan import Plan
from ripple.model.window import Assigner, Trigger
from tests.records import Trade

SCHEMA = pa.schema(
    [
        ("symbol", pa.string()),
        ("price", pa.float64()),
        ("size", pa.int64()),
        ("timestamp_ns", pa.int64()),
        ("venue", pa.string()),
    ]
)

Row = tuple[str, float, int, int, str]

rows = st.lists(
    st.tuples(
        st.sampled_from(["AAPL", "GOOG", "IBM"]),
        st.sampled_from([0.1, 1e17, -1e17, 1.0, 100.25, 1e-300]),
        st.integers(1, 9),
        st.integers(0, 400),
        st.just("XNAS"),
    ),
    max_size=60,
)


def batch_of(events: list[Row]) -> pa.RecordBatch:
    """Return events as a record batch of trades."""
    columns = list(zip(*events, strict=True)) if events else [()] * len(SCHEMA)
    arrays = [pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def vwap_plan(
    assigner: Assigner | None = None,
    trigger: Trigger | None = None,
    *,
    lateness: int = 40,
    out_of_order: int = 10,
    total: bool = True,
    failing: bool = False,
) -> Plan:
    """Return VWAP by symbol (and window), and the sum of them by size class and over all.

    failing: rows of two trades cannot be computed, those of three not be folded, and groups of one
    row have no row.
    """
    pipeline = (
        Pipeline("test")
        .source("trades", Trade, out_of_order=out_of_order)
        .partition("by-symbol", key="symbol")
    )
    if assigner is not None:
        pipeline = pipeline.window("w", assigner, trigger=trigger, lateness=lateness)
    pipeline = pipeline.fold(
        "vwap",
        vwap=ra.vwap("price", "size"),
        total=ra.sum("price"),
        volume=ra.sum("size"),
        count=ra.count(),
    )
    if failing:
        pipeline = pipeline.derive("share", share=col("volume") // (col("count") - 2))
    if total:
        share = {"least": ra.min(col("volume") // (col("count") - 3))} if failing else {}
        pipeline = pipeline.partition("by-count", key="count").fold(
            "portfolio", worth=ra.sum("vwap"), symbols=ra.count(), **share
        )
    if total and failing:
        pipeline = pipeline.filter("several", col("count") % (col("symbols") - 1) >= 0)
    pipeline = pipeline.sink("rows", of="vwap")
    return (pipeline.sink("totals", of="portfolio") if total else pipeline).plan()
