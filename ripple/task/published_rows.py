"""The rows that readers of an output may still hold, and the one write that corrects them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.row_ops import OP, OP_NAMES, OP_REMOVE, OP_SET
from ripple.model.keys.space import key_space
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.logical.columns import stored
from ripple.model.schema.logical.fields import stored_fields
from ripple.model.schema.types import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from ripple.model.schema.types import Field

    Bools = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

# Removed rows that are remembered for a while, besides as many present ones.
OLD_ROWS_MIN = 1 << 16


class PublishedRows:
    """Rows that were shown, and keys that may have gone. key: its fields, () for one total."""

    def __init__(self, key: tuple[Field, ...]) -> None:
        self._names = [field.name for field in key]
        self._keys = key_space(key)
        self._is_there = np.zeros(0, np.bool_)
        self._rows: list[pa.Table] = []  # as they were shown, one after the other
        self._count = 0
        self._last = np.zeros(0, np.int64)  # which of them is a slot's, where one is there

    def _slots(self, rows: pa.Table) -> Ints:
        columns = [rows.column(name).combine_chunks() for name in self._names]
        slots: Ints = self._keys.slots(columns or [np.empty(rows.num_rows)])
        self._keys.adopt(slots)
        more = max(0, self._keys.capacity - len(self._is_there))
        self._is_there = np.concatenate([self._is_there, np.zeros(more, np.bool_)])
        self._last = np.concatenate([self._last, np.zeros(more, np.int64)])
        return slots

    def _show(self, rows: pa.Table, is_there: bool | Bools) -> None:
        slots = self._slots(rows)
        self._is_there[slots] = is_there
        self._last[slots] = np.arange(self._count, self._count + rows.num_rows)
        self._rows.append(rows)
        self._count += rows.num_rows
        left = np.flatnonzero(self._is_there)
        if self._count > 2 * len(left) + OLD_ROWS_MIN:
            self._rows = [self._shown(left)]
            self._count, self._last[left] = len(left), np.arange(len(left))

    def _shown(self, slots: Ints) -> pa.Table:
        """Return the rows of slots that are there, without ``op``."""
        rows = [one.drop_columns([OP]) if OP in one.column_names else one for one in self._rows]
        whole = pa.concat_tables(rows, promote_options="default")
        return whole.take(pa.array(self._last[slots]))

    def there(self, rows: pa.Table) -> None:
        """Note that these were shown."""
        self._show(rows, is_there=True)

    def changed(self, changes: Iterable[pa.RecordBatch]) -> None:
        """Note the rows of an output's log, with ``op`` as text."""
        for batch in changes:
            ops = batch.column(OP).to_pylist()
            is_there = np.array([op != OP_NAMES[OP_REMOVE] for op in ops], np.bool_)
            self._show(pa.Table.from_batches([batch]), is_there)

    def settled(self, rows: pa.Table) -> pa.Table:
        """Note that these are right from now on; return the ones to write for it."""
        slots = self._slots(rows)
        known = np.flatnonzero(self._is_there[slots])
        is_new = np.ones(rows.num_rows, np.bool_)
        if len(known):
            was, now = self._shown(slots[known]), rows.take(pa.array(known))
            is_new[known] = ~_same(len(known), was, now)
        self._is_there[slots] = False
        return rows.filter(pa.array(is_new))

    def only(self, rows: pa.Table) -> None:
        """Forget all keys but these, of which some fields may be left out."""
        names = [name for name in self._names if name in rows.column_names]
        if names != self._names:
            shown = self.left()
            rows = shown.join(rows, names, join_type="left semi") if names else shown
        is_known = np.zeros(len(self._is_there), np.bool_)
        slots = self._slots(rows)
        is_known = np.concatenate(
            [is_known, np.zeros(len(self._is_there) - len(is_known), np.bool_)]
        )
        is_known[slots] = True
        self._is_there &= is_known

    @property
    def has_rows(self) -> bool:
        """Whether anything was shown, there or not."""
        return bool(self._rows)

    def rows(self) -> pa.Table:
        """Return the rows that are there, without ``op``, as they were shown last."""
        return self._shown(np.flatnonzero(self._is_there))

    def left(self) -> pa.Table:
        """Return the keys that were shown and not settled since."""
        slots = self._keys.index.live_slots()
        slots = slots[self._is_there[slots]]
        if not self._names:  # one total: there, or not
            return pa.table({OP: pa.array(np.full(len(slots), OP_REMOVE, np.int8))})
        keys = dict(zip(self._names, self._keys.arrays(slots), strict=True))
        return pa.table({**keys, OP: pa.array(np.full(len(slots), OP_REMOVE, np.int8))})


def keys_of(rows: pa.RecordBatch, key: Sequence[Field]) -> pa.RecordBatch:
    """Return the fields of a key, in its types, and ``op``. Raises ArrowException."""
    names = [field.name for field in key]
    types = to_arrow(Schema("keys", stored_fields(key))).types if key else []
    found = [stored(rows.column(field.name), field.type) for field in key]
    columns = [column.cast(kind) for column, kind in zip(found, types, strict=True)]
    return pa.record_batch([*columns, rows.column(OP)], [*names, OP])


def published(schema: pa.Schema, rows: Sequence[pa.Table], removed: pa.Table) -> pa.RecordBatch:
    """Return changes of ``schema`` that set ``rows``, which have no ``op``, and remove keys."""
    sets = pa.concat_tables(rows)
    sets = sets.append_column(OP, pa.array(np.full(sets.num_rows, OP_SET, np.int8)))
    both = pa.concat_tables([sets, removed], promote_options="default")
    columns = [both.column(name).combine_chunks() for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _same(count: int, one: pa.Table, other: pa.Table) -> Bools:
    """Return which of ``count`` rows have, bit for bit, the fields of another, perhaps none."""
    same = np.ones(count, np.bool_)
    if not {*other.column_names} <= {*one.column_names}:  # keys alone: the output had no more
        return ~same
    for name, now in zip(other.column_names, other.columns, strict=True):
        same &= _equal(one.column(name).cast(now.type).combine_chunks(), now.combine_chunks())
    return same


def _equal(one: pa.Array, other: pa.Array) -> Bools:
    if pa.types.is_nested(one.type):  # Arrow does not compare these
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.array([repr(was) == repr(now) for was, now in pairs], np.bool_)
    if pa.types.is_floating(one.type):  # a NaN is a NaN, and 0 is not -0
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[one.type.bit_width]
        one, other = one.view(bits), other.view(bits)
    equal = pc.fill_null(pc.equal(one, other), False)
    both: Bools = pc.or_(equal, pc.and_(one.is_null(), other.is_null())).to_numpy(
        zero_copy_only=False
    )
    return both
