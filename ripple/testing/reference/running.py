"""Running values in plain Python: each from all rows of its key so far."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ripple.model.aggregate.quantiles import Quantile
from ripple.model.aggregate.spread import Spread
from ripple.model.expression.functions import exact
from ripple.model.pipeline.waiting_nodes import RunningScan
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
)
from ripple.model.schema.types import Decimal, Float, bare_type
from ripple.testing.reference.aggregates import Entry, results
from ripple.testing.reference.steps import RefusedRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.aggregate import Aggregate
    from ripple.model.pipeline.waiting_nodes import Scan
    from ripple.model.schema.types import Field
    from ripple.testing.reference.steps import Row

Came = tuple[int, Any]  # an event time, and a value


def with_running(node: RunningScan, rows: Sequence[tuple[int, Row]]) -> Row:
    """Return the last of the rows of a key, in their order, with its running values.

    Raises RefusedRow if a value cannot be computed.
    """
    added: Row = {}
    for name, of, read in node.columns:
        came = [(at, 1 if read is None else row[read.name]) for at, row in rows]
        try:
            added[name] = _value(of, read, came)
        except OverflowError as error:
            raise RefusedRow(node.name, f"{name}: {error}") from error
    return {**rows[-1][1], **added}


def divided(node: Scan, rows: Any, made: Row) -> list[Row] | None:
    """Return the parts of the last of the rows, which ``made`` is; None where none divides it."""
    if isinstance(node, RunningScan):
        for name, of, read in node.columns:
            if isinstance(of, Bar) and of.split and read is not None:
                parts = _parts(_every(of, read), [row[read.name] for _, row in rows])
                return [{**made, name: number, read.name: part} for number, part in parts]
    return None


def _parts(every: Any, values: Sequence[int | None]) -> list[tuple[int, int | None]]:
    """Return the bar and the share of each part of the last value, unit by unit."""
    number, filled = 0, 0
    parts: list[tuple[int, int | None]] = []
    for value in values:
        parts = []
        left = value
        while True:
            room = every - filled if (left or 0) > 0 else -every - filled
            share = left if left is None or abs(left) <= abs(room) else int(room)
            parts.append((number, share))
            if left is None or share is None:
                break
            filled, left = filled + share, left - share
            if abs(filled) >= every:
                number, filled = number + 1, 0
            if not left:
                break
    return parts


def _value(of: Running, read: Field | None, came: Sequence[Came]) -> Any:
    last = came[-1][1]
    if isinstance(of, Lag):
        return came[-1 - of.n][1] if len(came) > of.n else None
    if isinstance(of, Bar):
        return _bar(_every(of, read), [value for _, value in came])
    if last is None:
        return None
    there = [(at, value) for at, value in came if value is not None]
    values = [value for _, value in there]
    if isinstance(of, Ema):
        return _ema(of, there)
    if isinstance(of, Sum):
        return _so_far(values)
    if isinstance(of, Extreme):
        return _extreme(values, largest=of.largest)
    if isinstance(of, RollingQuantile | RollingSpread):
        return _aggregated(of, values[-of.n :])
    assert isinstance(of, Rolling), "no other functions"
    values = values[-of.n :]
    if of.what in ("min", "max"):
        return _extreme(values, largest=of.what == "max")
    return _mean(values) if of.what == "mean" else _sum(values)


def _aggregated(of: RollingQuantile | RollingSpread, values: Sequence[Any]) -> Any:
    """Return the value of the aggregate over all of the values."""
    if isinstance(of, RollingSpread):
        aggregate: Aggregate = Spread((of.x,), of.ddof, of.root)
    else:
        aggregate = Quantile((of.x,), "percentile", of.numerator, of.denominator, "linear")
    entries = [Entry((value + 0,), (at,)) for at, value in enumerate(values)]
    return results(aggregate, (Float(),), entries)[0]


def _extreme(values: Sequence[Any], *, largest: bool) -> Any:
    def key(value: Any) -> tuple[bool, Any]:
        return (True, 0) if value != value else (False, value)  # noqa: PLR0124 - NaN

    return (max if largest else min)(values, key=key) + 0


def _special(values: Sequence[Any]) -> float | None:
    """Return the sum of values if some are not finite, else None."""
    odd = [value for value in values if isinstance(value, float) and not math.isfinite(value)]
    return sum(odd) if odd else None


def _rounded(exactly: Fraction) -> float:
    try:
        return float(exactly)
    except OverflowError:
        return math.copysign(math.inf, exactly)


def _sum(values: Sequence[Any]) -> Any:
    if all(isinstance(value, int) for value in values):
        total = sum(values)
        if not -(2**63) <= total < 2**63:
            raise OverflowError("the sum has over 64 bits")
        return total
    special = _special(values)
    return _rounded(sum(map(Fraction, values), Fraction())) if special is None else special


def _so_far(values: Sequence[int]) -> int:
    total = 0
    for at, value in enumerate(values):
        if -(2**63) <= total + value < 2**63:
            total += value
        elif at == len(values) - 1:
            raise OverflowError("the sum has over 64 bits")
    return total


def _mean(values: Sequence[Any]) -> float:
    special = _special(values)
    if special is not None:
        return special
    return _rounded(sum(map(Fraction, values), Fraction()) / len(values))


def _every(of: Bar, read: Field | None) -> Any:
    """Return the size of a bar, of decimals in their units."""
    kind = None if read is None else bare_type(read.type)
    if isinstance(kind, Decimal):
        return int(Fraction(of.every) * 10**kind.scale)
    return of.every


def _ema(of: Ema, came: Sequence[Came]) -> float:
    mean, last_ns = float(came[0][1]), came[0][0]
    for at_ns, value in came[1:]:
        weight = of.alpha
        if weight is None:
            assert of.half_life_ns is not None, "one of both is given"
            half_lives = (at_ns - last_ns) / float(of.half_life_ns)
            weight = -exact.expm1(-(half_lives * 0.6931471805599453))
        mean, last_ns = mean + weight * (float(value) - mean), at_ns
    return mean


def _bar(every: Any, values: Sequence[Any]) -> int:
    """Return the number of the bar of the last row."""
    number, filled = 0, 0
    for at, value in enumerate(values):
        if at == len(values) - 1:
            break
        if value is None or value != value:  # noqa: PLR0124 - NaN
            continue
        filled += value
        if abs(filled) >= every:
            number, filled = number + 1, 0
    return number
