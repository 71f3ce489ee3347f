"""A pipeline of VWAPs by the minute, and trades for it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ripple.model.pipeline.file import load_plan
from tests.deploy.compose import ROOT

PLAN = load_plan(str(ROOT / "examples/vwap.py"))
_FIELDS = [
    ("symbol", pa.string()),
    ("price", pa.float64()),
    ("size", pa.int64()),
    ("timestamp_ns", pa.int64()),
    ("venue", pa.string()),
]


def trades(seconds: Sequence[int]) -> pa.RecordBatch:
    """Return a trade of each second."""
    rows = [
        {"symbol": "A", "price": 1.0 + s, "size": 1, "timestamp_ns": s * 10**9, "venue": "X"}
        for s in seconds
    ]
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema(_FIELDS))
