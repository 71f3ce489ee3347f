"""Counts, exact sums and the quotients of sums: mean and volume-weighted average price."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ripple.core.calls import called
from ripple.model.aggregate.contract import Aggregate, Bound, Input, is_integer
from ripple.model.aggregate.exact import QuotientRead, RatioRead, SumRead
from ripple.model.aggregate.integers import CountRead, IntegerQuotientRead, IntegerRead
from ripple.model.aggregate.parts import FloatSums, SummedState, Tally, WholeSums, sums_of
from ripple.model.schema.types import (
    PRECISION_OTHERS,
    Decimal,
    FieldType,
    Float,
    Int64,
    Option,
    WideDecimal,
)

if TYPE_CHECKING:
    from ripple.model.aggregate.part import Read


def count(x: Input | None = None) -> Aggregate:
    """Count the rows, or with ``x`` the rows in which it is not null; Int64, 0 for none."""
    return Count(() if x is None else (x,))


@called("rp.sum", '"FIELD"')
def sum(x: Input) -> Aggregate:  # noqa: A001 - users write rp.sum; this module does not use the builtin
    """Sum exactly: floats as ``math.fsum``, integers and decimals without wrapping; 0 for none.

    A sum of integers outside int64 raises :class:`~ripple.model.aggregate.errors.IntegerRangeError`
    when it is read. NaN and infinities are counted, so removing them restores the finite sum.
    """
    return Sum((x,))


@called("rp.mean", '"FIELD"')
def mean(x: Input) -> Aggregate:
    """Return the exact mean, rounded once; Option(Float), none for an empty group."""
    return Mean((x,))


@called("rp.vwap", '"price"', '"size"')
def vwap(price: Input, size: Input) -> Aggregate:
    """Return sum(price * size) / sum(size), each product rounded once, the quotient once.

    Option(Float): none while the total size is zero.
    """
    return Vwap((price, size))


class Count(Aggregate):
    """How many."""

    name = "count"
    decomposes = True

    def _bind(self, *types: FieldType) -> Bound:  # noqa: ARG002 - anything can be counted
        return Bound((("", Int64()),), lambda _retractable: CountState())


class CountState(SummedState):
    """Counts; the values themselves do not matter."""

    adds: ClassVar = {"count": ("", ())}

    def __init__(self) -> None:
        super().__init__(count=Tally())

    def reads(self) -> tuple[Read, ...]:
        """Read the counts."""
        return (CountRead(self.parts["count"]),)


class Sum(Aggregate):
    """The exact sum."""

    name = "sum"
    decomposes = True

    def _bind(self, *types: FieldType) -> Bound:
        (kind,) = types
        of: FieldType
        if isinstance(kind, WideDecimal):
            from ripple.model.aggregate.wide_sums import WideSumState  # noqa: PLC0415 - most have none

            wide = Decimal(PRECISION_OTHERS, kind.scale)
            return Bound((("", wide),), lambda _retractable: WideSumState())
        if isinstance(kind, Decimal):
            integer, of = True, Decimal.wide(kind.scale)
        else:
            self.need_numbers(kind)
            integer = is_integer(kind)
            of = Int64() if integer else Float()
        return Bound((("", of),), lambda _retractable: SumState(integer=integer))


class SumState(SummedState):
    """One exact sum a slot."""

    adds: ClassVar = {"sum": ("", (0,))}

    def __init__(self, *, integer: bool) -> None:
        super().__init__(sum=sums_of(integer=integer))

    def reads(self) -> tuple[Read, ...]:
        """Read the sums."""
        sums = self.parts["sum"]
        return (IntegerRead(sums) if isinstance(sums, WholeSums) else SumRead(sums),)


class Mean(Aggregate):
    """The exact mean."""

    name = "mean"
    decomposes = True

    def _bind(self, *types: FieldType) -> Bound:
        self.need_numbers(*types)
        integer = is_integer(types[0])
        return Bound((("", Option(Float())),), lambda _retractable: MeanState(integer=integer))


class MeanState(SummedState):
    """An exact sum and a count."""

    adds: ClassVar = {"sum": ("", (0,)), "count": ("", ())}

    def __init__(self, *, integer: bool) -> None:
        super().__init__(sum=sums_of(integer=integer), count=Tally())

    def reads(self) -> tuple[Read, ...]:
        """Read the exact quotients."""
        sums, count = self.parts["sum"], self.parts["count"]
        quotient = IntegerQuotientRead if isinstance(sums, WholeSums) else QuotientRead
        return (quotient(sums, count),)


class Vwap(Aggregate):
    """The volume-weighted average price."""

    name = "vwap"
    decomposes = True

    def _bind(self, *types: FieldType) -> Bound:
        self.need_numbers(*types)
        integer = is_integer(types[1])
        return Bound((("", Option(Float())),), lambda _retractable: VwapState(integer=integer))


class VwapState(SummedState):
    """The exact sum of rounded products and the exact sum of sizes."""

    adds: ClassVar = {"notional": ("product", (0, 1)), "size": ("", (1,))}

    def __init__(self, *, integer: bool) -> None:
        super().__init__(notional=FloatSums(), size=sums_of(integer=integer))

    def reads(self) -> tuple[Read, ...]:
        """Read the exact quotients."""
        return (RatioRead(self.parts["notional"], self.parts["size"]),)
