"""Rows on an edge between stages: changes of a table between two cuts, or all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError
from ripple.core.frozen import frozen
from ripple.core.row_ops import OP, OP_FINAL, OP_REMOVE, OP_SET
from ripple.model.keys.partitioner import partition_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    import numpy.typing as npt

    from ripple.core.cut import Cut

    Ints = npt.NDArray[np.int64]
    Closes: TypeAlias = Callable[[Ints], Ints]
    """When windows are over, by their starts."""


@frozen
class EdgeChanges:
    """The changes of one partition of a stage for one partition of the next.

    rows: the key, ``op`` (int8: Set, Remove or Final), then the values, null in a Remove; at most
    one row per key, in no order. since: the cut from which they lead to ``cut``; None if they are
    the whole table there. watermark_ns: the sender's at ``cut``. traces: contexts of the batches
    that changed them; see ``ripple.core.tracing``.
    """

    since: Cut | None
    cut: Cut
    watermark_ns: int
    rows: pa.RecordBatch
    traces: tuple[str, ...] = ()

    def traced(self, traces: tuple[str, ...]) -> EdgeChanges:
        """Return the same, of traces."""
        return EdgeChanges(self.since, self.cut, self.watermark_ns, self.rows, traces)


def targets_of(rows: pa.RecordBatch, key: Sequence[str], targets: int) -> Ints:
    """Return which of the next stage's partitions each row belongs to: that of its group."""
    if not key or targets == 1:
        return np.zeros(rows.num_rows, np.int64)
    return partition_numbers(rows, key, targets).astype(np.int64)


def those_of(rows: pa.RecordBatch, chosen: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """Return the rows that are chosen: bool[n]. Mostly it is all of them, or none."""
    if chosen.all():
        return rows
    return rows.filter(pa.array(chosen)) if chosen.any() else rows[:0]


def ops_of(rows: pa.RecordBatch) -> npt.NDArray[np.int8]:
    """Return the operation of each row: int8[n]."""
    ops: npt.NDArray[np.int8] = rows.column(OP).to_numpy()
    return ops


def check_rows(rows: pa.RecordBatch, schema: pa.Schema, owner: str) -> None:
    """Raise InputError unless these are rows of an edge with ``schema``."""
    if not rows.schema.equals(schema):
        raise InputError(
            f"{owner}: its rows are {_shown(rows.schema)}, but this plan has {_shown(schema)} here"
        )
    key = schema.names[: schema.names.index(OP)]
    for name in (*key, OP):
        if rows.column(name).null_count:
            raise InputError(f"{owner}: the column {name!r} has nulls")
    ops = ops_of(rows)
    unknown = ops[(ops != OP_SET) & (ops != OP_REMOVE) & (ops != OP_FINAL)]
    if len(unknown):
        raise InputError(f"{owner}: there is no operation {unknown[0]} on an edge")


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


class Retained:
    """Final rows that a receiver may still ask for: until it has released them.

    They are no part of the sender's table, and of no digest.
    """

    def __init__(self, schema: pa.Schema, closes_ns: Closes) -> None:
        """Retain rows of ``schema``; closes_ns: when they are over, by ``window_start_ns``."""
        self._closes_ns = closes_ns
        self._rows = pa.RecordBatch.from_pylist([], schema)
        self._new: list[pa.RecordBatch] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Retain the final ones of ``rows``."""
        final = ops_of(rows) == OP_FINAL
        if final.any():
            self._new.append(rows.filter(pa.array(final)))

    def release(self, watermark_ns: int) -> None:
        """Forget the rows that were over at this watermark."""
        rows = self.rows()
        if rows.num_rows:
            starts = rows.column("window_start_ns").to_numpy()
            self._rows = rows.filter(pa.array(self._closes_ns(starts) > watermark_ns))

    def rows(self) -> pa.RecordBatch:
        """Return the retained rows."""
        if self._new:
            self._rows = pa.concat_batches([self._rows, *self._new])
            self._new.clear()
        return self._rows
