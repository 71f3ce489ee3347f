"""One output of events of a partition, for external subscribers: append-only rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.engine.edges.edge_changes import EdgeChanges

if TYPE_CHECKING:
    from collections.abc import Collection

    from ripple.core.cut import Cut
    from ripple.engine.edges.newest_rows import NewestRows
    from ripple.engine.machine.partition import Partition


class EventStream:
    """Rows of an output of events for its subscribers; outputs of folds have ``OutputStream``.

    It gives the rows between two cuts. A new subscriber gets the newest rows: all since the cut
    after which none is missing, and perhaps some before. So it has no queue of waiting rows.
    """

    def __init__(self, partition: Partition, newest: NewestRows) -> None:
        """Give the newest rows of a stream of the partition."""
        self._partition = partition
        self._newest = newest
        self._since: Cut | None = None
        self._given = 0

    def restart(self, target: int) -> None:
        """Give the newest rows next."""
        del target
        self._since = None

    def given_to(self, target: int) -> Cut | None:
        """Return the cut of the last batch; None if all rows are due."""
        del target
        return self._since

    def outgoing_to(self, targets: Collection[int]) -> dict[int, EdgeChanges]:
        """Return the rows since the last batch, or the newest ones: for the one target."""
        (target,) = targets
        rows = None if self._since is None else self._newest.after(self._given)
        if rows is None:
            given = self.table_for(target)
        else:
            given = EdgeChanges(self._since, self.cut, self.watermark_ns, rows)
        self._since, self._given = self.cut, self._newest.count
        return {target: given}

    def table_for(self, target: int) -> EdgeChanges:
        """Return the newest rows, since the cut after which none is missing."""
        del target
        since = self._newest.complete_from
        return EdgeChanges(since, self.cut, self.watermark_ns, self._newest.rows())

    def release(self, target: int, watermark_ns: int) -> None:
        """Do nothing: no rows are retained for subscribers."""

    @property
    def cut(self) -> Cut:
        """The partition's."""
        return self._partition.cut

    @property
    def watermark_ns(self) -> int:
        """The partition's."""
        return self._partition.watermark_ns
