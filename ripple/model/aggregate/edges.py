"""The first, the last, and the four prices of a candle. Ties break by (event time, offset)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.model.aggregate.contract import Aggregate, Bound, Input
from ripple.model.aggregate.extremes import need_order
from ripple.model.aggregate.orders import (
    OrderedState,
    edges,
    end_of,
    extremes,
    ordered_events,
    ordered_values,
)
from ripple.model.aggregate.parts import PartsState
from ripple.model.schema.types import FieldType, Option

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.model.aggregate.contract import Column, Slots, State, Values


def first(x: Input) -> Aggregate:
    """Return the value of the earliest event; Option(x's type), none for an empty group."""
    return Edge((x,), last=False)


def last(x: Input) -> Aggregate:
    """Return the value of the latest event; Option(x's type), none for an empty group."""
    return Edge((x,), last=True)


def ohlc(x: Input) -> Aggregate:
    """Return first, largest, smallest and last value: four results, open to close."""
    return Ohlc((x,))


@dataclass(frozen=True)
class Edge(Aggregate):
    """One end of time."""

    last: bool

    ordered = True

    @property
    def name(self) -> str:  # type: ignore[override]  # two names, one family
        """Its name for users."""
        return "last" if self.last else "first"

    def _bind(self, *types: FieldType) -> Bound:
        of = need_order(self, *types)

        def make(retractable: bool) -> State:
            part, read = edges(of, last=self.last, retractable=retractable)
            return OrderedState(lambda slots: (read(slots),), **{self.name: part})

        return Bound((("", Option(of)),), make)


class Ohlc(Aggregate):
    """Open, high, low, close."""

    name = "ohlc"
    ordered = True

    def _bind(self, *types: FieldType) -> Bound:
        self.need_numbers(*types)
        price = Option(types[0])
        return Bound(
            (("open", price), ("high", price), ("low", price), ("close", price)),
            lambda retractable: candles(types[0], retractable=retractable),
        )


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
