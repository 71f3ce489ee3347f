"""A pipeline with a user's functions, built alike by the tests and by another process."""

from __future__ import annotations

from typing import Any

import ripple.model.aggregate as rpa
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.plan import Plan
from ripple.model.records import Timestamp, record
from ripple.model.schema.types import Field, Float, Int64, Schema, String

TRADE = Schema(
    "trade",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int64()),
        Field("timestamp_ns", Int64()),
        Field("venue", String()),
    ),
)


@record
class Quote:
    symbol: str
    mid: float
    at: Timestamp


def to_quote(row: Any) -> Quote:
    return Quote(row.symbol, row.price * 0.5, row.timestamp_ns)


def venues(row: Any) -> Any:
    return row.venue in {"XNAS", "XNYS", "ARCX", "BATS", "IEXG"} and to_quote(row)


def mapped() -> Plan:
    return (
        Pipeline("mapped")
        .source("trades", TRADE)
        .map("venues", venues, into=TRADE)
        .map("quote", to_quote, into=Quote)
        .partition("p", key="symbol")
        .fold("f", m=rpa.mean("mid"))
        .sink("o")
        .plan()
    )


TRADES = "AAPL,150.0,100,1709000000000000000,XNAS\nAAPL,150.25,200,1709000001000000000,XNAS\n"
