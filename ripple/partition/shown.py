"""What readers of an output may still have of it, and the one write that makes it right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.keys.space import key_space
from ripple.ops import OP, OP_NAMES, OP_REMOVE, OP_SET

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ripple.schema.types import Field

Bools = npt.NDArray[np.bool_]


class Shown:
    """Keys that were shown and may have gone. key: its fields, () for one total."""

    def __init__(self, key: tuple[Field, ...]) -> None:
        self._names = [field.name for field in key]
        self._keys = key_space(key)
        self._is_there = np.zeros(0, np.bool_)

    def _mark(self, rows: pa.Table, is_there: bool | Bools) -> None:
        columns = [rows.column(name).combine_chunks() for name in self._names]
        slots = self._keys.slots(columns or [np.empty(rows.num_rows)])
        self._keys.adopt(slots)
        more = max(0, self._keys.capacity - len(self._is_there))
        self._is_there = np.concatenate([self._is_there, np.zeros(more, np.bool_)])
        self._is_there[slots] = is_there

    def there(self, rows: pa.Table) -> None:
        """Note that these were shown."""
        self._mark(rows, is_there=True)

    def changed(self, changes: Iterable[pa.RecordBatch]) -> None:
        """Note what an output's log says, with ``op`` as text."""
        for batch in changes:
            ops = batch.column(OP).to_pylist()
            is_there = np.array([op != OP_NAMES[OP_REMOVE] for op in ops], np.bool_)
            self._mark(pa.Table.from_batches([batch]), is_there)

    def settled(self, rows: pa.Table) -> None:
        """Note that these are written anew, or stay as they are."""
        self._mark(rows, is_there=False)

    def left(self) -> pa.Table:
        """Return the keys that were shown and not settled since."""
        slots = self._keys.index.live_slots()
        slots = slots[self._is_there[slots]]
        if not self._names:  # one total: there, or not
            return pa.table({OP: pa.array(np.full(len(slots), OP_REMOVE, np.int8))})
        keys = dict(zip(self._names, self._keys.arrays(slots), strict=True))
        return pa.table({**keys, OP: pa.array(np.full(len(slots), OP_REMOVE, np.int8))})


def published(schema: pa.Schema, rows: Sequence[pa.Table], removed: pa.Table) -> pa.RecordBatch:
    """Return changes of ``schema`` that set ``rows``, which have no ``op``, and remove keys."""
    sets = pa.concat_tables(rows)
    sets = sets.append_column(OP, pa.array(np.full(sets.num_rows, OP_SET, np.int8)))
    both = pa.concat_tables([sets, removed], promote_options="default")
    columns = [both.column(name).combine_chunks() for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
