"""A pipeline whose code holds its process for as long as a record says, and what holds it."""

from __future__ import annotations

import time
from typing import Any

import ripple as rp

PROBE = 1_000_000
CALL, PYTHON = "one call", "Python"


@rp.record(version=1)
class Trade:
    """A trade as in ``bench.trades``; size: for how many ms it holds the process; venue: how."""

    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp
    venue: str


def in_one_call(seconds: float) -> None:
    """Compute for about so long in one call of C: no other thread gets a turn."""
    began_s = time.perf_counter()
    sum(range(PROBE))
    each_s = (time.perf_counter() - began_s) / PROBE
    sum(range(round(seconds / each_s)))


def in_python(seconds: float) -> None:
    """Compute for so long in Python: threads take turns."""
    until_s = time.perf_counter() + seconds
    while time.perf_counter() < until_s:
        pass


def held(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns, later."""
    for ms, how in zip(columns["size"], columns["venue"], strict=True):
        (in_one_call if how == CALL else in_python)(ms / 1000)
    return columns


pipeline = (
    rp.Pipeline("held")
    .source("trades", Trade)
    .map("held", held, into=Trade, batch=True)
    .partition("by-symbol", key="symbol")
    .fold("counts", n=rp.count())
    .sink("counted", of="counts")
)
