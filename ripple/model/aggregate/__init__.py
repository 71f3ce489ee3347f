"""Exact, retractable aggregates, one family a file.

contract    the interface of aggregates; parts, orders: the parts of states
sums        count, sum, mean, vwap: over the kernels exact (accumulator.h) and integers
spread      variance, stddev: over moments
extremes    min, max, top_k, count_distinct: over ordered (ordered.hpp), running, or plain
edges       first, last, ohlc: the same, by (event time, offset)
whole_rows  first_row, last_row, arg_min, arg_max: over one_row; top_rows: over best; of a table
            all over its held.hpp; by best_rows, and by best_texts for the others' texts;
            best_columns, strips: the columns of best and one_row
quantiles   median, percentile: over ordered and quantile
ordered_states  the states over ordered and running, which plans with sums alone do without
custom      users' own, in Python; inverse tests them, single feeds one by hand
"""

from __future__ import annotations

from ripple.model.aggregate.contract import Aggregate, Bound, State
from ripple.model.aggregate.custom import custom
from ripple.model.aggregate.edges import first, last, ohlc
from ripple.model.aggregate.errors import (
    AggregateError,
    IntegerRangeError,
    InverseError,
    StateError,
)
from ripple.model.aggregate.extremes import (
    count_distinct,
    max,  # noqa: A004 - users write rp.max
    min,  # noqa: A004 - users write rp.min
    top_k,
)
from ripple.model.aggregate.inverse import check_inverse
from ripple.model.aggregate.quantiles import median, percentile
from ripple.model.aggregate.single import Accumulator
from ripple.model.aggregate.spread import stddev, stddev_pop, variance, variance_pop
from ripple.model.aggregate.sums import count, mean, sum, vwap  # noqa: A004 - users write rp.sum
from ripple.model.aggregate.whole_rows import arg_max, arg_min, first_row, last_row, top_rows

__all__ = [
    "Accumulator",
    "Aggregate",
    "AggregateError",
    "Bound",
    "IntegerRangeError",
    "InverseError",
    "State",
    "StateError",
    "arg_max",
    "arg_min",
    "check_inverse",
    "count",
    "count_distinct",
    "custom",
    "first",
    "first_row",
    "last",
    "last_row",
    "max",
    "mean",
    "median",
    "min",
    "ohlc",
    "percentile",
    "stddev",
    "stddev_pop",
    "sum",
    "top_k",
    "top_rows",
    "variance",
    "variance_pop",
    "vwap",
]
