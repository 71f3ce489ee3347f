"""Exact, retractable aggregates, one family a file.

contract    what every aggregate is; parts: what states are made of
sums        count, sum, mean, vwap, over exact (accumulator.h, rounding.h) and integers
"""

from __future__ import annotations

from ripple.aggregate.contract import Aggregate, Bound, State
from ripple.aggregate.errors import AggregateError, IntegerRangeError, InverseError, StateError
from ripple.aggregate.sums import count, mean, sum, vwap  # noqa: A004 - users write rp.sum

__all__ = [
    "Aggregate",
    "AggregateError",
    "Bound",
    "IntegerRangeError",
    "InverseError",
    "State",
    "StateError",
    "count",
    "mean",
    "sum",
    "vwap",
]
