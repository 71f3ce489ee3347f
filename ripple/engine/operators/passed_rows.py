"""Rows of one side of a join that marks have passed, as columns that grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_MERGED_ROWS_MAX = 4096
_ROOM_MIN = 256
_WORDS = (pa.int64(), pa.float64())


class PassedRows:
    """Rows with their slots and event times, numbered from 0 in the order in which they came."""

    def __init__(self, schema: pa.Schema) -> None:
        """Have no rows; schema: of those to come."""
        self.schema = schema
        self._slots, self._times = Numbers(), Numbers()
        self._columns: dict[str, _Column] = {
            field.name: Words(field.type) if field.type in _WORDS else Parts(field.type)
            for field in schema
        }

    def __len__(self) -> int:
        return self._slots.count

    @property
    def slots(self) -> Ints:
        """The slot of each row."""
        return self._slots.values

    @property
    def times(self) -> Ints:
        """The event time of each row."""
        return self._times.values

    def add(self, rows: pa.RecordBatch, slots: Ints, times: Ints) -> None:
        """Add rows after all others."""
        self._slots.add(slots)
        self._times.add(times)
        for column, more in zip(self._columns.values(), rows.columns, strict=True):
            column.add(more)

    def column(self, name: str, at: Ints) -> pa.Array:
        """Return a column of some of the rows, with nulls for -1."""
        return self._columns[name].take(at)

    def rows(self, at: Ints) -> pa.RecordBatch:
        """Return some of the rows."""
        columns = [column.take(at) for column in self._columns.values()]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def some(self, at: Ints) -> PassedRows:
        """Return some of the rows, numbered anew."""
        found = PassedRows(self.schema)
        found.add(self.rows(at), self.slots[at], self.times[at])
        return found

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = sum(column.nbytes for column in self._columns.values())
        return held + self._slots.nbytes + self._times.nbytes


class Numbers:
    """Numbers of 64 bits in an array that doubles when it is full."""

    def __init__(self) -> None:
        """Have none."""
        self._held = np.empty(0, np.int64)
        self.count = 0

    def add(self, more: Ints) -> None:
        """Add numbers after all others."""
        first, self.count = self.count, self.count + len(more)
        if self.count > len(self._held):
            held = np.empty(max(2 * len(self._held), self.count, _ROOM_MIN), np.int64)
            held[:first] = self._held[:first]
            self._held = held
        self._held[first : self.count] = more

    @property
    def values(self) -> Ints:
        """All of them."""
        return self._held[: self.count]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._held.nbytes


class _Column(Protocol):
    """Values that are added at the end."""

    @property
    def nbytes(self) -> int: ...

    def add(self, more: pa.Array) -> None: ...

    def take(self, at: Ints) -> pa.Array: ...


class Words:
    """A column of integers or floats, with nulls."""

    def __init__(self, kind: pa.DataType) -> None:
        """Have no values."""
        self._kind = kind
        self._bits = Numbers()
        self._nulls: list[Ints] = []
        self._is_null: Mask | None = None

    def add(self, more: pa.Array) -> None:
        """Add values after all others."""
        bits = np.frombuffer(more.buffers()[1] or b"", np.int64)
        if more.null_count:
            null = np.asarray(more.is_null(), np.bool_)
            self._nulls.append(np.flatnonzero(null) + self._bits.count)
            self._is_null = None
        self._bits.add(bits[more.offset : more.offset + len(more)])

    def take(self, at: Ints) -> pa.Array:
        """Return some values, with nulls for -1."""
        missing = at < 0
        if self._nulls:
            missing |= self._null_mask()[at]
        if not self._bits.count:
            return pa.nulls(len(at), self._kind)
        bits, valid = self._bits.values[at], None
        if missing.any():
            bits[missing] = 0
            valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
        return pa.Array.from_buffers(self._kind, len(at), [valid, pa.py_buffer(bits)])

    def _null_mask(self) -> Mask:
        if self._is_null is None or len(self._is_null) < self._bits.count:
            self._is_null = np.zeros(self._bits.count, np.bool_)
            self._nulls = [np.concatenate(self._nulls)]
            self._is_null[self._nulls[0]] = True
        return self._is_null

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        masks = 0 if self._is_null is None else self._is_null.nbytes
        return self._bits.nbytes + sum(one.nbytes for one in self._nulls) + masks


class Parts:
    """A column of any other type, in parts of which small ones become one."""

    def __init__(self, kind: pa.DataType) -> None:
        """Have no values."""
        self._kind = kind
        self._parts: list[pa.Array] = []

    def add(self, more: pa.Array) -> None:
        """Add values after all others."""
        parts = self._parts
        while parts and len(parts[-1]) <= min(2 * len(more), _MERGED_ROWS_MAX):
            more = pa.concat_arrays([parts.pop(), more])
        parts.append(more)

    def take(self, at: Ints) -> pa.Array:
        """Return some values, with nulls for -1."""
        picked = pa.array(at, mask=at < 0)
        return pa.chunked_array(self._parts, self._kind).take(picked).combine_chunks()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(one.nbytes for one in self._parts)
