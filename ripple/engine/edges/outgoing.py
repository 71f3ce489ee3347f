"""The sender's end of an edge: changes by partition of the next stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.edges.edge_changes import EdgeChanges, Retained, targets_of
from ripple.engine.operators.groups import Groups
from ripple.model.pipeline.stages import Transport

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from ripple.core.cut import Cut
    from ripple.engine.edges.edge import Edge
    from ripple.engine.graph.column import Column
    from ripple.engine.graph.node import Graph

    Ints = npt.NDArray[np.int64]


GONE_ROWS_MIN = 1 << 16  # fewer unsent removed rows are kept in any case

_NONE = np.empty(0, np.int64)


class Outgoing:
    """A partition's output to the next stage: changes as they come, tables if asked.

    Of an edge on which groups end with their windows, final rows are retained until the receiver
    has released them: it may need them to begin again.

    Invariant: ``_since[t]`` is the cut of target t's last batch; a target in ``_due`` is
    given the whole table next, and nothing is kept for it until then.
    """

    def __init__(self, edge: Edge, graph: Graph, column: Column) -> None:
        """Send the rows of ``column`` over the edge."""
        self.of = edge.above.name
        self.targets = edge.targets
        self._key = [member.name for member in edge.fold.key]
        self._is_log = edge.transport is Transport.LOG
        self._since: list[Cut | None] = [None] * self.targets
        self._due: set[int] = set()
        self._table = edge.sender(graph, column)
        self.groups = self._table if isinstance(self._table, Groups) else None
        """Those that the sender keeps for its edge: state, which is in its snapshots."""
        self._retained: list[Retained] = []
        closes_ns = edge.closes_ns
        if not self._is_log and closes_ns is not None:
            schema = edge.schema
            self._retained = [Retained(schema, closes_ns) for _ in range(self.targets)]

    def as_log(self) -> None:
        """Keep no row once it was taken: the log keeps it, in order."""
        self._is_log = True
        self._retained = []

    def retire(self, retired: Ints) -> None:
        """Note final rows, which are about to be freed."""
        final = self._table.part_with(retired)
        if self._retained and final.num_rows:
            self._retain(final)
        for target in () if self._is_log else range(self.targets):
            gone = self._table.gone_rows(target)
            if gone and target in self._due:
                self._table.forget(target)
            elif gone > GONE_ROWS_MIN and gone > self._table.whole().num_rows:
                self.restart(target)

    def _retain(self, final: pa.RecordBatch) -> None:
        numbers = targets_of(final, self._key, self.targets)
        for target, retained in enumerate(self._retained):
            retained.add(final.filter(pa.array(numbers == target)))

    def take(
        self, cut: Cut, watermark_ns: int, targets: Collection[int] | None = None
    ) -> dict[int, EdgeChanges]:
        """Return the changes for ``targets``, or all, since the last batch of each."""
        ready = np.full(self.targets, targets is None)
        ready[list(targets or ())] = True
        taken = self._table.take(ready)
        given = {}
        for target in np.flatnonzero(ready).tolist():
            if target in self._due:
                given[target] = self.table(target, cut, watermark_ns)
            else:
                since = self._since[target]
                given[target] = EdgeChanges(since, cut, watermark_ns, taken[target])
            self._since[target] = cut
        self._due.difference_update(given)
        return given

    def restart(self, target: int) -> None:
        """Give ``target`` the whole table next, and keep nothing for it until then."""
        self._due.add(target)
        self._table.forget(target)

    def since(self, target: int) -> Cut | None:
        """Return the cut of ``target``'s last batch; None if the table is due."""
        return None if target in self._due else self._since[target]

    def table(self, target: int, cut: Cut, watermark_ns: int) -> EdgeChanges:
        """Return the beginning for ``target``: rows as they are, and retained final ones."""
        rows = self._table.whole()
        numbers = targets_of(rows, self._key, self.targets)
        rows = rows.filter(pa.array(numbers == target))
        if self._retained:
            rows = pa.concat_batches([rows, self._retained[target].rows()])
        return EdgeChanges(None, cut, watermark_ns, rows)

    def first(self, target: int, cut: Cut, watermark_ns: int) -> EdgeChanges:
        """Return the beginning for ``target``: the table, or all rows since the log's start."""
        if self._is_log:
            return self.take(cut, watermark_ns, [target])[target]
        return self.table(target, cut, watermark_ns)

    def release(self, target: int, watermark_ns: int) -> None:
        """Forget final rows that ``target`` has made durable, up to its watermark."""
        if self._retained:
            self._retained[target].release(watermark_ns)

    def retained(self) -> pa.Table | None:
        """Return all final rows that are retained, for a snapshot; None if there never are any."""
        if not self._retained:
            return None
        return pa.Table.from_batches([one.rows() for one in self._retained])

    def resume(self, retained: pa.Table | None, cut: Cut) -> None:
        """Resume from a snapshot: from here on changes are those since its cut."""
        self._table.part_with(_NONE)
        self._table.take(np.ones(self.targets, np.bool_))
        self._since = [cut] * self.targets
        for rows in [] if retained is None else retained.to_batches():
            self._retain(rows)
