"""The running values that equal aggregates over the last rows of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.model.aggregate.extremes import Extreme
from ripple.model.aggregate.quantiles import Quantile
from ripple.model.aggregate.spread import Spread
from ripple.model.aggregate.sums import Mean, Sum
from ripple.model.running.functions import Rolling, RollingQuantile, RollingSpread, Running
from ripple.model.schema.types import Float, Int, Int64

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import FoldAggregate


def running_of(member: FoldAggregate, rows: int) -> Running | None:
    """Return the running value of an aggregate over the last rows; None where there is none.

    Values and rows are alike where no value is null.
    """
    of = member.aggregate
    if len(member.inputs) != 1 or not isinstance(member.inputs[0].type, Float | Int | Int64):
        return None
    (x,) = of.inputs
    match of:
        case Sum():
            return Rolling(x, "sum", rows)
        case Mean():
            return Rolling(x, "mean", rows)
        case Extreme():
            return Rolling(x, "max" if of.last else "min", rows)
        case Spread():
            return RollingSpread(x, rows, of.ddof, of.root)
        case Quantile() if of.method == "linear":
            return RollingQuantile(x, rows, of.numerator, of.denominator)
    return None
