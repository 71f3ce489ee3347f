"""Counts, exact sums and the quotients of sums: mean and volume-weighted average price."""

from __future__ import annotations

from dataclasses import dataclass

from ripple.aggregate.contract import (
    Aggregate,
    Bound,
    Column,
    Input,
    Slots,
    Values,
    is_float,
    is_integer,
)
from ripple.aggregate.parts import FloatSums, PartsState, Tally, WholeSums, sums_of
from ripple.schema.types import FieldType, Float, Int64, Option


def count(x: Input | None = None) -> Aggregate:
    """Count the rows, or with ``x`` the rows in which it is not null; Int64, 0 for none."""
    return Count(() if x is None else (x,))


def sum(x: Input) -> Aggregate:  # noqa: A001 - users write rp.sum; this module does not use the builtin
    """Sum exactly: floats as ``math.fsum``, integers without wrapping; 0 for none.

    A sum of integers outside int64 raises :class:`~ripple.aggregate.errors.IntegerRangeError`
    when it is read. NaN and infinities are counted, so removing them restores the finite sum.
    """
    return Sum((x,))


def mean(x: Input) -> Aggregate:
    """Return the exact mean, rounded once; Option(Float), none for an empty group."""
    return Mean((x,))


def vwap(price: Input, size: Input) -> Aggregate:
    """Return sum(price * size) / sum(size), each product rounded once, the quotient once.

    Option(Float): none while the total size is zero.
    """
    return Vwap((price, size))


@dataclass(frozen=True)
class Count(Aggregate):
    """How many."""

    name = "count"

    @property
    def decomposes(self) -> bool:
        """Sums add up."""
        return True

    def _bind(self, *types: FieldType) -> Bound:  # noqa: ARG002 - anything can be counted
        return Bound((("", Int64()),), lambda _retractable: CountState())


class CountState(PartsState):
    """Counts; the values themselves do not matter."""

    def __init__(self) -> None:
        self._count = Tally()
        super().__init__(count=self._count)

    def add(self, slots: Slots, *values: Values) -> None:  # noqa: ARG002 - only their presence
        """Count one for each slot."""
        self._count.add(slots)

    def remove(self, slots: Slots, *values: Values) -> None:  # noqa: ARG002 - only their presence
        """Count one less for each slot."""
        self._count.remove(slots)

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read the counts."""
        return ((self._count.result(slots), None),)


@dataclass(frozen=True)
class Sum(Aggregate):
    """The exact sum."""

    name = "sum"

    @property
    def decomposes(self) -> bool:
        """Sums add up."""
        return True

    def _bind(self, *types: FieldType) -> Bound:
        self.need_numbers(*types)
        if is_float(types[0]):
            return Bound((("", Float()),), lambda _retractable: FloatSumState())
        return Bound((("", Int64()),), lambda _retractable: IntegerSumState())


class FloatSumState(PartsState):
    """One exact float sum a slot."""

    def __init__(self) -> None:
        self._sum = FloatSums()
        super().__init__(sum=self._sum)

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each value to its slot."""
        self._sum.add(slots, values[0])

    def remove(self, slots: Slots, *values: Values) -> None:
        """Subtract each value from its slot."""
        self._sum.remove(slots, values[0])

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read the sums, each rounded once."""
        return ((self._sum.result(slots), None),)


class IntegerSumState(PartsState):
    """One exact integer sum a slot."""

    def __init__(self) -> None:
        self._sum = WholeSums()
        super().__init__(sum=self._sum)

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each value to its slot."""
        self._sum.add(slots, values[0])

    def remove(self, slots: Slots, *values: Values) -> None:
        """Subtract each value from its slot."""
        self._sum.remove(slots, values[0])

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read the sums; raises :class:`IntegerRangeError`."""
        return ((self._sum.read(slots), None),)


@dataclass(frozen=True)
class Mean(Aggregate):
    """The exact mean."""

    name = "mean"

    @property
    def decomposes(self) -> bool:
        """Sums add up."""
        return True

    def _bind(self, *types: FieldType) -> Bound:
        self.need_numbers(*types)
        integer = is_integer(types[0])
        return Bound((("", Option(Float())),), lambda _retractable: MeanState(integer=integer))


class MeanState(PartsState):
    """An exact sum and a count."""

    def __init__(self, *, integer: bool) -> None:
        self._sum = sums_of(integer=integer)
        self._count = Tally()
        super().__init__(sum=self._sum, count=self._count)

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each value to its slot."""
        self._sum.add(slots, values[0])
        self._count.add(slots)

    def remove(self, slots: Slots, *values: Values) -> None:
        """Take each value out of its slot."""
        self._sum.remove(slots, values[0])
        self._count.remove(slots)

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read the exact quotients, each rounded once."""
        counts = self._count.result(slots)
        return ((self._sum.quotient(slots, counts), counts != 0),)


@dataclass(frozen=True)
class Vwap(Aggregate):
    """The volume-weighted average price."""

    name = "vwap"

    @property
    def decomposes(self) -> bool:
        """Sums add up."""
        return True

    def _bind(self, *types: FieldType) -> Bound:
        self.need_numbers(*types)
        integer = is_integer(types[1])
        return Bound((("", Option(Float())),), lambda _retractable: VwapState(integer=integer))


class VwapState(PartsState):
    """The exact sum of rounded products and the exact sum of sizes."""

    def __init__(self, *, integer: bool) -> None:
        self._notional = FloatSums()
        self._size = sums_of(integer=integer)
        super().__init__(notional=self._notional, size=self._size)

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each (price, size) to its slot."""
        price, size = values
        self._notional.add_product(slots, price, size)
        self._size.add(slots, size)

    def remove(self, slots: Slots, *values: Values) -> None:
        """Take each (price, size) out of its slot."""
        price, size = values
        self._notional.remove_product(slots, price, size)
        self._size.remove(slots, size)

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read the exact quotients, each rounded once."""
        if isinstance(self._size, WholeSums):
            return (self._notional.ratio_to_integers(slots, self._size),)
        return (self._notional.ratio(slots, self._size),)
