"""Ordered parts for text and booleans, in plain Python: one sorted list a slot.

The same behaviour as the compiled parts for numbers; text is ordered by code point, which is
the order of its UTF-8 bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.model.aggregate.ordered import raise_absent
from ripple.model.aggregate.parts import listed
from ripple.model.schema.types import Bool, FieldType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from ripple.model.aggregate.contract import Slots, Values

ENTRY_BYTES = 100  # about what CPython needs for one short string and its count


class PlainOrdered:
    """Sorted entries per slot with their counts; entries are values or event tuples."""

    def __init__(self, of: FieldType) -> None:
        self.of = of
        self.arrow = pa.bool_() if isinstance(of, Bool) else pa.large_string()
        self._entries: list[list[Any]] = []
        self._counts: list[dict[Any, int]] = []

    def resize(self, slots: int) -> None:
        """Set the number of slots; new ones are empty."""
        del self._entries[slots:], self._counts[slots:]
        while len(self._entries) < slots:
            self._entries.append([])
            self._counts.append({})

    def insert(self, slot: int, entry: Any, count: int = 1) -> None:
        """Put ``count`` of the entry into the slot."""
        counts = self._counts[slot]
        if entry not in counts:
            entries = self._entries[slot]
            entries.insert(bisect_left(entries, entry), entry)
        counts[entry] = counts.get(entry, 0) + count

    def erase(self, slot: int, entry: Any) -> None:
        """Take one of the entry out of the slot; raises ``AggregateError`` if none is there."""
        counts = self._counts[slot]
        if entry not in counts:
            raise_absent(entry)
        counts[entry] -= 1
        if not counts[entry]:
            del counts[entry]
            del self._entries[slot][bisect_left(self._entries[slot], entry)]

    def merge(self, into: Slots, source: Slots) -> None:
        """Move each source's entries to its partner."""
        for to, slot in zip(into.tolist(), source.tolist(), strict=True):
            if to != slot:
                for entry, count in self._counts[slot].items():
                    self.insert(to, entry, count)
                self._empty(slot)

    def clear(self, slots: Slots) -> None:
        """Empty the slots."""
        for slot in slots.tolist():
            self._empty(slot)

    def _empty(self, slot: int) -> None:
        self._entries[slot], self._counts[slot] = [], {}

    def size(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Return how many entries each slot has, repeated ones counted again."""
        return np.array([sum(self._counts[s].values()) for s in slots.tolist()], np.int64)

    def distinct(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Return how many different entries each slot has."""
        return np.array([len(self._counts[s]) for s in slots.tolist()], np.int64)

    def column(self, values: Sequence[Any]) -> Any:
        """Return result values, one per slot, in the form of a result column."""
        if isinstance(self.of, Bool):
            return np.array([bool(v) for v in values], np.bool_)
        return list(values)

    @property
    def nbytes(self) -> int:
        """Bytes of memory held, estimated."""
        return ENTRY_BYTES * sum(len(entries) for entries in self._entries)

    def _offsets(self, slots: Slots) -> pa.Array:
        return pa.array(np.concatenate(([0], np.cumsum(self.distinct(slots)))), pa.int64())


class PlainValues(PlainOrdered):
    """Multisets of values."""

    def add(self, slots: Slots, values: Values) -> None:
        """Add each value to its slot."""
        for slot, value in zip(slots.tolist(), listed(values), strict=True):
            self.insert(slot, value)

    def remove(self, slots: Slots, values: Values) -> None:
        """Take each value out of its slot."""
        for slot, value in zip(slots.tolist(), listed(values), strict=True):
            self.erase(slot, value)

    def select(self, slots: Slots, ranks: npt.NDArray[np.int64]) -> Any:
        """Return the value at each rank, from the end if negative; None in an empty slot."""
        return self.column(
            [
                self._select(slot, rank) if self._entries[slot] else None
                for slot, rank in zip(slots.tolist(), ranks.tolist(), strict=True)
            ]
        )

    def _select(self, slot: int, rank: int) -> Any:
        if rank < 0:
            rank += sum(self._counts[slot].values())
        for entry in self._entries[slot]:
            rank -= self._counts[slot][entry]
            if rank < 0:
                return entry
        raise IndexError(f"rank {rank} is beyond the values of slot {slot}")

    def largest(self, slots: Slots, limit: int) -> list[list[Any]]:
        """Return up to ``limit`` largest values of each slot, descending."""
        out = []
        for slot in slots.tolist():
            found: list[Any] = []
            for entry in reversed(self._entries[slot]):
                if len(found) >= limit:
                    break
                found += [entry] * self._counts[slot][entry]
            out.append(found[:limit])
        return out

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return sorted values and their counts as lists."""
        rows = [(e, self._counts[s][e]) for s in slots.tolist() for e in self._entries[s]]
        offsets = self._offsets(slots)
        return {
            name: pa.LargeListArray.from_arrays(offsets, pa.array([r[k] for r in rows], of))
            for k, (name, of) in enumerate((("values", self.arrow), ("counts", pa.int64())))
        }

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' values by dumped ones."""
        self.clear(slots)
        lists = [arrays[name].to_pylist() for name in ("values", "counts")]
        for slot, values, counts in zip(slots.tolist(), *lists, strict=True):
            for value, count in zip(values, counts, strict=True):
                self.insert(slot, value, count)


class PlainEvents(PlainOrdered):
    """Multisets of (time_ns, offset, value)."""

    def add(self, slots: Slots, values: Values, time_ns: Values, offset: Values) -> None:
        """Add each event to its slot."""
        for slot, event in events(slots, time_ns, offset, values):
            self.insert(slot, event)

    def remove(self, slots: Slots, values: Values, time_ns: Values, offset: Values) -> None:
        """Take each event out of its slot."""
        for slot, event in events(slots, time_ns, offset, values):
            self.erase(slot, event)

    def edge(self, slots: Slots, last: bool) -> tuple[Any, npt.NDArray[np.bool_]]:
        """Return the value of the first or last event of each slot, and whether there is one."""
        lists = [self._entries[slot] for slot in slots.tolist()]
        values = [entries[-1 if last else 0][2] if entries else None for entries in lists]
        return self.column(values), np.array([bool(entries) for entries in lists], np.bool_)

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return sorted events and their counts as lists."""
        rows = [(*e, self._counts[s][e]) for s in slots.tolist() for e in self._entries[s]]
        offsets = self._offsets(slots)
        types = (pa.int64(), pa.int64(), self.arrow, pa.int64())
        return {
            name: pa.LargeListArray.from_arrays(offsets, pa.array([r[k] for r in rows], of))
            for k, (name, of) in enumerate(zip(EVENT_COLUMNS, types, strict=True))
        }

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' events by dumped ones."""
        self.clear(slots)
        lists = [arrays[name].to_pylist() for name in EVENT_COLUMNS]
        for slot, *columns in zip(slots.tolist(), *lists, strict=True):
            for time_ns, offset, value, count in zip(*columns, strict=True):
                self.insert(slot, (time_ns, offset, value), count)


EVENT_COLUMNS = ("time_ns", "offset", "values", "counts")


def events(slots: Slots, *columns: Values) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Return each slot with its event."""
    return zip(slots.tolist(), zip(*map(listed, columns), strict=True), strict=True)
