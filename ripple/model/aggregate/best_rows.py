"""The states of aggregates over the best rows of a group.

Of a stream only the best rows are state, in the compiled module best. Rows of a table may be
retracted, so that all of them are state, in plain Python.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, insort
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.model.aggregate.best import BestOf, records
from ripple.model.aggregate.best_columns import (
    arrow_columns,
    arrow_of,
    int64s,
    letter_of,
    spread,
    strip,
)
from ripple.model.aggregate.contract import Slots, State, Values
from ripple.model.aggregate.errors import StateError
from ripple.model.aggregate.ordered import raise_absent
from ripple.model.aggregate.orders import lists
from ripple.model.aggregate.plain import listed
from ripple.model.schema.types import Float

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.model.aggregate.contract import Column
    from ripple.model.aggregate.whole_rows import WholeRows
    from ripple.model.schema.types import FieldType

ENTRY_BYTES = 500  # about what CPython needs for a row of few fields
_NULL: tuple[Any, ...] = (0,)


class RowsState(State):
    """The base of both states: results, and dumps as lists."""

    def __init__(self, aggregate: WholeRows, types: Sequence[FieldType], place: list[str]) -> None:
        self._aggregate = aggregate
        self._by, self._fields = types[: aggregate.needed], types[aggregate.needed :]
        rows = [f"row_{name}" for name in aggregate.names]
        self._dumped = [*(["by"] if self._by else []), *rows, *place]

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read a column for each field of the best row, or one of lists of rows."""
        starts, columns = self._best_rows(slots)
        if not self._aggregate.is_list:
            fields = zip(columns, self._fields, strict=True)
            return tuple(spread(column, of, starts) for column, of in fields)
        rows: list[Any]
        if len(columns) == 1:
            rows = columns[0].to_pylist()
        else:
            rows = records(self._aggregate.names, [column.to_pylist() for column in columns])
        return (([rows[a:b] for a, b in pairwise(starts.tolist())], None),)

    @abstractmethod
    def _best_rows(self, slots: Slots) -> tuple[Slots, list[pa.Array]]:
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
        self._best = BestOf(
            limit=aggregate.limit,
            by="".join(map(letter_of, self._by)),
            largest=aggregate.last and aggregate.by_value,
            latest=aggregate.last and not aggregate.by_value,
            kinds="".join(map(letter_of, self._fields)),
        )

    def resize(self, slots: int) -> None:
        """Set the number of slots; new ones are empty."""
        self._best.resize(slots)

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each row to its slot: the value, the fields, time and offset."""
        *columns, time_ns, offset = values
        strips = [strip(*one) for one in zip(columns, (*self._by, *self._fields), strict=True)]
        by = strips.pop(0) if self._by else None
        self._best.add(slots, by, strips, int64s(time_ns), int64s(offset))

    def remove(self, slots: Slots, *values: Values) -> None:
        """Raise ``AggregateError``: rows of such a state stay."""
        self._best.remove(slots, *values)

    def merge(self, into: Slots, source: Slots) -> None:
        """Move the rows of each slot of ``source`` to its partner in ``into``."""
        self._best.merge(into, source)

    def clear(self, slots: Slots) -> None:
        """Empty the slots."""
        self._best.clear(slots)

    def _best_rows(self, slots: Slots) -> tuple[Slots, list[pa.Array]]:
        starts, _, _, fields = self._best.encode(slots)
        return starts, [arrow_of(*one) for one in zip(fields, self._fields, strict=True)]

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
    """All rows of each slot in order: a sorted list of entries.

    An entry is the keys of value, place and fields, in this order of comparison, then the same as
    they are. place: the types of the tie-breakers, such as a table's key.
    """

    def __init__(
        self, aggregate: WholeRows, types: Sequence[FieldType], place: Sequence[FieldType]
    ) -> None:
        super().__init__(aggregate, types, [f"place_{at}" for at in range(len(place))])
        self._place = place
        self._entries: list[list[Any]] = []

    def resize(self, slots: int) -> None:
        """Set the number of slots; new ones are empty."""
        del self._entries[slots:]
        while len(self._entries) < slots:
            self._entries.append([])

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each row to its slot: the value, the fields, the place."""
        for slot, entry in self._rows(slots, values):
            insort(self._entries[slot], entry)

    def remove(self, slots: Slots, *values: Values) -> None:
        """Take each row out of its slot; raises ``AggregateError`` if it is not there."""
        for slot, entry in self._rows(slots, values):
            entries = self._entries[slot]
            at = bisect_left(entries, entry[:3])
            if at == len(entries) or entries[at][:3] != entry[:3]:
                raise_absent(entry[3])
            del entries[at]

    def _rows(self, slots: Slots, values: Sequence[Values]) -> Iterator[tuple[int, Any]]:
        columns = list(map(listed, values))
        types = (*self._by, *self._fields, *self._place)
        keys = [_keys(*one) for one in zip(columns, types, strict=True)]
        first, last = len(self._by), len(self._by) + len(self._fields)
        parts = slice(first), slice(last, None), slice(first, last)
        ordered, plain = (
            [_rows_of(table[part], len(slots)) for part in parts] for table in (keys, columns)
        )
        return zip(
            slots.tolist(), zip(*ordered, zip(*plain, strict=True), strict=True), strict=True
        )

    def merge(self, into: Slots, source: Slots) -> None:
        """Move the rows of each slot of ``source`` to its partner in ``into``."""
        for to, slot in zip(into.tolist(), source.tolist(), strict=True):
            if to != slot:
                self._entries[to] = sorted(self._entries[to] + self._entries[slot])
                self._entries[slot] = []

    def clear(self, slots: Slots) -> None:
        """Empty the slots."""
        for slot in slots.tolist():
            self._entries[slot] = []

    def _best_rows(self, slots: Slots) -> tuple[Slots, list[pa.Array]]:
        shown = [self._shown(slot) for slot in slots.tolist()]
        return _starts(shown), arrow_columns([row for rows in shown for row in rows], self._fields)

    def _shown(self, slot: int) -> list[Any]:
        """Return the fields of the best rows, the best first."""
        entries, limit = self._entries[slot], self._aggregate.limit
        if not self._aggregate.last:
            return [entry[3][2] for entry in entries[:limit]]
        if not self._aggregate.by_value:
            return [entry[3][2] for entry in entries[-1:]]
        found: list[Any] = []
        end = len(entries)
        while end and len(found) < limit:
            begin = bisect_left(entries, entries[end - 1][:1])  # of equal values, in their order
            found += [entry[3][2] for entry in entries[begin : min(end, begin + limit)]]
            end = begin
        return found[:limit]

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return all rows as lists, in their order."""
        held = [self._entries[slot] for slot in slots.tolist()]
        rows = [(*by, *row, *place) for entries in held for *_, (by, place, row) in entries]
        columns = arrow_columns(rows, (*self._by, *self._fields, *self._place))
        return self._lists(_starts(held), columns)

    @property
    def nbytes(self) -> int:
        """Bytes of memory held, estimated."""
        return ENTRY_BYTES * sum(map(len, self._entries))


def _starts(lists: Sequence[Sequence[Any]]) -> Slots:
    return np.concatenate(([0], np.cumsum([len(one) for one in lists]))).astype(np.int64)


def _rows_of(columns: Sequence[list[Any]], count: int) -> Sequence[tuple[Any, ...]]:
    """Return the rows of columns; there may be no column."""
    return list(zip(*columns, strict=True)) if columns else [()] * count


def _keys(column: list[Any], of: FieldType) -> list[tuple[Any, ...]]:
    """Return keys in the order of min and max; null is below all, as in the compiled state."""
    if isinstance(of, Float):
        return [_NULL if value is None else _float_key(value) for value in column]
    return [_NULL if value is None else (1, value) for value in column]


def _float_key(value: float) -> tuple[Any, ...]:
    return (1, 1, 0.0) if value != value else (1, 0, value + 0.0)  # noqa: PLR0124 - NaN
