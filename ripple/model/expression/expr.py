"""Column expressions as values, such as ``rp.col("price") * rp.col("size")``, before binding."""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ripple.core.arguments import need_bool, need_text, need_whole, shown
from ripple.core.calls import called
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.core.sexp import dumps
from ripple.model.expression.logical_constants import (
    Plain,
    PlainBytes,
    PlainDate,
    PlainDecimal,
    PlainTime,
    PlainUuid,
    plain_logical,
)
from ripple.model.schema.types import DECIMALS, PRECISION_MAX, Decimal

if TYPE_CHECKING:
    import decimal
    import uuid

    from ripple.core.sexp import Sexp
    from ripple.model.expression.binary_methods import BinaryMethods
    from ripple.model.expression.bound import Bound
    from ripple.model.expression.list_methods import ListMethods
    from ripple.model.expression.map_methods import DictMethods
    from ripple.model.expression.text_methods import TextMethods
    from ripple.model.expression.time_methods import TimeMethods
    from ripple.model.schema.types import FieldType

Scalar: TypeAlias = float | int | str | bool | None
_Name: TypeAlias = str  # in the class, ``str`` is its property

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
DECIMALS_MAX = 22  # the highest power of 10 that is a float
SEED_MAX = (1 << 64) - 1
POWER_MAX = 63  # the highest power of 2 or more, and of -2, in 64 bits
DEPTH_MAX = 200  # nested operators: the limit of recursion over an expression
SIZE_MAX = 5_000  # operands and operators; a shared part counts each time that it is used

# How tightly an operator binds in the readable form; functions and methods bind tightest.
_INFIX = {
    "==": 1, "!=": 1, "<": 1, "<=": 1, ">": 1, ">=": 1,
    "|": 2, "&": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "//": 5, "%": 5, "**": 7,
}  # fmt: skip
_COMPARISON, _PREFIX, _POWER, _TIGHTEST = 1, 6, 7, 9
_FUNCTIONS = frozenset({"least", "greatest", "abs"})
_CASTS = (float, int, str, dt.datetime, dt.date, uuid.UUID)
_CASTS_SHOWN: dict[Any, str] = {
    "datetime": "datetime.datetime",
    "date": "datetime.date",
    "UUID": "uuid.UUID",
}
_NO_CASTS: dict[type, str] = {
    bool: ": compare, as in rp.col('x') != 0",
    bytes: ": .str.decode('base64') reads bytes in a text",
}
ROUNDINGS = ("half_even", "half_up", "half_down", "down", "up", "floor", "ceiling")
# Of a method its plain arguments in front, and the name of the one behind them.
_NAMED = {
    **dict.fromkeys(("str.replace", "str.replace_all"), (2, "literal")),
    "str.count_matches": (1, "literal"),
    "str.json_path_match": (1, "strict"),
}


def _no_attribute(expression: object, name: str) -> Any:
    """Raise AttributeError, with the way to write a method of another library."""
    from ripple.model.other_names import no_attribute  # noqa: PLC0415 - only on errors

    raise no_attribute(expression, name, "expression")


# Invariant: an expression never changes after it was made, and two expressions mean the same
# exactly when their canonical texts are equal. ``==`` builds an expression, so it cannot compare
# two of them: use ``canonical``.
@frozen(eq=False)
class Expr:
    """A computation over the fields of one row; made by :func:`col` and operators.

    Integers are 64 bits wide and never wrap: a row whose integer arithmetic overflows or divides
    by zero has failed, which is reported apart from the values. Floats are IEEE 754 doubles, each
    operation rounded once. A null operand makes the result null, except where ``&`` and ``|``
    are decided by the other operand. A failed operand fails the row under the same exception,
    and :func:`when` fails only where the chosen branch does.
    """

    operation: str
    args: tuple[Expr, ...] = ()
    value: Any = None
    depth: int = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        depth = 1 + max((arg.depth for arg in self.args), default=0)
        size = 1 + sum(arg.size for arg in self.args)
        if depth > DEPTH_MAX or size > SIZE_MAX:
            raise PlanError(
                f"an expression has {size} parts, {depth} inside each other, more than "
                f"{SIZE_MAX} or {DEPTH_MAX}: compute a part of it in an earlier .derive(...)"
            )
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "size", size)

    def bind(self, fields: Mapping[str, FieldType]) -> Bound:
        """Check this expression against a row of ``fields`` and compile it.

        Raises PlanError for an unknown field or types that do not fit.
        """
        if not isinstance(fields, Mapping):
            raise PlanError(f"bind takes a mapping of names to field types, not {shown(fields)}")
        # The compiler is only needed once a pipeline is built.
        from ripple.model.expression.bound import bind  # noqa: PLC0415

        return bind(self, fields)

    @property
    def canonical(self) -> str:
        """The text that the topology hash is taken over; equal for equal expressions."""
        return dumps(self.sexp())

    def sexp(self) -> Sexp:
        """Return this expression as an S-expression, floats in hexadecimal to the last bit."""
        payload = () if self.value is None else (_payload_sexp(self.value),)
        return [self.operation, *payload, *(arg.sexp() for arg in self.args)]

    def __repr__(self) -> str:
        return _text(self)

    def __bool__(self) -> bool:
        raise PlanError(
            f"the expression {self!r} is true or false per row, not as a whole: combine with "
            "& | ~ instead of and, or, not, of comparisons in parentheses; write a < b < c as "
            "(a < b) & (b < c)"
        )

    if not TYPE_CHECKING:  # else a type checker would accept any name
        __getattr__ = _no_attribute

    # An array as an operand is refused here and not taken apart by NumPy.
    __array_ufunc__: ClassVar[None] = None

    # Comparing builds an expression, so a hash-based container could not look one up again.
    __hash__ = None  # type: ignore[assignment]  # unhashable on purpose

    def __add__(self, other: Operand) -> Expr:
        return _infix("+", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return _infix("+", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return _infix("-", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return _infix("-", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return _infix("*", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return _infix("*", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        """Divide as floats, for any operands: x / 0 is infinite or NaN."""
        return _infix("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return _infix("/", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        """Divide and round down, as Python does; by integer zero the row fails."""
        return _infix("//", self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return _infix("//", other, self)

    def __mod__(self, other: Operand) -> Expr:
        """Return the remainder of ``//``, with the divisor's sign; by integer 0 the row fails."""
        return _infix("%", self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return _infix("%", other, self)

    def __pow__(self, exponent: Operand) -> Expr:
        """Return a power of floats, correctly rounded, or of an integer and a plain one.

        Powers of floats follow IEEE 754: NaN for a negative number to a power that is not whole,
        1 for the power of 0, also of NaN. An integer to the power of a plain integer, from 0 to
        63, is an integer; beyond 64 bits its row fails. Null if the base or the exponent is.
        """
        return Expr("**", (self, _exponent(exponent)))

    def __rpow__(self, base: Operand) -> Expr:
        return Expr("**", (as_operand(base), self))

    def pow(self, exponent: Operand) -> Expr:
        """Return ``self ** exponent``."""
        return self**exponent

    def __neg__(self) -> Expr:
        return Expr("neg", (self,))

    def __abs__(self) -> Expr:
        return Expr("abs", (self,))

    def __eq__(self, other: Operand) -> Expr:  # type: ignore[override]  # an expression, not a bool
        return _infix("==", self, other)

    def __ne__(self, other: Operand) -> Expr:  # type: ignore[override]  # an expression, not a bool
        return _infix("!=", self, other)

    def __lt__(self, other: Operand) -> Expr:
        return _infix("<", self, other)

    def __le__(self, other: Operand) -> Expr:
        return _infix("<=", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return _infix(">", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return _infix(">=", self, other)

    def __and__(self, other: Operand) -> Expr:
        return _infix("&", self, other)

    def __rand__(self, other: Operand) -> Expr:
        return _infix("&", other, self)

    def __or__(self, other: Operand) -> Expr:
        return _infix("|", self, other)

    def __ror__(self, other: Operand) -> Expr:
        return _infix("|", other, self)

    def __invert__(self) -> Expr:
        return Expr("~", (self,))

    def abs(self) -> Expr:
        """Return the distance from 0; of the smallest integer there is none, its row fails."""
        return abs(self)

    def sign(self) -> Expr:
        """Return 1, 0 or -1 of the number's type; of NaN NaN."""
        return Expr("sign", (self,))

    def clip(self, lower: Operand = None, upper: Operand = None) -> Expr:
        """Put ``lower`` for smaller and ``upper`` for larger numbers; NaN and null stay."""
        low, high = as_operand(lower), as_operand(upper)
        clipped = self if low.operation == "null" else greatest(self, low)
        return clipped if high.operation == "null" else least(clipped, high)

    def hash(self, seed: int = 0) -> Expr:
        """Return the XXH64 of the value, as an integer of 64 bits with a sign; null of null.

        Of a text it is that of its UTF-8, of an integer or float that of its 8 bytes, the lowest
        first, of a bool that of one byte. Floats that are equal have the same one, as have all
        NaNs; 1 and 1.0 have not. seed: from 0 to 2^64 - 1.
        """
        need_whole("the seed of .hash", seed, 0, most=SEED_MAX)
        return Expr("hash", (self,), seed)

    def eq_missing(self, other: Operand) -> Expr:
        """Return whether both are equal, or both null; never null itself."""
        value = as_operand(other)
        if value.operation == "null":
            return self.is_null()
        both = self.is_null() & value.is_null()
        return both | (self == value).fill_null(value=False)

    def ne_missing(self, other: Operand) -> Expr:
        """Return whether they differ, null being a value; never null itself."""
        return ~self.eq_missing(other)

    def sqrt(self) -> Expr:
        """Return the square root, correctly rounded; of a negative number it is NaN."""
        return Expr("sqrt", (self,))

    def log(self) -> Expr:
        """Return the natural logarithm, correctly rounded; NaN below 0, and of 0 -infinity."""
        return Expr("log", (self,))

    def log2(self) -> Expr:
        """Return the logarithm to base 2, correctly rounded."""
        return Expr("log2", (self,))

    def log10(self) -> Expr:
        """Return the logarithm to base 10, correctly rounded."""
        return Expr("log10", (self,))

    def log1p(self) -> Expr:
        """Return log(1 + x) of the exact sum, correctly rounded."""
        return Expr("log1p", (self,))

    def exp(self) -> Expr:
        """Return e to the power of this, correctly rounded."""
        return Expr("exp", (self,))

    def exp2(self) -> Expr:
        """Return 2 to the power of this, correctly rounded."""
        return Expr("exp2", (self,))

    def expm1(self) -> Expr:
        """Return e to the power of this minus 1, rounded once, correctly."""
        return Expr("expm1", (self,))

    def fill_nan(self, value: Operand) -> Expr:
        """Put ``value`` where this is NaN; None gives null."""
        return when(self.is_nan()).then(value).otherwise(self)

    def floor(self) -> Expr:
        """Round down to a whole float."""
        return Expr("floor", (self,))

    def ceil(self) -> Expr:
        """Round up to a whole float."""
        return Expr("ceil", (self,))

    def round(self, decimals: int = 0) -> Expr:
        """Round to so many decimals, 22 at most, ties to the even digit.

        The result is the float nearest to the decimal number nearest to the exact value: 2.675 is
        a little less than that, and gives 2.67. A decimal has so many digits behind the point.
        """
        need_whole("decimals", decimals, 0, most=DECIMALS_MAX)
        return Expr("round", (self, lit(decimals)) if decimals else (self,))

    def divide(self, other: Operand, *, scale: int, rounding: _Name = "half_even") -> Expr:
        """Divide decimals or integers, rounded once to ``scale`` digits behind the point.

        rounding: half_even, half_up, half_down, down, up, floor or ceiling, as Python's decimal
        has them. Division by zero, and a result of more than 18 digits, or 38 of a wide operand,
        fails its row.
        """
        need_whole("the scale of .divide", scale, 0, most=PRECISION_MAX)
        if rounding not in ROUNDINGS:
            raise PlanError(f"rounding is one of {', '.join(ROUNDINGS)}, not {shown(rounding)}")
        return Expr("divide", (self, as_operand(other), lit(scale), lit(rounding)))

    def truncate(self) -> Expr:
        """Round towards zero to a whole float."""
        return Expr("truncate", (self,))

    def cast(
        self,
        to: type[float] | type[int] | type[str] | type[dt.date] | type[uuid.UUID] | Decimal,
        *,
        strict: bool = True,
    ) -> Expr:
        """Convert to ``float`` (rounded once), ``int`` (towards zero), ``str``, or a decimal.

        An integer becomes a time, as its nanoseconds since 1970, with ``datetime.datetime``, and
        a date, as its days since 1970, with ``datetime.date``. So does a text of ISO 8601, that of
        a time with its zone. A text of 36 characters becomes a UUID with ``uuid.UUID``; for bytes
        there is ``.str.decode("base64")``.

        To ``rp.Decimal(precision, scale)`` from a text or an integer, if it is exact, and from a
        float rounded once, ties to even; from that to each of the others.

        The text of a float is the shortest that gives it again, as Python's ``repr``; those of
        bools are ``true`` and ``false``. As an int, a float that is not finite or beyond 64 bits
        fails its row, as does a text that is not a decimal number, or no date, time or UUID;
        without ``strict`` it gives null.
        """
        if isinstance(to, DECIMALS):
            need_bool("strict", strict)
            return Expr("cast", (self,) if strict else (self, lit(strict)), to)
        need_bool("strict", strict)
        if not any(to is each for each in _CASTS):
            raise PlanError(
                "cast takes float, int or str, or rp.Decimal(18, 2), or of an integer or a text "
                "datetime.datetime or datetime.date, or of a text uuid.UUID, "
                f"not {shown(to)}{_NO_CASTS.get(to, '') if isinstance(to, type) else ''}"
            )
        return Expr("cast", (self,) if strict else (self, lit(strict)), to.__name__)

    def is_null(self) -> Expr:
        """Return whether the value is null; never null itself."""
        return Expr("is_null", (self,))

    def is_not_null(self) -> Expr:
        """Return whether there is a value; never null itself."""
        return ~self.is_null()

    def is_nan(self) -> Expr:
        """Return whether the value is a NaN."""
        return Expr("is_nan", (self,))

    def is_finite(self) -> Expr:
        """Return whether the value is neither a NaN nor infinite."""
        return Expr("is_finite", (self,))

    def fill_null(self, value: Operand) -> Expr:
        """Put ``value`` where this is null."""
        return Expr("fill_null", (self, as_operand(value)))

    def nullif(self, value: Operand) -> Expr:
        """Put null where this equals ``value``."""
        return when(self == value).then(None).otherwise(self)

    def is_between(self, lower: Operand, upper: Operand) -> Expr:
        """Return whether this is at least ``lower`` and at most ``upper``."""
        return (self >= lower) & (self <= upper)

    def is_in(
        self, values: Sequence[Scalar | decimal.Decimal | dt.date | uuid.UUID | bytes]
    ) -> Expr:
        """Return whether this equals one of the plain ``values``; at least one is needed."""
        if isinstance(values, (str, bytes, Expr)) or not isinstance(values, Sequence):
            raise PlanError(f"is_in takes a list of plain values, not {shown(values)}")
        if not len(values):
            raise PlanError("is_in of an empty list is never true: give at least one value")
        return Expr("is_in", (self, *(lit(value) for value in values)))

    def starts_with(self, prefix: str) -> Expr:
        """Return whether the text begins with ``prefix``."""
        return Expr("starts_with", (self,), _pattern("starts_with", prefix))

    def ends_with(self, suffix: str) -> Expr:
        """Return whether the text ends with ``suffix``."""
        return Expr("ends_with", (self,), _pattern("ends_with", suffix))

    def contains(self, part: str) -> Expr:
        """Return whether ``part`` stands somewhere in the text."""
        return Expr("contains", (self,), _pattern("contains", part))

    @property
    def dt(self) -> TimeMethods:
        """Return the methods of times."""
        from ripple.model.expression.time_methods import TimeMethods  # noqa: PLC0415 - needs Expr

        return TimeMethods(self)

    @property
    def bin(self) -> BinaryMethods:
        """Return the methods of bytes."""
        from ripple.model.expression.binary_methods import BinaryMethods  # noqa: PLC0415 - needs Expr

        return BinaryMethods(self)

    @property
    def list(self) -> ListMethods:
        """Return the methods of lists."""
        from ripple.model.expression.list_methods import ListMethods  # noqa: PLC0415 - needs Expr

        return ListMethods(self)

    @property
    def dict(self) -> DictMethods:
        """Return the methods of maps."""
        from ripple.model.expression.map_methods import DictMethods  # noqa: PLC0415 - needs Expr

        return DictMethods(self)

    # The last one: above, the name is the type's.
    @property
    def str(self) -> TextMethods:
        """Return the methods of texts."""
        from ripple.model.expression.text_methods import TextMethods  # noqa: PLC0415 - needs Expr

        return TextMethods(self)


Operand: TypeAlias = (
    "Expr | float | int | str | bool | decimal.Decimal | dt.date | uuid.UUID | bytes | None"
)
"""An operand: an expression, or a plain value as a constant.

A field of a record class counts as its declared type for mypy (``Trade.price`` is a ``float``)
and is an expression when the program runs, so this type admits both.
"""


def col(name: str) -> Expr:
    """Return the expression of the row's field ``name``."""
    need_text("the name of a column", name)
    return Expr("col", (), name)


_CONSTANTS = "use a float, int, str, bool, date, datetime, Decimal, UUID, bytes or None"


def lit(value: Scalar | decimal.Decimal | dt.date | uuid.UUID | bytes) -> Expr:
    """Return the expression of the constant ``value``; None is null."""
    if value is None:
        return Expr("null")
    constant = plain_logical(value)
    if constant is not None:
        return Expr("lit", (), constant)
    if not isinstance(value, (bool, int, float, str)):
        raise PlanError(
            f"{shown(value)} ({type(value).__name__}) cannot stand in an expression: "
            f"{getattr(type(value), 'instead', _CONSTANTS)}"
        )
    if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        raise PlanError(f"the integer {shown(value)} does not fit into 64 bits")
    if isinstance(value, str) and value:
        need_text("a text in an expression", value)
    # Subclasses (NumPy's float64 is a float) are reduced to the plain type.
    plain = next(kind for kind in (bool, int, float, str) if isinstance(value, kind))
    return Expr("lit", (), plain(value))


def concat_str(first: Operand, second: Operand, *more: Operand, separator: str = "") -> Expr:
    """Return the texts one behind the other, with a separator between them."""
    if not isinstance(separator, str) or separator:
        need_text("separator", separator)
    between = (separator,) if separator else ()
    parts = [part for operand in (second, *more) for part in (*between, operand)]
    return _chain("+", first, *parts)


def least(first: Operand, second: Operand, *more: Operand) -> Expr:
    """Return the smallest of the numbers; NaN if one is NaN, and -0.0 is below 0.0."""
    return _chain("least", first, second, *more)


def greatest(first: Operand, second: Operand, *more: Operand) -> Expr:
    """Return the largest of the numbers; NaN if one is NaN, and 0.0 is above -0.0."""
    return _chain("greatest", first, second, *more)


def coalesce(first: Operand, second: Operand, *more: Operand) -> Expr:
    """Return the first of the values that is not null."""
    return _chain("fill_null", first, second, *more)


@frozen(eq=False)
class When:
    """``when(condition)``, waiting for ``.then(value)``."""

    condition: Expr
    before: Then | None = None

    if not TYPE_CHECKING:
        __getattr__ = _no_attribute

    def then(self, value: Operand) -> Then:
        """Give the value where the condition is true."""
        return Then(self.condition, as_operand(value), self.before)


@frozen(eq=False)
class Then:
    """``when(condition).then(value)``, waiting for ``.otherwise(value)``, or another ``.when``.

    before: the choice that counts before this one.
    """

    condition: Expr
    value: Expr
    before: Then | None = None

    if not TYPE_CHECKING:
        __getattr__ = _no_attribute

    def when(self, condition: Expr | bool) -> When:
        """Begin another choice, which counts where no condition before it is true."""
        return When(when(condition).condition, self)

    def otherwise(self, value: Operand) -> Expr:
        """Give the value where no condition is true, but false or null; None gives null."""
        chosen, choice = as_operand(value), self
        while True:  # from the last choice to the first, as nested ones are written
            chosen = Expr("when", (choice.condition, choice.value, chosen))
            if choice.before is None:
                return chosen
            choice = choice.before


@called("rp.when", "rp.col('size') > 0")
def when(condition: Expr | bool) -> When:
    """Begin ``when(condition).then(a).otherwise(b)``: ``a`` where it is true, else ``b``.

    More choices may follow: ``when(one).then(a).when(two).then(b).otherwise(c)``.
    """
    if not isinstance(condition, Expr):
        raise PlanError(
            f"when takes an expression such as rp.col('size') > 0, not {shown(condition)}"
        )
    return When(condition)


def as_operand(value: Operand) -> Expr:
    """Return an expression as it is and a plain value as a literal."""
    if isinstance(value, (When, Then)):
        raise PlanError("finish when(...).then(...) with .otherwise(...): use None for null")
    if isinstance(value, Expr):
        return value
    path = _path_of(value)
    return lit(value) if path is None else col(path)


def as_column(value: Operand, what: str = "an input") -> Expr:
    """Return an expression as it is and a text as the column of that name.

    For the arguments of aggregates and keys, where a text names a field. what: how messages call
    it.
    """
    if isinstance(value, str):
        return col(value)
    if isinstance(value, Expr):
        return value
    path = _path_of(value)
    if path is not None:
        return col(path)
    raise PlanError(f"{what} must be the name of a field or an expression, not {shown(value)}")


def _path_of(value: object) -> str | None:
    """Return the path of a record in a record (``RecordColumn``), of which no column is made."""
    path = getattr(value, "_ripple_column", None)
    return path if isinstance(path, str) else None


def _infix(operation: str, left: Operand, right: Operand) -> Expr:
    return Expr(operation, (as_operand(left), as_operand(right)))


def _exponent(value: Operand) -> Expr:
    exponent = as_operand(value)
    if exponent.operation == "null" or (
        isinstance(exponent.value, (bool, str))
        and not (exponent.args or exponent.operation == "col")
    ):
        raise PlanError(f"the exponent of an expression is a number, not {shown(value)}")
    return exponent


def _chain(operation: str, first: Operand, *more: Operand) -> Expr:
    result = as_operand(first)
    for operand in more:
        result = Expr(operation, (result, as_operand(operand)))
    return result


def _pattern(operation: str, value: str) -> str:
    if not isinstance(value, str):
        raise PlanError(f"{operation} takes a plain text, not {shown(value)}")
    if value:
        need_text(f"the text of {operation}", value)
    return value


def _payload_sexp(value: Scalar | Plain | Decimal) -> Sexp:
    if isinstance(value, bool):
        return ["bool", "true" if value else "false"]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, (PlainDate, PlainTime)):
        return ["date" if isinstance(value, PlainDate) else "time", value.text]
    if isinstance(value, PlainDecimal):
        return ["decimal", value.digits]
    if isinstance(value, PlainUuid):
        return ["uuid", value.text]
    if isinstance(value, PlainBytes):
        return ["bytes", value.text]
    if isinstance(value, DECIMALS):
        return ["decimal", str(value.precision), str(value.scale)]
    if isinstance(value, float):
        return ["float", "nan" if math.isnan(value) else value.hex()]
    return str(value)


def _text(expr: Expr, outer: int = 0) -> str:
    own = _tightness(expr.operation)
    text = _plain_text(expr, own)
    return f"({text})" if own < outer else text


def _operand_text(expr: Expr, outer: int = 0) -> str:
    """Return the text where a plain value is as good as a literal."""
    if expr.operation == "null":
        return "None"
    return _scalar_text(expr.value) if expr.operation == "lit" else _text(expr, outer)


def _tightness(operation: str) -> int:
    return _INFIX.get(operation, _PREFIX if operation in ("neg", "~") else _TIGHTEST)


def _plain_text(expr: Expr, own: int) -> str:
    operation, args = expr.operation, expr.args
    if not args:
        name = "col" if operation == "col" else "lit"
        return f"{name}({_scalar_text(expr.value)})"
    if operation in _INFIX:
        # Comparisons do not chain, so both of their sides need brackets; others lean left.
        # Powers lean right.
        left = own + 1 if own in (_COMPARISON, _POWER) else own
        return f"{_text(args[0], left)} {operation} {_operand_text(args[1], own + 1)}"
    if operation in ("neg", "~"):
        return f"{'-' if operation == 'neg' else '~'}{_text(args[0], _PREFIX)}"
    if operation == "when":
        chosen, other = (_operand_text(arg) for arg in args[1:])
        return f"when({_text(args[0])}).then({chosen}).otherwise({other})"
    if operation in _FUNCTIONS:
        return f"{operation}({', '.join(_text(arg) for arg in args)})"
    return _method_text(expr)


# Of functions with a digest, or with all of a calendar, among their options.
_SHOWN_OPTIONS = {"dt.in_zone": slice(1), "dt.session_start": slice(2, None)}
_SPELLED = {"dict.key": "dict.keys().list.get"}


def _method_text(expr: Expr) -> str:
    method, of = _SPELLED.get(expr.operation, expr.operation), expr.args[0]
    rest = [_operand_text(arg) for arg in expr.args[1:]]
    if method == "cast":
        rest = [_CASTS_SHOWN.get(expr.value) or str(expr.value), *map("strict={}".format, rest)]
    elif method == "str.split.list.get":
        method, rest = f"str.split({rest[0]}).list.get", rest[1:]
    elif method in _SHOWN_OPTIONS:
        rest = rest[_SHOWN_OPTIONS[method]]
    elif method == "dt.span_begin":
        method, rest = f"dt.in_zone({rest[1]}).truncate", rest[:1]
    elif method == "dt.truncate":
        rest = [_scalar_text(f"{expr.args[1].value}{expr.args[2].value}")]
    elif method == "divide":
        rest[1:] = [f"scale={rest[1]}", f"rounding={rest[2]}"]
    elif method in _NAMED:
        first, name = _NAMED[method]
        rest[first:] = [f"{name}={option}" for option in rest[first:]]
    elif method == "is_in":
        rest = [f"[{', '.join(rest)}]"]
    elif expr.value is not None:
        rest.append(_scalar_text(expr.value))
    method = method.removeprefix("dt." if of.operation == "dt.in_zone" else "")
    return f"{_text(of, _TIGHTEST)}.{method}({', '.join(rest)})"


def _scalar_text(value: Scalar) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return f"({value!r})" if repr(value).startswith("-") else repr(value)
