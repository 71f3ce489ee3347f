"""Running values of ``.scan(...)``: what a row's field follows from, with those before it.

functions  the functions that users call, what they take and give
"""

from __future__ import annotations

from ripple.model.running.functions import (
    Bar,
    Ema,
    Extreme,
    Lag,
    Rolling,
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
    rolling_min,
    rolling_sum,
)

__all__ = [
    "Bar",
    "Ema",
    "Extreme",
    "Lag",
    "Rolling",
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
    "rolling_min",
    "rolling_sum",
]
