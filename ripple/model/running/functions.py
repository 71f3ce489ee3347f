"""The functions of a row and the rows before it, by key and in their order."""

from __future__ import annotations

import decimal
import math
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.core.arguments import need_bool, need_whole, shown
from ripple.core.calls import called
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.aggregate.quantiles import quantile_of
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import (
    TEXTS,
    Bool,
    Decimal,
    Float,
    Int,
    Int64,
    List,
    Logical,
    LogicalText,
    Option,
    WideDecimal,
    bare_type,
)
from ripple.model.window.duration import duration_ns

if TYPE_CHECKING:
    from ripple.core.sexp import Sexp
    from ripple.model.aggregate.quantiles import Quantile
    from ripple.model.schema.types import FieldType

Input: TypeAlias = Any
"""A field: its name, or a column expression."""

ROWS_MAX = 10_000  # of a function's history, kept by key


@called("rp.lag", '"FIELD"')
def lag(x: Input, n: int = 1) -> Lag:
    """Return the value of ``x`` that came ``n`` rows before; null in the first ``n`` rows of a key.

    Numbers, booleans, dates, times and decimals, with nulls. n: at most 10,000.
    """
    return Lag(x, need_whole("lag: n", n, 1, most=ROWS_MAX))


@called("rp.cum_max", '"FIELD"')
def cum_max(x: Input) -> Extreme:
    """Return the largest value so far; null where ``x`` is. NaN is above every other number.

    Numbers, decimals, dates and times.
    """
    return Extreme(x, largest=True)


@called("rp.cum_min", '"FIELD"')
def cum_min(x: Input) -> Extreme:
    """Return the smallest value so far; null where ``x`` is. NaN is above every other number.

    Numbers, decimals, dates and times.
    """
    return Extreme(x, largest=False)


@called("rp.cum_sum", '"FIELD"')
def cum_sum(x: Input) -> Sum:
    """Return the sum of the integers or decimals so far; null where ``x`` is.

    A row with a sum beyond 64 bits cannot be computed, and adds nothing.
    """
    return Sum(x)


@called("rp.ema", '"FIELD"')
def ema(
    x: Input,
    *,
    span: float | None = None,
    alpha: float | None = None,
    half_life: str | int | None = None,
) -> Ema:
    """Return the exponential moving average: y = x at first, then y + w (x - y).

    Each operation is rounded once. Exactly one of: span, w is 2 / (span + 1); alpha, w itself,
    above 0 and at most 1; half_life, a span of event time, w is 1 - 2 ** -(t / half_life) for the
    time t since the value before, to 15 digits, so that rows of one time count once. A
    null is passed over, and null in the result.
    """
    given = {"span": span, "alpha": alpha, "half_life": half_life}
    said = [name for name, value in given.items() if value is not None]
    if len(said) != 1:
        found = " and ".join(said) or "None"
        raise PlanError(f"ema takes one of span=, alpha= and half_life=, not {found}")
    if half_life is not None:
        half_life_ns = duration_ns(half_life, "ema: half_life")
        if not half_life_ns:
            raise PlanError("ema: half_life is 0: it must be a span such as '30s'")
        return Ema(x, None, half_life_ns)
    if span is not None:
        return Ema(x, 2.0 / (_number("span", span, 1.0, sys.float_info.max) + 1.0), None)
    assert alpha is not None
    return Ema(x, _number("alpha", alpha, 0.0, 1.0), None)


def _number(what: str, given: Any, least: float, most: float) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not (least or math.ulp(0.0)) <= given <= most:
        bounds = "a number from 1 on" if least else "a number above 0 and at most 1"
        raise PlanError(f"ema: {what} must be {bounds}, not {shown(given)}")
    return float(given)


@called("rp.bar")
def bar(x: Input | None = None, *, every: float | decimal.Decimal, split: bool = False) -> Bar:
    """Return the number of the row's bar, from 0 on: a bar ends when ``x`` adds up to ``every``.

    Without ``x`` it ends after so many rows. The row at which the sum of a bar's values, or its
    negative, reaches ``every`` is its last row; the next bar begins with 0. So sizes make bars by
    volume, notionals bars by value, and signed sizes bars by imbalance. Floats are added one by
    one, each sum rounded once. A row without a number is in the open bar. split: divide a row where
    a bar is full: it becomes several rows, each with its share of ``x``, which holds integers or
    decimals. every: of decimals an integer or a ``Decimal``.
    """
    need_bool("bar: split", split)
    if split and x is None:
        raise PlanError("bar: split divides a field, and rows are counted here: leave it out")
    is_number = isinstance(every, int | float | decimal.Decimal) and not isinstance(every, bool)
    is_nan = isinstance(every, decimal.Decimal) and every.is_nan()
    if not is_number or is_nan or not 0 < every < math.inf:
        raise PlanError(f"bar: every must be a number above 0, not {shown(every)}")
    return Bar(x, every, split)


@called("rp.rolling_sum", '"FIELD"', "20")
def rolling_sum(x: Input, n: int) -> Rolling:
    """Return the exact sum of the last ``n`` values, this row's included; null where ``x`` is.

    Floats as ``math.fsum``, rounded once; a row with a sum of integers or decimals beyond 64 bits
    cannot be computed. The first rows of a key have fewer values. n: at most 10,000.
    """
    return _rolling("sum", x, n)


@called("rp.rolling_mean", '"FIELD"', "20")
def rolling_mean(x: Input, n: int) -> Rolling:
    """Return the exact mean of the last ``n`` values, rounded once; see :func:`rolling_sum`."""
    return _rolling("mean", x, n)


@called("rp.rolling_max", '"FIELD"', "20")
def rolling_max(x: Input, n: int) -> Rolling:
    """Return the largest of the last ``n`` values; NaN is above every other number."""
    return _rolling("max", x, n)


@called("rp.rolling_min", '"FIELD"', "20")
def rolling_min(x: Input, n: int) -> Rolling:
    """Return the smallest of the last ``n`` values; NaN is above every other number."""
    return _rolling("min", x, n)


@called("rp.rolling_median", '"FIELD"', "20")
def rolling_median(x: Input, n: int) -> RollingQuantile:
    """Return the middle one of the last ``n`` values, or the exact mean of the two middle ones."""
    return _quantile("rolling_median", x, n, quantile_of(x, 50))


@called("rp.rolling_percentile", '"FIELD"', "20", "0.95")
def rolling_percentile(x: Input, n: int, q: float) -> RollingQuantile:
    """Return the value below which ``q`` per cent (0 to 100) of the last ``n`` values lie.

    Between two values it is interpolated exactly and rounded once, as ``rp.percentile`` is; null
    where ``x`` is. The first rows of a key have fewer values. n: at most 10,000.
    """
    return _quantile("rolling_percentile", x, n, quantile_of(x, q))


def _quantile(name: str, x: Input, n: int, of: Quantile) -> RollingQuantile:
    n = need_whole(f"{name}: n", n, 1, most=ROWS_MAX)
    return RollingQuantile(x, n, of.numerator, of.denominator)


@called("rp.rolling_variance", '"FIELD"', "20")
def rolling_variance(x: Input, n: int, *, ddof: int = 1) -> RollingSpread:
    """Return the exact variance of the last ``n`` values, rounded once.

    Null where ``x`` is, and while there are ``ddof`` values or fewer. n: at most 10,000.
    """
    return _spread("rolling_variance", x, n, ddof, root=False)


@called("rp.rolling_stddev", '"FIELD"', "20")
def rolling_stddev(x: Input, n: int, *, ddof: int = 1) -> RollingSpread:
    """Return the square root of the exact variance of the last ``n`` values, rounded once.

    Null where ``x`` is, and while there are ``ddof`` values or fewer. n: at most 10,000.
    """
    return _spread("rolling_stddev", x, n, ddof, root=True)


def _spread(name: str, x: Input, n: int, ddof: int, *, root: bool) -> RollingSpread:
    n = need_whole(f"{name}: n", n, 1, most=ROWS_MAX)
    return RollingSpread(x, n, need_whole(f"{name}: ddof", ddof, 0, most=ROWS_MAX), root)


def _rolling(what: str, x: Input, n: int) -> Rolling:
    return Rolling(x, what, need_whole(f"rolling_{what}: n", n, 1, most=ROWS_MAX))


@frozen
class Running(ABC):
    """A function of a row and the rows before it. x: the field that it reads."""

    x: Input

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name for users."""

    @property
    def parameters(self) -> Sexp:
        """Its parameters beside the field."""
        return []

    def bind(self, of: FieldType) -> FieldType:
        """Return the type of its result for a field of a type. Raises PlanError."""
        return self.number(of)

    def number(self, of: FieldType, *others: type) -> FieldType:
        """Return the type of a field, of numbers or of these. Raises PlanError for another one."""
        if isinstance(bare_type(of), Decimal) and not {Decimal, Logical} & {*others}:
            raise PlanError(
                f"{self.name} rounds, and {shown(self.x)} holds decimals: a .derive before it with "
                ".cast(float) makes floats"
            )
        if isinstance(bare_type(of), WideDecimal):
            raise PlanError(
                f"{self.name} takes decimals of up to 18 digits, and {shown(self.x)} has more: a "
                ".derive before it with .cast(rp.Decimal(18, 4)) makes such, or a state of .scan "
                "holds it"
            )
        is_number = isinstance(bare_type(of), (Float, Int, Int64, *others))
        if not is_number or isinstance(bare_type(of), TEXTS):
            way = "a .derive before it with .cast(float) or .cast(int) makes one"
            if isinstance(bare_type(of), List):
                way = "a .derive before it with .list.get(n) or .list.len() makes one"
            elif isinstance(bare_type(of), LogicalText):
                way = "a state of .scan holds it"
            raise PlanError(
                f"{self.name} takes numbers, not {type(bare_type(of)).__name__.lower()}: {way}"
            )
        return of


@frozen
class Lag(Running):
    """The value n rows before."""

    n: int

    name = "lag"

    @property
    def parameters(self) -> Sexp:
        """How many rows."""
        return [str(self.n)]

    def bind(self, of: FieldType) -> FieldType:
        """Return the type, which may be null."""
        return Option(bare_type(self.number(of, Bool, Logical)))


@frozen
class Extreme(Running):
    """The largest or the smallest value so far."""

    largest: bool

    @property
    def name(self) -> str:
        """Its name for users."""
        return "cum_max" if self.largest else "cum_min"

    def bind(self, of: FieldType) -> FieldType:
        """Return the type of the field."""
        return self.number(of, Logical)


@frozen
class Sum(Running):
    """The sum so far."""

    name = "cum_sum"

    def bind(self, of: FieldType) -> FieldType:
        """Return the type of the field, of integers, or of decimals of all 64 bits."""
        if isinstance(bare_type(self.number(of, Decimal)), Float):
            raise PlanError(
                f"cum_sum adds integers and decimals, and {shown(self.x)} holds floats, of which a "
                "sum that is rounded again and again drifts: take rp.sum in a fold, or "
                ".cast(rp.Decimal(18, 4)) in a .derive before it"
            )
        return _summed(of)


@frozen
class Ema(Running):
    """The exponential moving average. alpha: its weight, or None where a half-life decides."""

    alpha: float | None
    half_life_ns: int | None

    name = "ema"

    @property
    def parameters(self) -> Sexp:
        """The weight, exactly, or the half-life."""
        if self.alpha is not None:
            return ["alpha", self.alpha.hex()]
        return ["half-life", str(self.half_life_ns)]

    def bind(self, of: FieldType) -> FieldType:
        """Return a float, null where the field is."""
        return Option(Float()) if isinstance(self.number(of), Option) else Float()


@frozen
class Bar(Running):
    """The number of a bar that ends when the field adds up to ``every``."""

    every: float | decimal.Decimal
    split: bool

    name = "bar"

    @property
    def parameters(self) -> Sexp:
        """The size, exactly."""
        size = self.every.hex() if isinstance(self.every, float) else str(self.every)
        return [size, "split"] if self.split else [size]

    def bind(self, of: FieldType) -> FieldType:
        """Return an integer; of integers the size is one, too."""
        is_whole = not isinstance(bare_type(self.number(of, Decimal)), Float)
        every = self.every_of(of)
        if self.split and not (is_whole and every <= 1 << 61):
            raise PlanError(
                f"bar: split divides integers, into bars of up to 2**61, not {shown(self.x)} into "
                f"bars of {shown(self.every)}: leave it out, and each row is in one bar"
            )
        return Int64()

    def every_of(self, of: FieldType) -> float:
        """Return the size as columns of a type count, decimals by units. Raises PlanError."""
        bare, every = bare_type(of), self.every
        if isinstance(bare, Decimal):
            units: int | None = rule_of(Decimal.wide(bare.scale)).number(every)
            if units is not None:
                return units
            raise PlanError(
                f"bar: every is {shown(every)}, and {shown(self.x)} holds decimals: write an "
                f"integer, or a Decimal with {bare.scale} digits behind the point"
            )
        if isinstance(bare, Float):
            if isinstance(every, decimal.Decimal):
                raise PlanError(
                    f"bar: every is {shown(every)}, and {shown(self.x)} holds floats: write a float"
                )
            return float(every) if every <= sys.float_info.max else math.inf
        if int(every) != every or every >= 1 << 63:
            raise PlanError(f"bar: every is {shown(every)}, and the field holds integers")
        return int(every)


@frozen
class Rolling(Running):
    """The sum, mean, largest or smallest of the last n values."""

    what: str
    n: int

    @property
    def name(self) -> str:
        """Its name for users."""
        return f"rolling_{self.what}"

    @property
    def parameters(self) -> Sexp:
        """How many values."""
        return [str(self.n)]

    def bind(self, of: FieldType) -> FieldType:
        """Return the type of the field, or a float of a mean; null where the field is."""
        if self.what in ("max", "min"):
            return self.number(of, Logical)
        if self.what == "sum":
            return _summed(self.number(of, Decimal))
        found = self.number(of)
        return Option(Float()) if isinstance(found, Option) else Float()


@frozen
class RollingQuantile(Running):
    """The value at the share numerator / denominator of the last n values in their order."""

    n: int
    numerator: int
    denominator: int

    @property
    def name(self) -> str:
        """Its name for users."""
        return "rolling_median" if self.denominator == 2 * self.numerator else "rolling_percentile"

    @property
    def parameters(self) -> Sexp:
        """How many values, and the share."""
        return [str(self.n), f"{self.numerator}/{self.denominator}"]

    def bind(self, of: FieldType) -> FieldType:
        """Return a float, null where the field is."""
        return Option(Float()) if isinstance(self.number(of), Option) else Float()


@frozen
class RollingSpread(Running):
    """The variance of the last n values, or its root."""

    n: int
    ddof: int
    root: bool

    @property
    def name(self) -> str:
        """Its name for users."""
        return "rolling_stddev" if self.root else "rolling_variance"

    @property
    def parameters(self) -> Sexp:
        """How many values, and by how much the count is lowered."""
        return [str(self.n), f"ddof={self.ddof}"]

    def bind(self, of: FieldType) -> FieldType:
        """Return a float, null of ``ddof`` values or fewer."""
        self.number(of)
        return Option(Float())


def _summed(of: FieldType) -> FieldType:
    """Return the type of a sum: of decimals, with all digits of 64 bits."""
    bare = bare_type(of)
    if not isinstance(bare, Decimal):
        return of
    wide = Decimal.wide(bare.scale)
    return Option(wide) if isinstance(of, Option) else wide
