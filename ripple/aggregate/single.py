"""One accumulator of any aggregate, for notebooks, tests and the folds of single cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ripple.aggregate.contract import Aggregate, is_float, is_integer
from ripple.errors import PlanError
from ripple.schema.types import Bool, FieldType, Float, Int64, Option, String

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

    def __init__(
        self,
        aggregate: Aggregate,
        types: tuple[FieldType, ...] | None = None,
        *,
        retractable: bool = True,
    ) -> None:
        self.types = types or (Float(),) * len(aggregate.inputs)
        self.bound = aggregate.bind(self.types)
        self._ordered = aggregate.ordered
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
        if len(values) < len(self.types) or len(place) != (2 if self._ordered else 0):
            wanted = [type(t).__name__.lower() for t in self.types]
            wanted += ["time_ns", "offset"] if self._ordered else []
            raise TypeError(f"expected ({', '.join(wanted)}), not {values!r}")
        columns = [column_of(t, [v]) for t, v in zip(self.types, values, strict=False)]
        return columns + [np.array([p], np.int64) for p in place]


def column_of(of: FieldType, values: list[Any]) -> Any:
    """Return Python values as a state takes them; raises :class:`PlanError`."""
    if isinstance(of, Option):
        of = of.of
    if is_float(of):
        return np.array(values, np.float64)
    if is_integer(of):
        return np.array(values, np.int64)
    if isinstance(of, Bool):
        return np.array(values, np.bool_)
    if isinstance(of, String):
        return pa.array(values, pa.string())
    raise PlanError(f"no column of {type(of).__name__.lower()} can be made here")


def as_python(value: Any) -> Any:
    """Return a NumPy scalar as the Python value that it is."""
    return value.item() if isinstance(value, np.generic) else value


def type_of(value: Any) -> FieldType:
    """Return the field type of a Python value; raises :class:`PlanError`."""
    kinds: dict[type, FieldType] = {bool: Bool(), int: Int64(), float: Float(), str: String()}
    if type(value) not in kinds:
        raise PlanError(f"no field type for {value!r}")
    return kinds[type(value)]
