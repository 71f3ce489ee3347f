"""The fold of a table's newest records: deleted rows of one input leave no state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.engine.operators.event_fold import EventFold
from ripple.engine.operators.version_order import VersionOrder

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.nodes import Fold, SourceSpec

    Ints = npt.NDArray[np.int64]


class NewestFold(EventFold):
    """As EventFold; of one input, a key is freed once its deletion was reported.

    Later records of that input have greater offsets than the deletion anyway. Of several inputs the
    mark stays.
    """

    def __init__(self, graph: Graph, fold: Fold, source: SourceSpec, *, frees: bool) -> None:
        """source: of the table. frees: whether it has one input."""
        super().__init__(graph, fold)
        assert source.table is not None
        self._frees_deleted = frees
        self._mark, time = source.table.deleted, source.time_field
        if time is not None and time not in self._key_names:
            self.versions = VersionOrder(self.keys, self._key_names, time, self._mark)
        self._absent: list[Ints] = []
        """Slots that had no row when they were shown, since the last ``free``."""
        self._filters_deleted = len(fold.steps) == 1
        self._note_deleted(any_deleted=False)

    def _note_deleted(self, *, any_deleted: bool) -> None:
        """Take notice whether some key may be deleted: else all rows pass the filter of these."""
        self._may_be_deleted = any_deleted
        self.frees = any_deleted and self._frees_deleted
        self.result_rows.shows_all = not self.fold.steps or (
            self._filters_deleted and not any_deleted
        )

    def apply(self, rows: Rows, crossing: int) -> None:
        """Add events; those with an earlier time than their key's row are counted."""
        if self.versions is not None:
            self.versions.look(rows, self._by_key, self.states)
        if not self._may_be_deleted and rows.columns.any_true(self._mark):
            self._note_deleted(any_deleted=True)
        super().apply(rows, crossing)

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Load dumped state."""
        self._note_deleted(any_deleted=True)
        super().load(table, watermark_ns)
        any_deleted = bool(len(self._deleted(self.space.index.live_slots())))
        self._note_deleted(any_deleted=any_deleted)
        if self.versions is not None:
            keys = [table.column(name).combine_chunks() for name in self._key_names]
            self.versions.begin(self.keys.known(keys), self.states)

    def show(self, slots: Ints) -> None:
        """Let the rows of ``slots`` show their present results."""
        super().show(slots)
        if not self._frees_deleted:
            return
        absent = slots[~self.column.has_rows(slots)]
        if len(absent):
            self._absent.append(absent)
            self.frees = True

    def free(self, expired: Ints) -> None:
        """Free the keys of deleted rows."""
        del expired  # no row is final
        if not self._frees_deleted:
            return
        self._note_deleted(any_deleted=False)
        if not self._absent:
            return
        absent = np.unique(np.concatenate(self._absent))
        self._absent.clear()
        gone = self._deleted(absent)
        if len(gone):
            self.ledger.free(gone)
            self.column.retire(gone)
            self.states.clear(gone)
            self.space.release(gone)

    def _deleted(self, slots: Ints) -> Ints:
        """Return the slots with a deletion as their newest record."""
        _, results, _ = self.states.results(slots)
        mark = results[self._mark]
        deleted: Ints = slots[mark.values & mark.valid]
        return deleted
