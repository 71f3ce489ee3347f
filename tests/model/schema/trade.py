"""The schema of the examples in the documentation."""

from __future__ import annotations

from ripple.model.schema import (
    Bool,
    Case,
    Field,
    Float,
    Int,
    Int64,
    List,
    Opaque,
    Option,
    Record,
    Ref,
    Schema,
    String,
    Variant,
)

TRADE = Schema(
    "trade",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int()),
        Field("timestamp_ns", Int64()),
        Field("venue", String(), optional=True, doc="MIC"),
        Field("tags", List(Option(String())), optional=True),
        Field("leg", Record((Field("x", Bool()),)), optional=True),
        Field("kind", Variant((Case("A", (Int(), Ref("vwap"))), Case("B"))), optional=True),
        Field("raw", Opaque(), optional=True),
    ),
    doc="Trade event from exchange",
)
