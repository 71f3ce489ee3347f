"""The common base of the repartitioning engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.engine.machine.engine import Engine
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.engine.machine.waiting_rows import WaitingRows
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.schema.exported import Lent

    Ints = npt.NDArray[np.int64]


class Divider(Engine):
    """An engine whose records wait for their targets."""

    _waiting: WaitingRows

    @property
    def held_bytes(self) -> int:
        """The size of divided rows that no target has taken yet."""
        return self._waiting.held_bytes

    def outgoing_to(self, targets: Collection[int]) -> dict[int, EdgeChanges]:
        """Return the rows for some targets since the last batch of each."""
        assert self._reported, "stabilize first"
        return self._waiting.take(self.cut, targets)

    def _resume(self, snapshot: Snapshot) -> None:
        super()._resume(snapshot)
        self._waiting.resume(self.cut)


def watermarks_after(
    origin: Ints | None,
    times_ns: Ints | Lent | None,
    count: int,
    out_of_order_ns: int,
    before_ns: int,
) -> Ints:
    """Return the watermark after each record of a batch, with so many records: int64[count].

    origin, times_ns: of the records that can have moved it; see Rows. before_ns: that before all.
    """
    if times_ns is None:
        return np.full(count, watermark.NONE)
    moved = np.asarray(times_ns, np.int64) - out_of_order_ns
    if origin is not None:
        found = np.full(count, before_ns)
        found[origin] = moved
        moved = found
    return np.maximum(np.maximum.accumulate(moved), before_ns)
