"""One accumulator of any aggregate, for notebooks, tests and the folds of single cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ripple.core.arguments import need_bool, shown
from ripple.core.calls import called
from ripple.core.errors import PlanError, SchemaError
from ripple.model.aggregate.contract import Aggregate
from ripple.model.schema.columns import fitted
from ripple.model.schema.types import TEXTS, Bool, FieldType, Float, Int64, Option, String

ZERO = np.zeros(1, np.int64)


class Accumulator:
    """A single group, fed with Python values.

    ``types`` are those of the aggregate's inputs; without them every input is a Float. Ordered
    aggregates take ``time_ns`` and ``offset`` after the values, and without them count events
    as they come.

    >>> total = Accumulator(sum("size"))
    >>> total.add(0.1); total.add(0.2); total.remove(0.1); total.result()
    0.2
    """

    @called("rp.Accumulator", 'rp.sum("FIELD")')
    def __init__(
        self,
        aggregate: Aggregate,
        types: tuple[FieldType, ...] | None = None,
        *,
        retractable: bool = True,
    ) -> None:
        need_aggregate("Accumulator: aggregate", aggregate)
        need_types("Accumulator: types", types)
        need_bool("Accumulator: retractable", retractable)
        self.types = types or (Float(),) * len(aggregate.inputs)
        self.bound = aggregate.bind(self.types)
        self._aggregate = aggregate
        self._state = self.bound.state(retractable=retractable)
        self._state.resize(1)

    def add(self, *values: Any) -> None:
        """Add one row."""
        self._state.add(ZERO, *self._columns(values))

    def remove(self, *values: Any) -> None:
        """Remove one row that was added."""
        self._state.remove(ZERO, *self._columns(values))

    def result(self) -> Any:
        """Return the result; a dict by suffix for an aggregate with several, None for none."""
        found = {
            suffix: None if valid is not None and not valid[0] else as_python(values[0])
            for (suffix, _), (values, valid) in zip(
                self.bound.results, self._state.results(ZERO), strict=True
            )
        }
        return found[""] if list(found) == [""] else found

    def clear(self) -> None:
        """Start again."""
        self._state.clear(ZERO)

    def _columns(self, values: tuple[Any, ...]) -> list[Any]:
        place = values[len(self.types) :]
        if len(values) < len(self.types) or len(place) != (2 if self._aggregate.ordered else 0):
            wanted = [type(t).__name__.lower() for t in self.types]
            wanted += ["time_ns", "offset"] if self._aggregate.ordered else []
            raise SchemaError(f"expected ({', '.join(wanted)}), not {shown(values)}")
        needed = self._aggregate.needed
        columns = [
            [None] if value is None and at >= needed else column_of(of, [value])
            for at, (of, value) in enumerate(zip(self.types, values, strict=False))
        ]
        return columns + [column_of(Int64(), [p]) for p in place]


def column_of(of: FieldType, values: list[Any]) -> Any:
    """Return Python values as a state takes them, none of them None; raises SchemaError."""
    found = fitted(values, of, "a value")
    for reason in found.misfits.values():
        raise SchemaError(reason)
    if found.valid is not None:
        raise SchemaError("a value is None, and aggregates leave out nulls")
    of = of.of if isinstance(of, Option) else of
    return pa.array(found.values, pa.string()) if isinstance(of, TEXTS) else found.values


def need_aggregate(what: str, given: object) -> None:
    """Raise :class:`PlanError` unless ``given`` is an aggregate."""
    if not isinstance(given, Aggregate):
        raise PlanError(f"{what} must be an aggregate such as rp.sum('size'), not {shown(given)}")


def need_types(what: str, given: object) -> None:
    """Raise :class:`PlanError` unless ``given`` is None or a tuple of field types."""
    if given is None or (
        isinstance(given, tuple) and all(isinstance(of, FieldType) for of in given)
    ):
        return
    raise PlanError(f"{what} must be a tuple of field types, not {shown(given)}")


def as_python(value: Any) -> Any:
    """Return a scalar of NumPy or Arrow as the Python value that it is."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    return value.item() if isinstance(value, np.generic) else value


def type_of(value: Any) -> FieldType:
    """Return the field type of a Python value; raises :class:`PlanError`."""
    kinds: dict[type, FieldType] = {bool: Bool(), int: Int64(), float: Float(), str: String()}
    if type(value) not in kinds:
        raise PlanError(f"no field type for {value!r}")
    return kinds[type(value)]
