"""B-06: judging and naming schemas. The book's target for a check is 10 us."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.row import Row, at_most
from bench.timing import in_turns
from ripple.model.schema import (
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

TARGET_NS = 10_000
COPY = "copying one trade (dict)"

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


def measure() -> list[Row]:
    # Read back, so that no part of the two schemas is the same object.
    old, new = notation.loads(notation.dumps(V1)), notation.loads(notation.dumps(V2))
    to_new = project(old, new)
    calls: dict[str, Callable[[], object]] = {
        COPY: lambda: dict(TRADE),
        "backward check, v1 to v2": lambda: check_backward(new, old),
        "full check, v1 to v2": lambda: check_full(old, new),
        "fingerprint, first time": lambda: fingerprint.__wrapped__(old),
        "fingerprint, again": lambda: fingerprint(old),
        "layout hash, again": lambda: layout_hash(old),
        "prepare a projection, v1 to v2": lambda: project(old, new),
        "project one trade, v1 to v2": lambda: to_new(TRADE),
    }
    took_ns = {name: seconds * 1e9 for name, seconds in in_turns(calls).items()}
    copy_ns = took_ns.pop(COPY)
    aims = {name: at_most(TARGET_NS) for name in took_ns if "check" in name}
    return [Row(name, ns, "ns", COPY, copy_ns, aims.get(name)) for name, ns in took_ns.items()]
