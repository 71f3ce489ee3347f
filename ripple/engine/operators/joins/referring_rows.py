"""Two tables to one, where rows of the left name a row of the right by its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.postings import Postings
from ripple.engine.operators.joins.table_join_rows import TableJoinRows
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.space import key_space

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.graph.column import Column
    from ripple.engine.graph.node import Graph
    from ripple.model.pipeline.nodes import TableJoin

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]


class ReferringRows(TableJoinRows):
    """The rows of the left, each with the row of the right whose key it names.

    shares: whether a row has the slot and the key of its row on the left, of which none becomes
    final. So a slot is free here before it is there.

    Invariants between stabilizes: ``_named`` has a link for each row of the left without a null in
    the fields that name one; a link that no row has, and no row of the right, has no slot.
    """

    _by_key = False

    def __init__(
        self, graph: Graph, join: TableJoin, left: Column, right: Column, *, shares: bool
    ) -> None:
        super().__init__(graph, join, left, right, keys=left.keys if shares else None)
        self._shares = shares
        self._link_keys = key_space(join.right_key)
        self._named = Postings()

    def _rows_of(self, slots: Ints) -> Ints:
        return slots if self._shares else super()._rows_of(slots)

    def _release(self, rows: Ints) -> None:
        if not self._shares:
            super()._release(rows)

    def _links_of(self, slots: Ints) -> Ints:
        return self._links(self._right.keys.arrays(slots))

    def _links(self, keys: Sequence[pa.Array]) -> Ints:
        """Return the link of each key of the right, given field by field."""
        found = self._link_keys.slots(keys)
        self._link_keys.adopt(found)
        self._right_at = grown(self._right_at, self._link_keys.capacity, -1)
        return found

    def _refer(self, slots: Ints, rows: Ints) -> None:
        columns, there = self._references(slots)
        links = np.full(len(slots), -1, np.int64)
        if there.any():
            links[there] = self._links(columns)
        self._named.reserve(self.keys.capacity, self._link_keys.capacity)
        self._loosen(self._named.put(rows, links))

    def _references(self, slots: Ints) -> tuple[list[pa.Array], Mask]:
        """Return the fields that name a row of the right, where none is null, and where that is."""
        return compared(self._left, [name for name, _ in self.fold.pairs], slots)

    def _part(self, slots: Ints) -> Ints:
        rows = super()._part(slots)
        self._loosen(self._named.put(rows, np.full(len(rows), -1, np.int64)))
        return rows

    def _unlink(self, slots: Ints) -> None:
        links = self._link_of[slots]
        super()._unlink(slots)
        self._loosen(links[links >= 0])

    def _loosen(self, links: Ints) -> None:
        """Take notice that links may not be needed any more."""
        if len(links):
            self._loose.append(links)

    def _rows_with(self, links: Ints) -> Ints:
        self._named.reserve(self.keys.capacity, self._link_keys.capacity)
        return self._named.rows_of(links)

    def _partners(self, rows: Ints) -> Ints:
        links = self._named.links_of(rows)
        slots = np.full(len(rows), -1, np.int64)
        slots[links >= 0] = self._right_at[links[links >= 0]]
        return slots

    def _has_no(self, rows: Ints) -> Mask:
        return np.ones(len(rows), np.bool_)

    def _free_links(self, links: Ints) -> None:
        unused = (self._right_at[links] < 0) & (self._named.counts_of(links) == 0)
        self._link_keys.release(links[unused])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return super().nbytes + self._named.nbytes


def compared(column: Column, names: Sequence[str], slots: Ints) -> tuple[list[pa.Array], Mask]:
    """Return fields of present rows where none of them is null, and where that is."""
    there = np.ones(len(slots), np.bool_)
    named: dict[str, Any] = {}
    key_names = [field.name for field in column.keys.fields]
    if any(name in key_names for name in names):
        named |= zip(key_names, column.keys.arrays(slots), strict=True)
    if any(name in column.names for name in names):
        fields = dict(zip(column.names, column.rows(slots), strict=True))
        for name in names:
            if name in fields:
                named[name], valid = fields[name]
                if valid is not None:
                    there &= valid.view(np.bool_)
    found = [pa.array(named[name]) for name in names]
    if there.all():
        return found, there
    return [values.filter(pa.array(there)) for values in found], there
