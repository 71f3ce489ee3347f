"""B-06: judging and naming schemas. The book's target for a check is 10 us."""

from __future__ import annotations

import timeit
from typing import TYPE_CHECKING

from ripple.schema import (
    Field,
    Float,
    Int,
    Int64,
    Schema,
    String,
    check_backward,
    check_full,
    fingerprint,
    layout_hash,
    notation,
    project,
)

if TYPE_CHECKING:
    from collections.abc import Callable

TARGET_NS = 10_000.0

V1 = Schema(
    "trade",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int()),
        Field("timestamp_ns", Int64()),
        Field("venue", String()),
    ),
    doc="Trade event from exchange",
)
V2 = Schema("trade", (*V1.fields, Field("condition", String(), optional=True)), 2, V1.doc)
TRADE = {
    "symbol": "AAPL",
    "price": 150.25,
    "size": 200,
    "timestamp_ns": 1709000001000000000,
    "venue": "XNAS",
}


def measure() -> list[dict[str, object]]:
    """Return one row per figure: nanoseconds per call, and what share of the target that is."""
    # Read back, so that no part of the two schemas is the same object.
    old, new = notation.loads(notation.dumps(V1)), notation.loads(notation.dumps(V2))
    to_new = project(old, new)
    return [
        _row("backward check, v1 to v2", lambda: check_backward(new, old)),
        _row("full check, v1 to v2", lambda: check_full(old, new)),
        _row("fingerprint, first time", lambda: fingerprint.__wrapped__(old)),
        _row("fingerprint, again", lambda: fingerprint(old)),
        _row("layout hash, again", lambda: layout_hash(old)),
        _row("prepare a projection, v1 to v2", lambda: project(old, new)),
        _row("project one trade, v1 to v2", lambda: to_new(TRADE)),
    ]


def _row(name: str, call: Callable[[], object]) -> dict[str, object]:
    timer = timeit.Timer(call)
    count, _ = timer.autorange()
    value = min(timer.repeat(5, count)) / count * 1e9
    return {
        "name": f"B-06 {name}",
        "value": value,
        "unit": "ns",
        "versus": "target 10 us",
        "ratio": value / TARGET_NS,
    }


if __name__ == "__main__":
    for row in measure():
        print(f"{row['name']:<42} {row['value']:>10.0f} {row['unit']}  {row['ratio']:.2f} x target")
