"""Every aggregate from scratch over a list of values: fractions, sorted lists, one rounding.

Nothing is kept between two calls, so nothing can drift: the incremental states of
:mod:`ripple.model.aggregate` must equal these, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ripple.core.errors import PlanError
from ripple.model.aggregate.contract import Aggregate
from ripple.model.aggregate.custom import Custom
from ripple.model.aggregate.edges import Edge, Ohlc, UnnamedOhlc
from ripple.model.aggregate.errors import AggregateError, IntegerRangeError, WideRangeError
from ripple.model.aggregate.extremes import CountDistinct, Extreme, TopK
from ripple.model.aggregate.quantiles import Quantile
from ripple.model.aggregate.spread import Spread
from ripple.model.aggregate.sums import Count, Mean, Sum, Vwap
from ripple.model.aggregate.whole_rows import ArgExtreme, EdgeRow, NewestRow, TopRows, WholeRows
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import FieldType, Logical, WideDecimal, bare_type
from ripple.testing.reference.expressions import is_int64, python_type


class ResultFailed(Exception):  # noqa: N818  # not an error of the program: the group's fate
    """A user's aggregate has no result for its group."""


@dataclass(frozen=True)
class Entry:
    """One row as an aggregate sees it: its inputs, and its place in time or in a table.

    Only optional inputs may be null.
    """

    values: tuple[Any, ...]
    place: tuple[Any, ...] = ()

    @property
    def value(self) -> Any:
        """The first input."""
        return self.values[0]


Entries = Sequence[Entry]
Twin = Callable[[Any, Entries], Any]

_TWINS: dict[type[Aggregate], Twin] = {}


def twin(of: type[Aggregate]) -> Callable[[Twin], Twin]:
    """Register the decorated function as the twin of aggregate class ``of``, over a list of rows.

    It takes the aggregate and its rows, and returns the result, None where there is none; of
    several results a list.
    """

    def known(function: Twin) -> Twin:
        _TWINS[of] = function
        return function

    return known


def results(aggregate: Aggregate, types: Sequence[FieldType], entries: Entries) -> list[Any]:
    """Return the results of an aggregate in order, of ``types``; None where there is none."""
    if type(aggregate) not in _TWINS:
        kind = type(aggregate).__name__
        raise PlanError(f"{kind} has no twin to be compared with: see ripple.testing.twin")
    if isinstance(aggregate, Sum) and isinstance(types[0], WideDecimal):
        return [_wide_sum(entries)]
    found = _TWINS[type(aggregate)](aggregate, entries)
    if isinstance(aggregate, Custom) and isinstance(bare := bare_type(types[0]), Logical):
        return [None if found is None else rule_of(bare).number(found)]
    columns = found if len(types) > 1 else [found]
    return [_typed(value, of) for value, of in zip(columns, types, strict=True)]


def _typed(value: Any, of: FieldType) -> Any:
    kind = python_type(of)
    if value is None or kind not in (bool, int, float):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) is (kind is bool):
        if isinstance(value, kind):
            return value
        if kind is float and isinstance(value, int) and int(float(value)) == value:
            return float(value)
    raise AggregateError(f"a result must be {kind.__name__}, not {value!r}")


@twin(Count)
def _count(_: Count, entries: Entries) -> int:
    return len(entries)


@twin(Sum)
def _sum(_: Sum, entries: Entries) -> Any:
    values = _values(entries)
    if any(isinstance(value, float) for value in values):
        return float_sum(values)
    total = sum(values)
    if not is_int64(total):
        raise IntegerRangeError(total, 0)
    return total


def _wide_sum(entries: Entries) -> str:
    total = sum(int(value, 16) - 2**127 for value in _values(entries))
    if abs(total) >= 10**38:
        raise WideRangeError(total, 0)
    return format(total + 2**127, "032x")


@twin(Mean)
def _mean(_: Mean, entries: Entries) -> float | None:
    values = _values(entries)
    if not values:
        return None
    special = not_finite(values)
    return rounded(exact_sum(values) / len(values)) if special is None else special


@twin(Vwap)
def _vwap(_: Vwap, entries: Entries) -> float | None:
    sizes = [size for _, size in (entry.values for entry in entries)]
    products = [float(price) * float(size) for price, size in (e.values for e in entries)]
    special = not_finite(sizes)
    if special is not None:
        return float_sum(products) / special
    total = exact_sum(sizes)
    if total == 0:
        return None
    special = not_finite(products)
    if special is not None:
        return special / rounded(total)
    return rounded(exact_sum(products) / total)


@twin(Spread)
def _spread(aggregate: Spread, entries: Entries) -> float | None:
    values = _values(entries)
    n, ddof = len(values), aggregate.ddof
    if n <= ddof or not n:
        return None
    if not_finite(values) is not None:
        return math.nan
    squares = exact_sum(Fraction(value) ** 2 for value in values)
    variance = (n * squares - exact_sum(values) ** 2) / (n * (n - ddof))
    return root(variance) if aggregate.root else rounded(variance)


@twin(Extreme)
def _extreme(aggregate: Extreme, entries: Entries) -> Any:
    return _ranked(entries)[-1 if aggregate.last else 0] if entries else None


@twin(TopK)
def _top_k(aggregate: TopK, entries: Entries) -> list[Any]:
    return _ranked(entries)[::-1][: aggregate.k]


@twin(CountDistinct)
def _count_distinct(_: CountDistinct, entries: Entries) -> int:
    return len({_order(value) for value in _values(entries)})


@twin(Edge)
def _edge(aggregate: Edge, entries: Entries) -> Any:
    if not entries:
        return None
    in_time = sorted(entries, key=lambda entry: entry.place)
    return in_time[-1 if aggregate.last else 0].value


@twin(Ohlc)
@twin(UnnamedOhlc)
def _ohlc(_: Ohlc, entries: Entries) -> list[Any]:
    if not entries:
        return [None] * 4
    in_time = sorted(entries, key=lambda entry: entry.place)
    ranked = _ranked(entries)
    return [in_time[0].value, ranked[-1], ranked[0], in_time[-1].value]


@twin(NewestRow)
def _newest_row(aggregate: NewestRow, entries: Entries) -> Any:
    return _fields_of(aggregate, max(entries, key=lambda entry: entry.place[1:], default=None))


@twin(EdgeRow)
def _edge_row(aggregate: EdgeRow, entries: Entries) -> Any:
    in_time = sorted(entries, key=lambda entry: _place(entry, entry.values))
    return _fields_of(aggregate, in_time[-1 if aggregate.last else 0] if in_time else None)


@twin(ArgExtreme)
def _arg_extreme(aggregate: ArgExtreme, entries: Entries) -> Any:
    if not entries:
        return _fields_of(aggregate, None)
    ends = [_order(value) for value in _values(entries)]
    wanted = max(ends) if aggregate.last else min(ends)
    equal = [entry for entry in entries if _order(entry.value) == wanted]
    return _fields_of(aggregate, sorted(equal, key=_row_place)[0])


@twin(TopRows)
def _top_rows(aggregate: TopRows, entries: Entries) -> list[Any]:
    by_place = sorted(entries, key=_row_place)
    ranked = sorted(by_place, key=lambda entry: _order(entry.value), reverse=True)
    rows = [entry.values[1:] for entry in ranked[: aggregate.n]]
    if len(aggregate.names) == 1:
        return [value for (value,) in rows]
    return [dict(zip(aggregate.names, row, strict=True)) for row in rows]


@twin(Quantile)
def _quantile(aggregate: Quantile, entries: Entries) -> Any:
    if not entries:
        return None
    share = Fraction(aggregate.numerator, aggregate.denominator)
    ranked = _ranked(entries)
    if aggregate.method == "nearest-rank":
        return ranked[max(math.ceil(share * len(ranked)) - 1, 0)]
    place = (len(ranked) - 1) * share
    low, high = ranked[int(place)], ranked[min(int(place) + 1, len(ranked) - 1)]
    weight = place - int(place)
    if math.isfinite(low) and math.isfinite(high):
        return rounded(Fraction(low) * (1 - weight) + Fraction(high) * weight)
    return float(low) if weight == 0 else float(low) + float(high)


@twin(Custom)
def _custom(aggregate: Custom, entries: Entries) -> Any:
    state = aggregate.init()
    for entry in entries:
        state = aggregate.step(state, *entry.values)
    try:
        return aggregate.read(state)
    except Exception as error:  # any error of a user's function
        raise ResultFailed(f"{type(error).__name__}: {error}") from error


# --- numbers ---


def rounded(value: Fraction) -> float:
    """Return the nearest double: Python's integer division rounds the exact quotient once."""
    if value == 0:
        return 0.0
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def exact_sum(values: Any) -> Fraction:
    """Return the exact sum of finite numbers."""
    return sum((Fraction(value) for value in values), Fraction(0))


def not_finite(values: Sequence[float]) -> float | None:
    """Return the sum if a NaN or an infinity among the terms decides it, else None."""
    if any(math.isnan(value) for value in values):
        return math.nan
    signs = {value > 0 for value in values if math.isinf(value)}
    if not signs:
        return None
    return math.nan if len(signs) == 2 else math.inf if signs.pop() else -math.inf


def float_sum(values: Sequence[float]) -> float:
    """Return the exact sum, rounded once; as ``math.fsum`` where that does not overflow inside."""
    special = not_finite(values)
    return rounded(exact_sum(values)) if special is None else special


def root(value: Fraction) -> float:
    """Return the double nearest to the square root: 200 bits of it, and whether more follow."""
    if value == 0:
        return 0.0
    shift = max(0, 200 + value.denominator.bit_length() - value.numerator.bit_length()) // 2
    whole = math.isqrt((value.numerator << 2 * shift) // value.denominator)
    inexact = Fraction(whole, 2**shift) ** 2 != value
    return rounded(Fraction(2 * whole + inexact, 2 ** (shift + 1)))


def _values(entries: Entries) -> list[Any]:
    return [entry.value for entry in entries]


def _order(value: Any) -> tuple[int, Any]:
    """Return the place of a value in the order of min and max: NaN above all, one zero."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return (0, value)


def _row_place(entry: Entry) -> tuple[Any, ...]:
    return _place(entry, entry.values[1:])


def _place(entry: Entry, fields: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row's sort key: the place, then the fields, null before any value."""
    known = [(value is not None, value if value is None else _order(value)) for value in fields]
    return tuple(_order(part) for part in entry.place), known


def _fields_of(aggregate: WholeRows, entry: Entry | None) -> Any:
    count = len(aggregate.names)
    fields = [None] * count if entry is None else list(entry.values[-count:])
    return fields if count > 1 else fields[0]


def _ranked(entries: Entries) -> list[Any]:
    values = sorted(_values(entries), key=_order)
    return [value + 0.0 if isinstance(value, float) else value for value in values]
