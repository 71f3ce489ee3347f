"""States of ordered parts: of one part, of one end, of candles, and the rules of quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ripple.model.aggregate.contract import Column, Slots, Values, is_integer
from ripple.model.aggregate.orders import (
    NumberValues,
    edges,
    end_of,
    extremes,
    ordered_events,
    ordered_values,
    taken,
)
from ripple.model.aggregate.parts import PartsState
from ripple.model.aggregate.quantile import interpolate, positions
from ripple.model.schema.types import FieldType

if TYPE_CHECKING:
    import pyarrow as pa

Rule: TypeAlias = "Callable[[NumberValues, Slots, int, int], Column]"
"""Returns the values at a place, numerator / denominator, of those of each slot."""


class OrderedState(PartsState):
    """A state of ordered parts, and the way to read them."""

    def __init__(self, read: Callable[[Slots], tuple[Column, ...]], **parts: Any) -> None:
        super().__init__(**parts)
        self._takers = tuple(parts.values())
        self._read = read

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each value (or event) to its slot."""
        for part in self._takers:
            part.add(slots, *values)

    def remove(self, slots: Slots, *values: Values) -> None:
        """Take each value (or event) out of its slot; raises ``AggregateError`` if absent."""
        for part in self._takers:
            part.remove(slots, *values)

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read the columns."""
        return self._read(slots)


class ExtremeState(OrderedState):
    """One end of the values of each slot."""

    def __init__(self, name: str, of: FieldType, *, last: bool, retractable: bool) -> None:
        self._end = name, of, last
        part, read = extremes(of, last=last, retractable=retractable)
        super().__init__(lambda slots: (read(slots),), **{name: part})

    def dump_partial(self, slots: Slots) -> dict[str, pa.Array]:
        """Return the value that decides, alone."""
        name, of, last = self._end
        values, valid = self.result(slots)
        assert valid is not None
        held = np.flatnonzero(valid)
        deciding = ExtremeState(name, of, last=last, retractable=False)
        deciding.resize(len(slots))
        if len(held):
            deciding.add(held, taken(values, held))
        return deciding.dump(np.arange(len(slots)))


class CandleState(PartsState):
    """Parts that order events by time, parts that order values, and the four reads."""

    def __init__(
        self,
        timed: dict[str, Any],
        valued: dict[str, Any],
        reads: tuple[Callable[[Slots], Column], ...],
    ) -> None:
        super().__init__(**timed, **valued)
        self._timed, self._valued, self._reads = timed.values(), valued.values(), reads

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each event to its slot."""
        for part in self._timed:
            part.add(slots, *values)
        for part in self._valued:
            part.add(slots, values[0])

    def remove(self, slots: Slots, *values: Values) -> None:
        """Take each event out of its slot; raises ``AggregateError`` if absent."""
        for part in self._timed:
            part.remove(slots, *values)
        for part in self._valued:
            part.remove(slots, values[0])

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read open, high, low and close."""
        return tuple(read(slots) for read in self._reads)


def edge(name: str, of: FieldType, *, last: bool, retractable: bool) -> OrderedState:
    """Make the state of the first or the last value in time."""
    part, read = edges(of, last=last, retractable=retractable)
    return OrderedState(lambda slots: (read(slots),), **{name: part})


def largest(of: FieldType, count: int) -> OrderedState:
    """Make the state of the ``count`` largest values."""
    values = ordered_values(of)
    return OrderedState(lambda slots: ((values.largest(slots, count), None),), values=values)


def distinct(of: FieldType) -> OrderedState:
    """Make the state of the number of different values."""
    values = ordered_values(of)
    return OrderedState(lambda slots: ((values.distinct(slots), None),), values=values)


def quantile(of: FieldType, rule: Rule, numerator: int, denominator: int) -> OrderedState:
    """Make the state of a quantile of numbers, read by a rule."""
    values = NumberValues(integer=is_integer(of))
    return OrderedState(lambda slots: (rule(values, slots, numerator, denominator),), values=values)


def candles(of: FieldType, *, retractable: bool) -> CandleState:
    """Make the state of candles over numbers."""
    if retractable:
        events, values = ordered_events(of), ordered_values(of)
        return CandleState(
            {"events": events},
            {"values": values},
            (
                lambda slots: events.edge(slots, False),
                lambda slots: end_of(values, slots, last=True),
                lambda slots: end_of(values, slots, last=False),
                lambda slots: events.edge(slots, True),
            ),
        )
    opens, open_of = edges(of, last=False, retractable=False)
    closes, close_of = edges(of, last=True, retractable=False)
    highs, high_of = extremes(of, last=True, retractable=False)
    lows, low_of = extremes(of, last=False, retractable=False)
    return CandleState(
        {"open": opens, "close": closes},
        {"high": highs, "low": lows},
        (open_of, high_of, low_of, close_of),
    )


def linear(values: NumberValues, slots: Slots, numerator: int, denominator: int) -> Column:
    """Interpolate exactly between the two neighbours of the place."""
    sizes = values.size(slots)
    ranks, remainders = positions(sizes, numerator, denominator, nearest=False)
    low = values.select(slots, ranks)
    high = values.select(slots, np.minimum(ranks + 1, np.maximum(sizes - 1, 0)))
    return interpolate(low, high, remainders, denominator), sizes > 0


def nearest(values: NumberValues, slots: Slots, numerator: int, denominator: int) -> Column:
    """Read the value of the nearest rank."""
    sizes = values.size(slots)
    ranks, _ = positions(sizes, numerator, denominator, nearest=True)
    return values.select(slots, ranks), sizes > 0
