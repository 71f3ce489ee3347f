"""How a table holds one column: values by slot, or a pool of values with reference counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from ripple.engine.changes.kernel import scatter
from ripple.engine.changes.layout import NOTHING, bitmap

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.changes.layout import Bytes, Ops

    Slots = npt.NDArray[np.int64]
    Bits = tuple[Bytes, int]

Scalar = TypeVar("Scalar", bound=np.generic)


class Held(Protocol):
    """One column of a table."""

    @property
    def spare_rows(self) -> int:
        """Dead values that ``compact`` would free, live ones included at most once."""

    def reserve(self, capacity: int) -> None:
        """Make room for slots below ``capacity``."""

    def write(self, ops: Ops, slots: Slots, values: pa.Array, cleared: Bits) -> None:
        """Put the new values of checked deltas at ``slots``; -1 skips a row."""

    def read(self, slots: Slots) -> pa.Array:
        """Return the values at ``slots``."""

    def compact(self, live: Slots) -> None:
        """Drop values that no live slot holds."""


def held_column(kind: pa.DataType) -> Held:
    """Return an empty column for values of an Arrow type."""
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        return FixedColumn(kind)
    return PooledColumn(kind)


class FixedColumn:
    """Values of a fixed width, at their slots. Booleans take a byte."""

    spare_rows = 0

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._stored = pa.uint8() if pa.types.is_boolean(kind) else kind
        self._width: int = self._stored.bit_width // 8
        self._values: Bytes = np.zeros(0, np.uint8)
        self._valid: Bytes = np.zeros(0, np.uint8)

    def reserve(self, capacity: int) -> None:
        """Make room for slots below ``capacity``."""
        self._values = grown(self._values, capacity * self._width)
        self._valid = grown(self._valid, capacity)

    def write(self, ops: Ops, slots: Slots, values: pa.Array, cleared: Bits) -> None:
        """Put the new values of checked deltas at ``slots``; -1 skips a row."""
        if self._stored is not self._kind:
            values = values.cast(self._stored)
        data = values.buffers()[1]
        raw = NOTHING if data is None else np.frombuffer(data, np.uint8)
        raw = raw[values.offset * self._width :]
        scatter(ops, slots, raw, *bitmap(values), *cleared, self._width, self._values, self._valid)

    def read(self, slots: Slots) -> pa.Array:
        """Return the values at ``slots``."""
        taken = self._values.reshape(-1, self._width)[slots]
        valid = self._valid[slots]
        bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        buffers = [bits, pa.py_buffer(np.ascontiguousarray(taken))]
        array = pa.Array.from_buffers(self._stored, len(slots), buffers)
        return array if self._stored is self._kind else array.cast(self._kind)

    def compact(self, live: Slots) -> None:
        """Nothing: a slot's value is overwritten in place."""


class PooledColumn:
    """Values of any width: Arrow arrays as they came, and by slot the place of its value."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._pool: list[pa.Array] = []
        self.spare_rows = 0  # rows of the pool: each is referred to by at most one slot
        self._places: Slots = np.zeros(0, np.int64)
        self._valid: Bytes = np.zeros(0, np.uint8)

    def reserve(self, capacity: int) -> None:
        """Make room for slots below ``capacity``."""
        self._places = grown(self._places, capacity)
        self._valid = grown(self._valid, capacity)

    def write(self, ops: Ops, slots: Slots, values: pa.Array, cleared: Bits) -> None:
        """Put the new values of checked deltas at ``slots``; -1 skips a row."""
        places = np.arange(self.spare_rows, self.spare_rows + len(values))
        held = self._places.view(np.uint8)
        scatter(ops, slots, places.view(np.uint8), *bitmap(values), *cleared, 8, held, self._valid)
        if values.null_count < len(values):
            self._pool.append(values)
            self.spare_rows += len(values)

    def read(self, slots: Slots) -> pa.Array:
        """Return the values at ``slots``."""
        places = pa.array(self._places[slots], mask=self._valid[slots] == 0)
        return self._merged().take(places)

    def compact(self, live: Slots) -> None:
        """Drop values that no live slot holds."""
        kept = live[self._valid[live] != 0]
        pool = self._merged().take(pa.array(self._places[kept]))
        self._places[kept] = np.arange(len(kept))
        self._pool, self.spare_rows = [pool], len(kept)

    def _merged(self) -> pa.Array:
        if len(self._pool) != 1:
            self._pool = [pa.concat_arrays(self._pool) if self._pool else _empty(self._kind)]
        return self._pool[0]


def _empty(kind: pa.DataType) -> pa.Array:
    return pa.array([], kind)


def grown(array: npt.NDArray[Scalar], size: int) -> npt.NDArray[Scalar]:
    """Return a copy of ``array`` with ``size`` elements, the new ones zero."""
    copy: npt.NDArray[Any] = np.zeros(size, array.dtype)
    copy[: len(array)] = array
    return copy
