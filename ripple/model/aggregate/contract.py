"""The contract of aggregates: a value that users write, bound to types, with columnar state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.schema.types import (
    TEXTS,
    Bool,
    Decimal,
    Dict,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Logical,
    LogicalText,
    WideDecimal,
    bare_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ripple.model.aggregate.one_row import OneRowOf

Slots: TypeAlias = "npt.NDArray[np.int64]"
# Numbers and booleans as NumPy arrays; texts and other types as Arrow arrays, or as lists, which
# is what they are in the rows of another fold.
Values: TypeAlias = "npt.NDArray[Any] | pa.Array | list[Any]"
# A result column: values in slot order, and which of them exist (None: all of them).
Column: TypeAlias = "tuple[npt.NDArray[Any] | list[Any], npt.NDArray[np.bool_] | None]"
# A field's name, or an expression object, which aggregates store and never look into.
Input: TypeAlias = Any

RESULT_VALUES_MAX = 1_000_000  # values or rows in one result


class State(ABC):
    """Accumulators of one aggregate, one per slot.

    ``slots`` is an int64 array and may name a slot more than once; values come as one column for
    each input, without nulls, one value for each slot. A slot's result and dump are functions of
    the multiset of its values, never of the order of calls. Optional inputs (``Aggregate.needed``)
    come as Arrow arrays or lists with nulls.
    """

    may_refuse: ClassVar[bool] = False  # whether there are values that ``refused`` returns
    one_row: OneRowOf | None = None  # where a slot has one row, which columns take as it is kept

    @abstractmethod
    def resize(self, slots: int) -> None:
        """Set the number of slots; new ones are empty."""

    @abstractmethod
    def add(self, slots: Slots, *values: Values) -> None:
        """Add each value to its slot; ordered aggregates take ``time_ns, offset`` last."""

    @abstractmethod
    def remove(self, slots: Slots, *values: Values) -> None:
        """Undo one add of each value."""

    @abstractmethod
    def merge(self, into: Slots, source: Slots) -> None:
        """Move the values of each slot of ``source`` to its partner in ``into``."""

    @abstractmethod
    def clear(self, slots: Slots) -> None:
        """Empty the slots."""

    def refused(self, rows: int, *values: Values) -> dict[int, str]:
        """Return those of ``rows`` rows that cannot be added to an empty slot, and why."""
        del rows, values
        return {}

    @abstractmethod
    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read one column for each of ``Bound.results``.

        Raises AggregateError when one of the slots has no result; the others then have theirs when
        they are read without it.
        """

    @abstractmethod
    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return the slots' values as Arrow columns; equal multisets dump to equal bytes."""

    def dump_partial(self, slots: Slots) -> dict[str, pa.Array]:
        """Return the slots' contributions to a whole, if the aggregate decomposes.

        As a state that is not retractable dumps it: it may be less than the whole state.
        """
        return self.dump(slots)

    @abstractmethod
    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' values by dumped ones; raises ``StateError``."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of memory held."""

    def result(self, slots: Slots) -> Column:
        """Read the only column of an aggregate with one result."""
        (column,) = self.results(slots)
        return column


@frozen
class Bound:
    """An aggregate with known input types.

    ``results`` has one (suffix, type) per result column; a single result has the suffix "".
    A result that an empty group does not have is an ``Option``.
    """

    results: tuple[tuple[str, FieldType], ...]
    make: Callable[[bool], State]

    @property
    def result(self) -> FieldType:
        """The type of the only result."""
        ((_, only),) = self.results
        return only

    def state(self, *, retractable: bool) -> State:
        """Make an empty state; without ``retractable`` it may refuse ``remove``."""
        return self.make(retractable)


@dataclass(frozen=True)
class Aggregate(ABC):
    """An immutable description of an aggregation, not yet of types.

    All its distinctions are fields, because a plan's topology hash is made of them. A class that
    adds fields is a frozen dataclass too.
    """

    inputs: tuple[Input, ...]

    name: ClassVar[str]
    # What the error says where one is taken for a value.
    instead: ClassVar[str] = (
        "an aggregate is a result of .fold, and later steps compute with it, as in "
        '.fold("NAME", a=rp.sum("FIELD"), n=rp.count()).derive("NAME", b=rp.col("a") / rp.col("n"))'
    )
    named_apart: ClassVar[bool] = True  # results have the name that a fold gives it before theirs
    ordered: ClassVar[bool] = False  # each value comes with (time_ns, offset)

    @property
    def decomposes(self) -> bool:
        """Whether states of parts of the rows, much smaller than the rows, merge to the whole's."""
        return False

    @property
    def merges(self) -> bool:
        """Whether two states can become one, as sessions need."""
        return True

    @property
    def needed(self) -> int:
        """How many of the first inputs a row must have to count; the others come with nulls."""
        return len(self.inputs)

    @property
    def by_value(self) -> bool:
        """Whether a value decides, and the place only between equal values.

        Such an ordered aggregate needs no event time, and takes the rows of a table too, where the
        key of a row, given last, is its place.
        """
        return False

    @property
    def parameters(self) -> tuple[str, ...]:
        """Its parameters besides the inputs, for messages."""
        return ()

    def bind(self, types: tuple[FieldType, ...]) -> Bound:
        """Return the aggregate over inputs of ``types``; raises :class:`PlanError`."""
        if len(types) != len(self.inputs):
            raise PlanError(f"{self}: {len(self.inputs)} inputs, but {len(types)} types")
        return self._bind(*(bare_type(of) for of in types))

    @abstractmethod
    def _bind(self, *types: FieldType) -> Bound:
        """Bind to types that are not optional."""

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.inputs))})"

    if not TYPE_CHECKING:  # else a type checker would accept any name, and any arithmetic

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with the way to write a method of another library."""
            from ripple.model.other_names import no_attribute  # noqa: PLC0415 - only on errors

            raise no_attribute(self, name, "aggregate")

        def _refuse(self, *_: object) -> Any:
            raise PlanError(f"{shown(self)} cannot stand in an expression: {self.instead}")

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _refuse
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _refuse
        __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = _refuse

    def result_names(self, given: str, bound: Bound) -> list[str]:
        """Return the names of the results in a row. given: the aggregate's name in its fold."""
        if not self.named_apart:
            return [suffix for suffix, _ in bound.results]
        return [f"{given}_{suffix}" if suffix else given for suffix, _ in bound.results]

    def unnamed(self) -> Aggregate:
        """Return it with its results' names, for a fold without a name for it.

        Raises PlanError where a result has no name.
        """
        if self.named_apart:
            raise PlanError(
                f"results of {call_of(self)} have no names of their own: name it, as in "
                f"{self.name}={call_of(self)}"
            )
        return self

    def misfit(self, wanted: str, *types: FieldType) -> PlanError:
        """Return the error for inputs of the wrong types."""
        seen = ", ".join(type(t).__name__.lower().removeprefix("wide") for t in types)
        way = "cast it or choose another field"
        if any(isinstance(bare_type(t), (Decimal, WideDecimal)) for t in types):
            way = (
                "cast it to float in a .derive before, or divide one rp.sum by another in one "
                "behind, .divide(..., scale=4)"
            )
        if any(isinstance(bare_type(t), List) for t in types):
            way = "take an item with .list.get(n), or make rows of the items with .flat_map"
        elif any(isinstance(bare_type(t), Dict) for t in types):
            way = "take a value with .dict.get('key'), or make rows of the members with .flat_map"
        return PlanError(f"{self} needs {wanted}, not {seen}: {way}")

    def need_numbers(self, *types: FieldType) -> None:
        """Raise :class:`PlanError` unless every type is a number."""
        if not all(isinstance(t, (Float, Int, Int64)) for t in types):
            raise self.misfit("a number" if len(types) == 1 else "numbers", *types)


def call_of(aggregate: Aggregate) -> str:
    """Return the call that makes an aggregate, for messages; expressions in it are dots."""
    inputs = [repr(one) if isinstance(one, str) else "..." for one in aggregate.inputs]
    return f"rp.{aggregate.name}({', '.join([*inputs, *aggregate.parameters])})"


def is_integer(of: FieldType) -> bool:
    """Tell whether a column of this type is int64."""
    return isinstance(of, (Int, Int64, Logical)) and not isinstance(of, LogicalText)


def is_float(of: FieldType) -> bool:
    """Tell whether a column of this type is float64."""
    return isinstance(of, Float)


def keepable(of: FieldType) -> bool:
    """Tell whether a state can keep values of this type, in an order of its own for maps."""
    return is_float(of) or is_integer(of) or isinstance(of, (*TEXTS, Bool))


def orderable(of: FieldType) -> bool:
    """Tell whether values of this type have an order that users may ask for."""
    return keepable(of) and not isinstance(of, Dict)
