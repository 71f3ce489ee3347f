"""A table with stable row numbers, which records when each value last changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.client.flight.barrage.columns import wire_array
from ripple.core.row_ops import OP_FINAL, OP_REMOVE
from ripple.engine.changes.held import grown, held_column
from ripple.engine.changes.layout import cleared_bitmap, ops_of
from ripple.model.keys.space import key_space
from ripple.model.schema.types import Field, Int64

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.changes.layout import Layout

    Numbers = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

SPARE_ROWS = 4096  # a column may hold as many dead values as live ones, and so many more


class Version(NamedTuple):
    """The rows at some time: ascending numbers, and the same as a mask."""

    stamp: int
    rows: Numbers
    mask: Mask


class Rows:
    """The rows of all partitions of an output. A row keeps its number while its key lives.

    Time is a stamp, incremented by each change. Of the past only stamps are kept: each row's birth
    and each value's last change. So the update of a subscriber is computed from the rows that it
    had at its stamp, however old that is.
    """

    # Invariants: born[n] <= changed[c][n] <= touched[n] <= stamp where a value of n has changed
    # since its birth, and changed[c][n] <= born[n] where it has not; live is the key space's.

    def __init__(self, layout: Layout) -> None:
        self.schema = layout.table
        self.stamp = 0
        self._layout = layout
        # Partitions may have the same key: a total that each has, or a key that moves.
        self._keys = key_space((Field("partition", Int64()), *layout.key_fields))
        self._columns = [held_column(field.type) for field in layout.values]
        self._live: Mask = np.zeros(0, bool)
        self._born: Numbers = np.zeros(0, np.int64)
        self._touched: Numbers = np.zeros(0, np.int64)
        self._changed: list[Numbers] = [np.zeros(0, np.int64) for _ in self._columns]
        self._version: Version | None = None

    @property
    def keys(self) -> int:
        """The number of key columns: the first ones, whose values never change."""
        return len(self._layout.keys)

    def apply(self, partition: int, deltas: pa.RecordBatch) -> None:
        """Apply the changes of a partition, which its table already has, each key once."""
        if not deltas.num_rows:
            return
        deltas = self._layout.conform(deltas)
        ops = ops_of(deltas)
        owner = pa.array(np.full(len(ops), partition))
        numbers = self._keys.slots([owner, *self._layout.key_columns(deltas)])
        self._reserve()
        self._keys.adopt(numbers)
        self.stamp, self._version = self.stamp + 1, None
        stays = (ops != OP_REMOVE) & (ops != OP_FINAL)
        was = self._live[numbers]
        kept = numbers[stays & was]
        targets = np.where(stays, numbers, -1)
        for at, field in enumerate(self._layout.values):
            column = self._columns[at]
            before = column.read(kept)
            column.write(ops, targets, deltas.column(field.name), cleared_bitmap(deltas, field))
            news = kept[_differs(before, column.read(kept))]
            self._changed[at][news] = self._touched[news] = self.stamp
        self._born[numbers[stays & ~was]] = self.stamp
        self._live[numbers] = stays
        if not stays.all():
            self._keys.release(np.unique(numbers[~stays]))
        for column in self._columns:
            if column.spare_rows > len(self._keys.index) + SPARE_ROWS:
                column.compact(self._keys.index.live_slots())

    def version(self) -> Version:
        """Return the present rows."""
        if self._version is None:
            mask = self._live.copy()
            self._version = Version(self.stamp, np.flatnonzero(mask), mask)
        return self._version

    def values(self, column: int, rows: Numbers) -> pa.Array:
        """Return a column's present values, in the clients' type."""
        if column < self.keys:
            return wire_array(self._keys.arrays(rows)[column + 1])
        return wire_array(self._columns[column - self.keys].read(rows))

    def older(self, rows: Numbers, stamp: int) -> Mask:
        """Return which of these rows were born by a stamp; others are new under their number."""
        mask: Mask = self._born[rows] <= stamp
        return mask

    def touched(self, rows: Numbers, stamp: int) -> Mask:
        """Return which of these rows have changed since a stamp."""
        mask: Mask = self._touched[rows] > stamp
        return mask

    def changed(self, column: int, rows: Numbers, stamp: int) -> Mask:
        """Return in which of these rows a column has changed since a stamp."""
        if column < self.keys:
            return np.zeros(len(rows), bool)
        mask: Mask = self._changed[column - self.keys][rows] > stamp
        return mask

    def _reserve(self) -> None:
        capacity = self._keys.capacity
        if len(self._live) < capacity:
            self._live = grown(self._live, capacity)
            self._born = grown(self._born, capacity)
            self._touched = grown(self._touched, capacity)
            self._changed = [grown(changed, capacity) for changed in self._changed]
            for column in self._columns:
                column.reserve(capacity)


def _differs(before: pa.Array, after: pa.Array) -> Mask:
    """Return the rows in which two columns differ: floats by bits, so that -0.0 is not 0.0."""
    if pa.types.is_floating(before.type):
        bits = pa.int64() if before.type.bit_width == 64 else pa.int32()
        before, after = before.view(bits), after.view(bits)
    if pa.types.is_nested(before.type):
        pairs = zip(before.to_pylist(), after.to_pylist(), strict=True)
        return np.array([repr(one) != repr(other) for one, other in pairs], bool)
    unequal = pc.fill_null(pc.not_equal(before, after), False).to_numpy(zero_copy_only=False)
    nulls = (array.is_null().to_numpy(zero_copy_only=False) for array in (before, after))
    mask: Mask = unequal | np.not_equal(*nulls)
    return mask
