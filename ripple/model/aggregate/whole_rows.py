"""Aggregates with rows as their result: the first, the last, those with the extremes of a value.

Of a row some fields are taken together: nulls among them are shown as they are, while a row with a
null value to compare does not count.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ripple.core.arguments import need_whole, shown
from ripple.core.calls import called
from ripple.core.errors import PlanError
from ripple.model.aggregate.contract import (
    RESULT_VALUES_MAX,
    Aggregate,
    Bound,
    Input,
    keepable,
    orderable,
)
from ripple.model.schema.types import Field, FieldType, Int64, List, Option, Record, bare_type

if TYPE_CHECKING:
    from ripple.model.aggregate.contract import State


@called("rp.first_row", '"FIELD"')
def first_row(fields: Input | Sequence[Input]) -> Aggregate:
    """Return the fields of the earliest event, with their nulls.

    fields: a name or several. One is a result of its type, several are a result each.
    """
    return EdgeRow(*_inputs("first_row", fields), last=False)


@called("rp.last_row", '"FIELD"')
def last_row(fields: Input | Sequence[Input]) -> Aggregate:
    """Return the fields of the latest event, as :func:`first_row` does."""
    return EdgeRow(*_inputs("last_row", fields), last=True)


@called("rp.arg_min", '"FIELD"', '"FIELD"')
def arg_min(by: Input, fields: Input | Sequence[Input]) -> Aggregate:
    """Return the fields of the row with the smallest value, in the order of :func:`min`.

    The earliest of equal ones; over the results of another fold, that with the smallest key. by: a
    field or an expression; a row where it is null does not count. fields: as of :func:`first_row`.
    """
    return ArgExtreme(*_inputs("arg_min", fields, by), last=False)


@called("rp.arg_max", '"FIELD"', '"FIELD"')
def arg_max(by: Input, fields: Input | Sequence[Input]) -> Aggregate:
    """Return the fields of the row with the largest value, otherwise as :func:`arg_min`."""
    return ArgExtreme(*_inputs("arg_max", fields, by), last=True)


@called("rp.top_rows", "3", '"FIELD"', '"FIELD"')
def top_rows(n: int, by: Input, fields: Input | Sequence[Input]) -> Aggregate:
    """Return up to ``n`` rows with the largest values, the largest first; a List.

    Each is a record of its fields, or the value of the only one. Equal values and nulls are as
    :func:`arg_max` has them.
    """
    return TopRows(
        *_inputs("top_rows", fields, by), need_whole("top_rows: n", n, 1, most=RESULT_VALUES_MAX)
    )


@dataclass(frozen=True)
class WholeRows(Aggregate):
    """The best rows in some order; inputs: the compared value, if any, then the fields.

    names: of the fields.
    """

    names: tuple[str, ...]

    ordered = True
    last = True
    is_list: ClassVar[bool] = False  # whether the result is one list, in place of a row's fields
    by_offset: ClassVar[bool] = False  # whether event times order nothing

    @property
    def by_value(self) -> bool:
        """Whether a value decides, and the place only between equal ones."""
        return len(self.inputs) > len(self.names)

    @property
    def needed(self) -> int:
        """The number of first inputs that must not be null for a row to count."""
        return len(self.inputs) - len(self.names)

    def bind(self, types: tuple[FieldType, ...]) -> Bound:
        """Return the aggregate over inputs of ``types``, and those of the place in a table."""
        inner = tuple(bare_type(of) for of in types)
        for at, of in enumerate(inner[: len(self.inputs)]):
            if not (orderable if at < self.needed else keepable)(of):
                raise self.misfit("numbers, texts or booleans", of)
        fields = types[self.needed : len(self.inputs)]
        may_be_none = any(isinstance(of, Option) for of in types[: self.needed])

        def make(retractable: bool) -> State:
            from ripple.model.aggregate.best_rows import BestRows, HeldRows  # noqa: PLC0415 - most plans have none

            inputs = inner[: len(self.inputs)]
            if not retractable:
                return BestRows(self, inputs)
            return HeldRows(self, inputs, inner[len(self.inputs) :] or (Int64(), Int64()))

        return Bound(self._results(fields, may_be_none=may_be_none), make)

    def _bind(self, *types: FieldType) -> Bound:
        return self.bind(types)

    @property
    def limit(self) -> int:
        """How many rows of a group are shown."""
        return 1

    @abstractmethod
    def _results(
        self, fields: tuple[FieldType, ...], *, may_be_none: bool
    ) -> tuple[tuple[str, FieldType], ...]:
        """Return names and types of results. may_be_none: whether a group may be without rows."""


@dataclass(frozen=True)
class OneRow(WholeRows):
    """The best row: a result for each field."""

    last: bool = True

    ends: ClassVar[tuple[str, str]]  # the names for users, of the first and of the last

    @property
    def name(self) -> str:  # type: ignore[override]  # two names, one family
        """Its name for users."""
        return self.ends[self.last]

    def _results(
        self, fields: tuple[FieldType, ...], *, may_be_none: bool
    ) -> tuple[tuple[str, FieldType], ...]:
        names = self.names if len(self.names) > 1 else ("",)
        return tuple(
            (name, Option(of) if may_be_none and not isinstance(of, Option) else of)
            for name, of in zip(names, fields, strict=True)
        )


class EdgeRow(OneRow):
    """The row at one end of time."""

    ends = ("first_row", "last_row")


class NewestRow(EdgeRow):
    """The row with the greatest offset, at any event time: each field as it is."""

    ends = ("newest", "newest")
    named_apart = False
    by_offset = True

    def _results(
        self, fields: tuple[FieldType, ...], *, may_be_none: bool
    ) -> tuple[tuple[str, FieldType], ...]:
        del may_be_none  # it compares no value
        return tuple(zip(self.names, fields, strict=True))


class ArgExtreme(OneRow):
    """The row at one end of a value's order."""

    ends = ("arg_min", "arg_max")


@dataclass(frozen=True)
class TopRows(WholeRows):
    """The rows at the upper end of a value's order: one list of them."""

    n: int = 1

    name = "top_rows"
    is_list = True

    @property
    def limit(self) -> int:
        """How many rows of a group are shown."""
        return self.n

    @property
    def parameters(self) -> tuple[str, ...]:
        """How many."""
        return (str(self.n),)

    def _results(
        self, fields: tuple[FieldType, ...], *, may_be_none: bool
    ) -> tuple[tuple[str, FieldType], ...]:
        del may_be_none  # then the list is empty
        if len(fields) == 1:
            return (("", List(fields[0])),)
        members = tuple(Field(name, of) for name, of in zip(self.names, fields, strict=True))
        return (("", List(Record(members))),)


def _inputs(
    kind: str, fields: Input | Sequence[Input], *by: Input
) -> tuple[tuple[Input, ...], tuple[str, ...]]:
    """Return the inputs of an aggregate, and the names of its fields; raises PlanError."""
    listed = tuple(fields) if isinstance(fields, (list, tuple)) else (fields,)
    if not listed:
        raise PlanError(f"{kind}: name the fields to show, as in {kind}(..., ['id', 'price'])")
    names = tuple(_name(kind, field) for field in listed)
    for at, name in enumerate(names):
        if name in names[:at]:
            raise PlanError(f"{kind}: the field {name!r} is named twice: leave one out")
    return (*by, *listed), names


def _name(kind: str, field: Any) -> str:
    name = field if isinstance(field, str) else None
    if getattr(field, "operation", None) == "col":  # a column as an expression
        name = field.value
    if not isinstance(name, str) or not name:
        raise PlanError(
            f"{kind}: fields are names of fields, not {shown(field)}: give an expression a name "
            "with .derive(...) first"
        )
    return name
