"""Functions over the items of lists: sums, the smallest and the largest one, and tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.functions.lists import ARROW, LIST
from ripple.model.expression.functions.wide_decimals import fitting, whole
from ripple.model.expression.program import NO_ROOM, OVERFLOWN
from ripple.model.expression.typed import Kind
from ripple.model.schema.logical.wide_decimals import stored_of, units_in

_LOW = (1 << 32) - 1


def _parts(lists: Any, kind: Kind) -> tuple[Any, Any]:
    """Return the items of all lists, and how many each has."""
    null = np.asarray(lists.is_null())
    lengths = np.diff(np.asarray(lists.offsets).astype(np.int64))
    return lists.flatten().cast(ARROW[kind]), np.where(null, 0, lengths)


def _pieces(values: list[Any], lengths: Any) -> Iterator[list[Any]]:
    """Yield the items of each list. values: of all of them."""
    ends = np.cumsum(lengths).tolist()
    return (values[begin:end] for begin, end in zip([0, *ends], ends, strict=False))


def _rows(lengths: Any) -> Any:
    return np.repeat(np.arange(len(lengths)), lengths)


def _contains(kind: Kind) -> Function:
    def columns(lists: Any, wanted: Any) -> Any:
        items, lengths = _parts(lists, kind)
        rows = _rows(lengths)
        each = pa.array(wanted, ARROW[kind]).take(pa.array(rows))
        equal = np.asarray(pc.fill_null(pc.equal(items, each), False))
        return np.bincount(rows[equal], minlength=len(lengths)) > 0

    def plain(value: list[Any], wanted: Any) -> bool:
        return any(one == wanted for one in value)

    takes = (*LIST, (kind,))
    return Function(f"list.contains.{kind.name.lower()}", takes, Kind.BOOL, plain, columns=columns)


def _ranks(items: Any, kind: Kind) -> Any:
    """Return numbers in the order of items: -0.0 comes before 0.0, and NaN after all numbers."""
    if kind is Kind.TEXT:
        order = np.asarray(pc.array_sort_indices(items))
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        return ranks
    numbers = np.asarray(items)
    if kind is Kind.INT:
        return numbers
    bits = numbers.view(np.int64)
    ordered = np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)
    return np.where(np.isnan(numbers), np.int64((1 << 63) - 1), ordered)


def _place(value: Any) -> Any:
    """Return the ranks by which items are compared, as ``_ranks``."""
    if not isinstance(value, float):
        return value
    return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))


def _extreme(name: str, kind: Kind, ufunc: Any, of: Callable[..., Any]) -> Function:
    def columns(lists: Any) -> Any:
        items, lengths = _parts(lists, kind)
        there = np.flatnonzero(lengths)
        if not len(there):
            return pa.nulls(len(lengths), ARROW[kind])
        ranks = _ranks(items, kind)
        starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
        best = ufunc.reduceat(ranks, starts[there])
        is_best = ranks == np.repeat(best, lengths[there])
        rows, at = np.unique(_rows(lengths)[is_best], return_index=True)
        places = np.zeros(len(lengths), np.int64)
        places[rows] = np.flatnonzero(is_best)[at]
        return items.take(pa.array(places, mask=lengths == 0))

    def plain(value: list[Any]) -> Any:
        return of(value, key=_place, default=None)

    function = f"list.{name}.{kind.name.lower()}"
    return Function(function, LIST, kind, plain, columns=columns, may_be_null=True)


def _summed(items: Any, lengths: Any) -> Any:
    """Return sums of int64, exact in two halves, and where 64 bits hold them."""
    ends = np.concatenate([[0], np.cumsum(lengths)])

    def each(numbers: Any) -> Any:
        running = np.concatenate([[0], np.cumsum(numbers)])  # of under 2^31 numbers of 32 bits
        return running[ends[1:]] - running[ends[:-1]]

    numbers = np.asarray(items)
    high, low = each(numbers >> 32), each(numbers & _LOW)
    high += low >> 32
    fits = (high >= -(1 << 31)) & (high < 1 << 31)
    return np.where(fits, high, 0) << 32 | (low & _LOW), fits


def _int_sums(lists: Any) -> Any:
    sums, fits = _summed(*_parts(lists, Kind.INT))
    return np.where(fits, sums, 0), np.where(fits, 0, OVERFLOWN).astype(np.uint8)


def exact_sum(values: list[float]) -> float:
    """Return the sum of floats, rounded once; beyond the largest one infinite.

    It has the same bits in any order of the values: there is one NaN.
    """
    try:
        total = math.fsum(values)
        return math.nan if math.isnan(total) else total
    except ValueError:  # infinities of both signs
        return math.nan
    except OverflowError:
        special = [value for value in values if not math.isfinite(value)]
        if special:
            return special[0] if all(value == special[0] for value in special) else math.nan
        exact = sum(map(Fraction, values))
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf


def _float_sums(lists: Any) -> Any:
    items, lengths = _parts(lists, Kind.FLOAT)
    return np.array(list(map(exact_sum, _pieces(np.asarray(items).tolist(), lengths))), np.float64)


def _wide_sums(lists: Any) -> Any:
    items, lengths = _parts(lists, Kind.TEXT)
    units, beyond = fitting(list(map(sum, _pieces(whole(units_in(items)), lengths))))
    return stored_of(units), beyond * np.uint8(NO_ROOM)


def _int_sum(value: list[int]) -> int:
    return sum(value)


LIST_FOLDS = table(
    *(_contains(kind) for kind in ARROW),
    *(
        _extreme(name, kind, ufunc, of)
        for kind in (Kind.FLOAT, Kind.INT, Kind.TEXT)
        for name, ufunc, of in (("min", np.minimum, min), ("max", np.maximum, max))
    ),
    Function("list.sum.int", LIST, Kind.INT, _int_sum, columns=_int_sums),
    Function("list.sum.float", LIST, Kind.FLOAT, exact_sum, columns=_float_sums),
    Function("list.sum.wide", LIST, Kind.TEXT, columns=_wide_sums),
)
