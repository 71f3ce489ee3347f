"""The first, the last, and the four prices of a candle. Ties break by (event time, offset)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.core.calls import called
from ripple.model.aggregate.contract import Aggregate, Bound, Input
from ripple.model.aggregate.extremes import need_keeping
from ripple.model.schema.types import Decimal, FieldType, Option

if TYPE_CHECKING:
    from ripple.model.aggregate.contract import State


@called("rp.first", '"FIELD"')
def first(x: Input) -> Aggregate:
    """Return the value of the earliest event; Option(x's type), none for an empty group."""
    return Edge((x,), last=False)


@called("rp.last", '"FIELD"')
def last(x: Input) -> Aggregate:
    """Return the value of the latest event; Option(x's type), none for an empty group."""
    return Edge((x,), last=True)


@called("rp.ohlc", '"FIELD"')
def ohlc(x: Input) -> Aggregate:
    """Return first, largest, smallest and last value: four results, open to close.

    ``.fold("bars", rp.ohlc("price"))`` calls them ``open``, ``high``, ``low`` and ``close``;
    ``bid=rp.ohlc("bid")``, for several in one fold, ``bid_open`` to ``bid_close``.
    """
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
        of = need_keeping(self, *types)

        def make(retractable: bool) -> State:
            from ripple.model.aggregate import ordered_states  # noqa: PLC0415 - most plans have sums alone

            return ordered_states.edge(self.name, of, last=self.last, retractable=retractable)

        return Bound((("", Option(of)),), make)


class Ohlc(Aggregate):
    """Open, high, low, close."""

    name = "ohlc"
    ordered = True

    def _bind(self, *types: FieldType) -> Bound:
        if not isinstance(types[0], Decimal):
            self.need_numbers(*types)
        price = Option(types[0])

        def make(retractable: bool) -> State:
            from ripple.model.aggregate import ordered_states  # noqa: PLC0415 - most plans have sums alone

            return ordered_states.candles(types[0], retractable=retractable)

        return Bound((("open", price), ("high", price), ("low", price), ("close", price)), make)

    def unnamed(self) -> Aggregate:
        """Return it with the results open, high, low and close."""
        return UnnamedOhlc(self.inputs)


class UnnamedOhlc(Ohlc):
    """Open, high, low, close, called just that: a fold's only candles."""

    named_apart = False
