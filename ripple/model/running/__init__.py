"""Running values of ``.scan(...)``: functions of a row and the rows of its key before it.

functions   the functions that users call, with the types of fields and results
order_book  the order book as a step
position    positions of fills as a step
"""

from __future__ import annotations

from ripple.model.running.functions import (
    Bar,
    Ema,
    Extreme,
    Lag,
    Rolling,
    RollingQuantile,
    RollingSpread,
    Running,
    Sum,
    bar,
    cum_max,
    cum_min,
    cum_sum,
    ema,
    lag,
    rolling_max,
    rolling_mean,
    rolling_median,
    rolling_min,
    rolling_percentile,
    rolling_stddev,
    rolling_sum,
    rolling_variance,
)
from ripple.model.running.order_book import OrderBook
from ripple.model.running.position import Position

__all__ = [
    "Bar",
    "Ema",
    "Extreme",
    "Lag",
    "OrderBook",
    "Position",
    "Rolling",
    "RollingQuantile",
    "RollingSpread",
    "Running",
    "Sum",
    "bar",
    "cum_max",
    "cum_min",
    "cum_sum",
    "ema",
    "lag",
    "rolling_max",
    "rolling_mean",
    "rolling_median",
    "rolling_min",
    "rolling_percentile",
    "rolling_stddev",
    "rolling_sum",
    "rolling_variance",
]
