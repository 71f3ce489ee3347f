"""The states of aggregates over the best rows of a group.

Of a stream only the best rows are state: one, in the compiled module one_row, or several, in best.
Rows of a table may be retracted, so that all of them are, in best as well.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.model.aggregate.best import BestOf, HeldOf
from ripple.model.aggregate.best_columns import (
    arrow_of,
    int64s,
    letter_of,
    spread,
    strip,
)
from ripple.model.aggregate.contract import Slots, State, Values
from ripple.model.aggregate.errors import StateError
from ripple.model.aggregate.one_row import OneRowOf
from ripple.model.aggregate.ordered import raise_absent
from ripple.model.aggregate.orders import lists
from ripple.model.aggregate.parts import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.model.aggregate.best_columns import Strip
    from ripple.model.aggregate.contract import Column
    from ripple.model.aggregate.whole_rows import WholeRows
    from ripple.model.schema.types import FieldType


class RowsState(State):
    """The base of both states: results, and dumps as lists."""

    def __init__(self, aggregate: WholeRows, types: Sequence[FieldType], place: list[str]) -> None:
        self._aggregate = aggregate
        self._by, self._fields = types[: aggregate.needed], types[aggregate.needed :]
        rows = [f"row_{name}" for name in aggregate.names]
        self._dumped = [*(["by"] if self._by else []), *rows, *place]

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read a column for each field of the best row, or one of lists of rows."""
        starts, strips = self._best_rows(slots)
        fields = zip(strips, self._fields, strict=True)
        if not self._aggregate.is_list:
            held = np.diff(starts).astype(np.bool_)
            return tuple(spread(strip, of, held) for strip, of in fields)
        columns = [arrow_of(strip, of) for strip, of in fields]
        rows = columns[0]
        if len(columns) > 1:
            rows = pa.StructArray.from_arrays(columns, self._aggregate.names)
        return ((pa.LargeListArray.from_arrays(pa.array(starts), rows), None),)

    @abstractmethod
    def _best_rows(self, slots: Slots) -> tuple[Slots, Sequence[Strip]]:
        """Return the offsets of each slot's rows, and the fields of all of them, the best first."""

    def _lists(self, starts: Slots, columns: Sequence[Any]) -> dict[str, pa.Array]:
        return lists(starts, **dict(zip(self._dumped, columns, strict=True)))

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' rows by dumped ones; raises :class:`StateError`."""
        self.clear(slots)
        try:
            dumped = [arrays[name] for name in self._dumped]
            counts = np.diff(dumped[0].offsets.to_numpy())
            self.add(np.repeat(slots, counts), *(one.flatten() for one in dumped))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise StateError(f"the dumped rows do not fit: {error!r}") from error


class BestRows(RowsState):
    """The best rows of each slot, of an insert-only stream."""

    def __init__(self, aggregate: WholeRows, types: Sequence[FieldType]) -> None:
        super().__init__(aggregate, types, ["time_ns", "offset"])
        by, kinds = _kinds(self._by), _kinds(self._fields)
        largest = aggregate.last and aggregate.by_value
        latest = aggregate.last and not aggregate.by_value
        self._best: BestOf | OneRowOf
        if aggregate.is_list:
            limit = aggregate.limit
            self._best = BestOf(limit=limit, by=by, largest=largest, latest=latest, kinds=kinds)
        else:
            self._best = self.one_row = OneRowOf(by=by, largest=largest, latest=latest, kinds=kinds)

    def resize(self, slots: int) -> None:
        """Set the number of slots; new ones are empty."""
        self._best.resize(slots)

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each row to its slot: the value, the fields, time and offset."""
        *columns, time_ns, offset = values
        strips = [strip(*one) for one in zip(columns, (*self._by, *self._fields), strict=True)]
        by = strips.pop(0) if self._by else None
        times = int64s(time_ns)
        if self._aggregate.by_offset:
            times = np.zeros_like(times)
        self._best.add(slots, by, strips, times, int64s(offset))

    def remove(self, slots: Slots, *values: Values) -> None:
        """Raise ``AggregateError``: rows of such a state stay."""
        self._best.remove(slots, *values)

    def merge(self, into: Slots, source: Slots) -> None:
        """Move the rows of each slot of ``source`` to its partner in ``into``."""
        self._best.merge(into, source)

    def clear(self, slots: Slots) -> None:
        """Empty the slots."""
        self._best.clear(slots)

    def _best_rows(self, slots: Slots) -> tuple[Slots, Sequence[Strip]]:
        starts, _, _, fields = self._best.encode(slots)
        return starts, fields

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return the best rows as lists, the best first."""
        starts, places, by, fields = self._best.encode(slots)
        strips = [by, *fields] if self._by else fields
        typed = zip(strips, (*self._by, *self._fields), strict=True)
        return self._lists(starts, [*(arrow_of(*one) for one in typed), *places.T])

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return self._best.nbytes


class HeldRows(RowsState):
    """All rows of each slot, of a table.

    place: the types of the tie-breakers, such as the table's key.
    """

    def __init__(
        self, aggregate: WholeRows, types: Sequence[FieldType], place: Sequence[FieldType]
    ) -> None:
        super().__init__(aggregate, types, [f"place_{at}" for at in range(len(place))])
        self._types = (*types, *place)
        self._held = HeldOf(
            limit=aggregate.limit,
            last=aggregate.last,
            values=_kinds(self._by),
            fields=_kinds(self._fields),
            places=_kinds(place),
        )

    def resize(self, slots: int) -> None:
        """Set the number of slots; new ones are empty."""
        self._held.resize(slots)

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each row to its slot: the value, the fields, the place."""
        self._held.add(slots, self._strips(values))

    def remove(self, slots: Slots, *values: Values) -> None:
        """Take each row out of its slot; raises ``AggregateError`` if it is not there."""
        absent = self._held.remove(slots, self._strips(values))
        if absent >= 0:
            raise_absent(tuple(listed(column)[absent] for column in values))

    def _strips(self, values: Sequence[Values]) -> list[Strip]:
        return [strip(*one) for one in zip(values, self._types, strict=True)]

    def merge(self, into: Slots, source: Slots) -> None:
        """Move the rows of each slot of ``source`` to its partner in ``into``."""
        self._held.merge(into, source)

    def clear(self, slots: Slots) -> None:
        """Empty the slots."""
        self._held.clear(slots)

    def _best_rows(self, slots: Slots) -> tuple[Slots, Sequence[Strip]]:
        starts, columns = self._held.encode(slots, whole=False)
        return starts, columns[len(self._by) : len(self._by) + len(self._fields)]

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return all rows as lists, in their order."""
        starts, columns = self._held.encode(slots, whole=True)
        typed = zip(columns, self._types, strict=True)
        return self._lists(starts, [arrow_of(*one) for one in typed])

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return self._held.nbytes


def _kinds(types: Sequence[FieldType]) -> str:
    return "".join(map(letter_of, types))
