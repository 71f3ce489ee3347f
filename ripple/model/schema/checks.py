"""Checks of a record's field beyond its type, with the form in which a source writes its times.

They decide which records are admitted. They are no part of a schema, which says how Ripple writes
values: fingerprints, compatibility and bytes are the same with and without them.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ripple.core.errors import SchemaError
from ripple.core.frozen import frozen
from ripple.model.schema.bytes_form import FORMS
from ripple.model.schema.date_form import is_date_pattern
from ripple.model.schema.json_form import JSON, JsonForm
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.time_form import TimeForm
from ripple.model.schema.types import (
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Logical,
    LogicalText,
    Option,
    String,
    WideDecimal,
    bare_type,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.core.sexp import Sexp
    from ripple.model.schema.bytes_form import BytesForm
    from ripple.model.schema.date_form import DateForm
    from ripple.model.schema.decimal_form import DecimalForm, WideDecimalForm
    from ripple.model.schema.list_form import ListForm
    from ripple.model.schema.map_form import MapForm
    from ripple.model.schema.uuid_form import UuidForm

    Form: TypeAlias = (
        ListForm
        | MapForm
        | BytesForm
        | TimeForm
        | DateForm
        | DecimalForm
        | WideDecimalForm
        | UuidForm
        | JsonForm
    )

Number: TypeAlias = int | float
Bound: TypeAlias = Number | decimal.Decimal | dt.date

_INT64 = (-(1 << 63), (1 << 63) - 1)
_BOUNDS = ("gt", "ge", "lt", "le")
_APPLIES_TO: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(_BOUNDS, ((Int, Int64, Float, Logical), "numbers, dates and times")),
    "finite": ((Float,), "floats"),
    **dict.fromkeys(("min_length", "max_length"), ((String,), "text")),
    **dict.fromkeys(("format", "zone"), ((Int, Int64, Logical), "times, dates and bytes")),
}


@frozen
class Checks:
    """All of these must hold of a value; an optional field that is none passes.

    gt, ge, lt, le: bounds of a number, a date or a time, at most one from below and one from above;
    NaN is within no bounds. finite: a float that is neither infinite nor NaN. min_length,
    max_length: of a text, in characters (code points). Raises SchemaError for anything else.
    """

    gt: Bound | None = None
    ge: Bound | None = None
    lt: Bound | None = None
    le: Bound | None = None
    finite: bool = False
    min_length: int | None = None
    max_length: int | None = None

    def __post_init__(self) -> None:
        for name, value in self.given().items():
            if name in _BOUNDS and not _is_bound(value):
                raise SchemaError(
                    f"{name} is {value!r}, but a bound is a finite number, a date or a time"
                )
            if name == "finite" and value is not True:
                raise SchemaError(f"finite is {value!r}, but it is True or False")
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if name.endswith("length") and not (is_whole and value >= 0):
                raise SchemaError(f"{name} is {value!r}, but a length is a whole number from 0 on")
        for one, other in (("gt", "ge"), ("lt", "le")):
            if {one, other} <= self.given().keys():
                raise SchemaError(f"{one} and {other} are bounds from the same side: leave one out")

    def given(self) -> dict[str, Any]:
        """Return the checks that there are, by name."""
        values = {member.name: getattr(self, member.name) for member in fields(self)}
        return {n: value for n, value in values.items() if value is not None and value is not False}

    def __str__(self) -> str:
        """Return the checks as they are written: ``gt=0, finite=True``."""
        return ", ".join(f"{name}={value!r}" for name, value in self.given().items())

    def fitted(self, member: Field) -> Checks:
        """Return the checks with bounds of the field's type.

        Raises SchemaError naming the field, for a check that its type does
        not have, a bound that it cannot hold, and checks that no value passes.
        """
        kind = member.type.of if isinstance(member.type, Option) else member.type
        bounds: dict[str, Number] = {}
        for name, value in self.given().items():
            kinds, words = _APPLIES_TO[name]
            is_json = name == "format" and value == JSON
            of = kind.of if isinstance(kind, List) and name in ("format", "zone") else None
            if not is_json and isinstance(of, kinds):
                continue
            if is_json and isinstance(kind, String):
                continue
            if isinstance(kind, LogicalText) and name in _BOUNDS:
                way_out = f'.filter("sound", rp.col({member.name!r}) > 0) drops others'
                raise SchemaError(
                    f"the field {member.name!r} is {rule_of(kind).word}, which has no bounds"
                    + (f": {way_out}" if isinstance(kind, WideDecimal) else "")
                )
            if is_json:
                raise SchemaError(
                    f"the field {member.name!r} has format='json', which is of a text for an array "
                    "or an object of JSON: declare it as str, or leave the format out"
                )
            if not isinstance(kind, kinds):
                raise SchemaError(
                    f"the field {member.name!r} is {type(kind).__name__}, but {name} is a check of "
                    f"{words}"
                )
            if name in _BOUNDS:
                bound = _logical(value, kind) if isinstance(kind, Logical) else _typed(value, kind)
                if bound is None:
                    raise SchemaError(
                        f"the field {member.name!r} is {type(kind).__name__}, which cannot be "
                        f"{value!r}: choose another bound"
                    )
                bounds[name] = bound
        form_of(kind.of if isinstance(kind, List) else kind, self)
        checks = replace(self, **bounds)  # type: ignore[arg-type]
        (low, high), (shortest, longest) = checks.interval, checks.lengths
        if low > high or shortest > longest:
            raise SchemaError(f"no value of the field {member.name!r} passes {self}")
        return checks

    # --- for validation ---

    @property
    def time_form(self) -> TimeForm | None:
        """How a source writes the time, None for nanoseconds."""
        return None

    @property
    def is_bounded(self) -> bool:
        """Whether there is a bound, within which NaN is not."""
        bounds = (self.gt, self.ge, self.lt, self.le)
        return any(bound is not None and bound is not False for bound in bounds)

    @property
    def is_measured(self) -> bool:
        """Whether the length of a text matters."""
        return self.min_length is not None or self.max_length is not None

    @property
    def is_of_floats(self) -> bool:
        """Whether fitted checks are of floats, not of integers or text."""
        return self.finite or any(isinstance(value, float) for value in self.given().values())

    @property
    def interval(self) -> tuple[Number, Number]:
        """The smallest and the largest number within bounds; of fitted checks.

        Both are integers of 64 bits, or doubles.
        """
        is_float = self.is_of_floats
        low, high = (-math.inf, math.inf) if is_float else _INT64
        gt, ge, lt, le = (
            cast("Number | None", each) for each in (self.gt, self.ge, self.lt, self.le)
        )
        if ge is not None:
            low = ge
        elif gt is not None:
            low = math.nextafter(gt, math.inf) if is_float else gt + 1
        if le is not None:
            high = le
        elif lt is not None:
            high = math.nextafter(lt, -math.inf) if is_float else lt - 1
        return low, high

    @property
    def lengths(self) -> tuple[int, int]:
        """The smallest and the largest number of characters."""
        return self.min_length or 0, _INT64[1] if self.max_length is None else self.max_length

    @property
    def range_words(self) -> str:
        """The bounds in words, for errors: "positive", "in [0, 10)"."""
        low = self.ge if self.gt is None else self.gt
        high = self.le if self.lt is None else self.lt
        if low is not None and high is not None:
            opening, closing = "[" if self.gt is None else "(", "]" if self.lt is None else ")"
            return f"in {opening}{low}, {high}{closing}"
        if high is not None:
            return f"less than {high}" if self.le is None else f"at most {high}"
        if self.gt is not None:
            return "positive" if low == 0 else f"greater than {low}"
        return f"at least {low}"

    @property
    def length_words(self) -> str:
        """The lengths in words, for errors: "2 to 8 characters long"."""
        if self.max_length is None:
            return f"at least {self.min_length} characters long"
        if self.min_length is None:
            return f"at most {self.max_length} characters long"
        return f"{self.min_length} to {self.max_length} characters long"


def untimed(checks: Checks) -> Checks:
    """Return checks without how a source writes the time: it has nanoseconds."""
    return checks if checks.time_form is None else formless(checks)


def formless(checks: Checks) -> Checks:
    """Return checks without the source form of the field."""
    return Checks(**{member.name: getattr(checks, member.name) for member in fields(Checks)})


# Functions of users that name a class of records are known by its checks: those without a form of
# times have to stay what they were, so the form is no field of theirs.
@frozen
class TimedChecks(Checks):
    """Checks of a time, and its form in a source. format, zone: as of ``TimeForm``.

    Bounds are of its nanoseconds. Raises SchemaError also for a wrong form.
    """

    format: str | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        if self.format is None:
            raise SchemaError(f"zone is {self.zone!r}, which is of a format: add format='iso'")
        # Of a date, a pattern has no zone; of a time it needs one, as ``form_of`` knows.
        if self.zone is not None or not _is_of_no_time(self.format):
            TimeForm(self.format, self.zone)
        Checks.__post_init__(self)

    @property
    def time_form(self) -> TimeForm | None:
        """How a source writes the time; None for a form that no time has."""
        assert self.format is not None
        if self.zone is None and _is_of_no_time(self.format):
            return None
        return TimeForm(self.format, self.zone)


def _is_of_no_time(form: str) -> bool:
    """Tell whether a form is that of dates, bytes or JSON."""
    return is_date_pattern(form) or form in (JSON, *FORMS)


def checks_with(given: Mapping[str, Any]) -> Checks:
    """Return the checks of these names; raises SchemaError as they do."""
    return Checks(**given) if given.keys().isdisjoint(("format", "zone")) else TimedChecks(**given)


def form_of(kind: FieldType, checks: Checks | None) -> Form | None:
    """Return the form of a field with these checks in its source; None for the stored form.

    Raises SchemaError for a form that values of the type do not have.
    """
    kind, given = bare_type(kind), {} if checks is None else checks.given()
    if isinstance(kind, List):
        return None  # its items have one, see RecordShape
    form, zone = given.get("format"), given.get("zone")
    if isinstance(kind, Logical):
        return rule_of(kind).form(form, zone)
    if isinstance(kind, String) and form == JSON and zone is None:
        return JsonForm()
    return None if form is None else TimeForm(form, zone)


def checks_to_sexp(checks: Mapping[str, Checks]) -> Sexp:
    """Return the canonical form of a record's checks, by field."""
    return [[name, _canonical(checks[name])] for name in sorted(checks)]


def _canonical(checks: Checks) -> str:
    form = checks.time_form
    clocks = None if form is None else form.clocks
    # Another release of the zone reads other times from the same texts.
    return str(checks) if clocks is None else f"{checks}, offsets {clocks.digest}"


class _Written(int):
    """The number of a bound of a logical type, shown as others have the value."""

    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def _is_bound(value: object) -> bool:
    if isinstance(value, decimal.Decimal):
        return value.is_finite()
    if isinstance(value, dt.date):
        return True
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and -math.inf < value < math.inf  # type: ignore[operator]  # see above


def _logical(value: Bound, kind: Logical) -> _Written | None:
    """Return the number of a bound, None if no value of the type is the bound."""
    if isinstance(value, _Written):  # fitted already
        return value
    rule = rule_of(kind)
    number = rule.number(decimal.Decimal(value) if isinstance(value, float) else value)
    if number is None:
        return None
    written = _Written(number)
    written.text = rule.written(number)
    return written


def _typed(value: Bound, kind: FieldType) -> Number | None:
    """Return a bound as a number that a column can hold, None if it is none of these."""
    if not isinstance(value, (int, float)):
        return None
    if not isinstance(kind, Float):
        whole = max(_INT64[0], min(int(value), _INT64[1]))
        return whole if whole == value else None
    try:
        double = float(value)
    except OverflowError:
        return None
    return double if double == value else None
