"""The smallest, the largest, the k largest, and how many different values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.core.arguments import need_whole
from ripple.core.calls import called
from ripple.model.aggregate.contract import (
    RESULT_VALUES_MAX,
    Aggregate,
    Bound,
    Input,
    keepable,
    orderable,
)
from ripple.model.schema.types import FieldType, Int64, List, Option

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.model.aggregate.contract import State


@called("rp.min", '"FIELD"')
def min(x: Input) -> Aggregate:  # noqa: A001 - users write rp.min; this module does not use the builtin
    """Return the smallest value; Option(x's type), none for an empty group.

    Numbers, text and booleans; -0.0 is 0.0, and NaN is above every other number.
    """
    return Extreme((x,), last=False)


@called("rp.max", '"FIELD"')
def max(x: Input) -> Aggregate:  # noqa: A001 - users write rp.max; this module does not use the builtin
    """Return the largest value, in the order of :func:`min`."""
    return Extreme((x,), last=True)


@called("rp.top_k", '"FIELD"', "3")
def top_k(x: Input, k: int) -> Aggregate:
    """Return the ``k`` largest values, descending, equal ones repeated; List(x's type).

    k: at most 1,000,000.
    """
    return TopK((x,), need_whole("top_k: k", k, 1, most=RESULT_VALUES_MAX))


@called("rp.count_distinct", '"FIELD"')
def count_distinct(x: Input) -> Aggregate:
    """Count the different values exactly, in the order of :func:`min`; Int64, 0 for none."""
    return CountDistinct((x,))


@dataclass(frozen=True)
class Extreme(Aggregate):
    """One end of the order."""

    last: bool

    @property
    def name(self) -> str:  # type: ignore[override]  # two names, one family
        """Its name for users."""
        return "max" if self.last else "min"

    decomposes = True

    def _bind(self, *types: FieldType) -> Bound:
        of = need_order(self, *types)

        def make(retractable: bool) -> State:
            from ripple.model.aggregate import ordered_states  # noqa: PLC0415 - most plans have sums alone

            return ordered_states.ExtremeState(
                self.name, of, last=self.last, retractable=retractable
            )

        return Bound((("", Option(of)),), make)


@dataclass(frozen=True)
class TopK(Aggregate):
    """The upper end of the order."""

    k: int

    @property
    def parameters(self) -> tuple[str, ...]:
        """How many."""
        return (str(self.k),)

    name = "top_k"

    def _bind(self, *types: FieldType) -> Bound:
        of = need_order(self, *types)

        def make(_retractable: bool) -> State:
            from ripple.model.aggregate import ordered_states  # noqa: PLC0415 - most plans have sums alone

            return ordered_states.largest(of, self.k)

        return Bound((("", List(of)),), make)


class CountDistinct(Aggregate):
    """How many different values."""

    name = "count_distinct"

    def _bind(self, *types: FieldType) -> Bound:
        of = need_keeping(self, *types)

        def make(_retractable: bool) -> State:
            from ripple.model.aggregate import ordered_states  # noqa: PLC0415 - most plans have sums alone

            return ordered_states.distinct(of)

        return Bound((("", Int64()),), make)


def need_keeping(aggregate: Aggregate, *types: FieldType) -> FieldType:
    """Return the only type; raises :class:`PlanError` unless states can keep its values."""
    return _need(keepable, aggregate, *types)


def need_order(aggregate: Aggregate, *types: FieldType) -> FieldType:
    """Return the only type; raises :class:`PlanError` unless its values have an order."""
    return _need(orderable, aggregate, *types)


def _need(fits: Callable[[FieldType], bool], aggregate: Aggregate, *types: FieldType) -> FieldType:
    (of,) = types
    if not fits(of):
        raise aggregate.misfit("a number, text or a boolean", of)
    return of
