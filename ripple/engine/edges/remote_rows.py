"""Rows of a fold that is elsewhere: a copy, for the fold above."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError
from ripple.core.row_ops import OP_FINAL, OP_REMOVE
from ripple.engine.edges.edge_changes import ops_of, those_of
from ripple.engine.edges.remote_groups import SENDER
from ripple.engine.edges.sent_rows import row_values
from ripple.engine.edges.window_ends import WindowEnds
from ripple.engine.graph.column import InputColumn
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.result_rows import column_fields, row_arrays, typed_column
from ripple.engine.operators.uncomputable import UncomputableRows
from ripple.engine.snapshots.ledger import Ledger
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.expression.typed import kind_of
from ripple.model.keys.space import key_columns, key_space
from ripple.model.pipeline.nodes import type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.edges.edge_changes import Closes
    from ripple.engine.graph.node import Graph
    from ripple.model.pipeline.nodes import Fold

    Ints = npt.NDArray[np.int64]


_NONE = np.empty(0, np.int64)
_NOBODY = -1


class RemoteRows:
    """A copy of a fold's rows from senders; each row has one sender.

    Final rows stay, where groups end with their windows, until those are over at every sender.
    Otherwise they go, and the fold above keeps their contributions.

    Invariant between calls: ``_owners[s]`` is the sender of the present row at slot s; slots of
    rows that are gone wait in ``_erased`` to be freed.
    """

    frees = True

    def __init__(
        self,
        graph: Graph,
        fold: Fold,
        above: Fold,
        closes_ns: Closes | None,
        senders: Sequence[str],
    ) -> None:
        """Copy the rows of ``fold`` that ``senders`` have, as ``above`` reads them."""
        self.fold = fold
        self._senders = senders
        self.keys = key_space(fold.row_key)
        self.fields = row_values(fold, above)
        self._arrow = arrow_fields(self.fields)
        self._kinds = [kind_of(type_of(member)) for member in self.fields]
        fields = column_fields(self._arrow, self._kinds)
        self.column = InputColumn(graph, (), self.keys, fields, fold.name)
        self.uncomputable = UncomputableRows(self.keys)
        self._owners = np.empty(0, np.int64)
        self._erased: list[Ints] = []
        self._keeps_final = closes_ns is not None
        self._ends = WindowEnds(self.keys, closes_ns)
        self.ledger = Ledger(self.keys, self)

    def take_in(self, sender: int, rows: pa.RecordBatch, *, whole: bool) -> None:
        """Take a sender's changes, or its whole table. Raises InputError with nothing changed."""
        rows = self._ends.open_of(rows)
        slots = self._slots(rows)
        self._check(slots, sender)
        ops = ops_of(rows)
        is_set = ops != OP_REMOVE
        erased = slots[~is_set]
        if whole:
            erased = np.union1d(erased, np.setdiff1d(self._of(sender), slots))
        self.ledger.change(np.union1d(slots, erased))
        self.column.erase(erased)
        self._owners[erased] = _NOBODY
        self._erased.append(erased)
        self._put(slots[is_set], pa.table(those_of(rows, is_set)), sender)
        if not self._keeps_final:
            self._ends.add(slots[ops == OP_FINAL])

    def _slots(self, rows: pa.RecordBatch | pa.Table) -> Ints:
        columns = [rows.column(field.name) for field in self.keys.fields]
        slots = self.keys.slots(
            [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
            or [np.empty(rows.num_rows)]
        )
        self.keys.adopt(slots)
        self._owners = grown(self._owners, self.keys.capacity, _NOBODY)
        self._ends.arm(slots, rows)
        return slots

    def _check(self, slots: Ints, sender: int) -> None:
        owners = self._owners[slots]
        foreign = slots[(owners != sender) & (owners != _NOBODY)]
        if len(np.unique(slots)) == len(slots) and not len(foreign):
            return
        self._erased.append(slots[owners == _NOBODY])
        if not len(foreign):
            raise InputError(f"fold {self.fold.name!r}: a sender's changes name a row twice")
        key = tuple(array[0].as_py() for array in self.keys.arrays(foreign[:1]))
        raise InputError(
            f"fold {self.fold.name!r}: the key {key} comes from two partitions, "
            f"{self._senders[int(self._owners[foreign[0]])]} and {self._senders[sender]}: what "
            "writes the input must choose the partition by this key alone (Kafka's murmur2, or one "
            "partitioner for all writers)"
        )

    def _put(self, slots: Ints, table: pa.Table, sender: int | Ints) -> None:
        columns = [
            typed_column(table.column(member.name).combine_chunks(), kind, nullable)
            for member, (kind, nullable) in zip(self.fields, self._kinds, strict=True)
        ]
        self.column.write(slots, [values for values, _ in columns], [mask for _, mask in columns])
        self._owners[slots] = sender

    def _of(self, sender: int) -> Ints:
        slots: Ints = np.flatnonzero(self._owners == sender)
        return slots

    def settle(self, watermark_ns: int) -> None:
        """Note which rows are over at ``watermark_ns``."""
        self._ends.reach(watermark_ns)

    def expired(self) -> Ints:
        """Return the rows that are over, once."""
        over = self._ends.take()
        return over[self.column.has_rows(over)]

    def free(self, expired: Ints) -> None:
        """Free these rows, and the slots of rows that are gone."""
        if not self._erased and not len(expired):
            return
        erased = np.unique(np.concatenate((expired[:0], *self._erased)))
        self._erased.clear()
        gone = np.union1d(expired, erased[~self.column.has_rows(erased)])
        if len(gone):
            self.ledger.free(gone)
            self._ends.forget(gone)
            self.column.retire(gone)
            self._owners[gone] = _NOBODY
            self.keys.release(gone)

    # --- snapshots ---

    def dump_rows(self, slots: Ints) -> dict[str, pa.Array]:
        """Return rows as Arrow columns: key fields, sender, the fields that are read."""
        sender = pa.array(grown(self._owners, self.keys.capacity, _NOBODY)[slots])
        values = row_arrays(self.column.rows(slots), None)
        return {
            **key_columns(self.keys, slots),
            SENDER.name: sender,
            **{field.name: array for field, array in zip(self._arrow, values, strict=True)},
        }

    def dump_marks(self, slots: Ints) -> dict[str, pa.Array]:
        """Return further columns: none."""
        del slots
        return {}

    @property
    def columns(self) -> list[str]:
        """The names of dumped columns, in the order of a snapshot's table."""
        return list(self.dump_rows(_NONE))

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Load dumped rows; without key fields there is a slot also where there is no row."""
        table = table.filter(pa.array(table.column(SENDER.name).to_numpy() != _NOBODY))
        self._put(self._slots(table), table, table.column(SENDER.name).to_numpy())
        self.settle(watermark_ns)

    @property
    def nbytes(self) -> int:
        """Bytes held by rows and keys."""
        own = self._owners.nbytes + self.ledger.nbytes
        return own + self.column.nbytes + self.keys.index.nbytes
