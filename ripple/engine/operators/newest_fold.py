"""The fold of a table's newest records, of one input: deleted rows leave no state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.engine.operators.event_fold import EventFold

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.model.pipeline.nodes import Fold

    Ints = npt.NDArray[np.int64]


class NewestFold(EventFold):
    """As EventFold; a key is freed once its deletion was reported.

    Only for one input: its later records have greater offsets than the deletion anyway.
    """

    frees = True

    def __init__(self, graph: Graph, fold: Fold, mark: str) -> None:
        """mark: the field that is true in a deletion."""
        super().__init__(graph, fold)
        self._mark = mark
        self._absent: list[Ints] = []
        """Slots that had no row when they were shown, since the last ``free``."""

    def show(self, slots: Ints) -> None:
        """Let the rows of ``slots`` show their present results."""
        super().show(slots)
        absent = slots[~self.column.has_rows(slots)]
        if len(absent):
            self._absent.append(absent)

    def free(self, expired: Ints) -> None:
        """Free the keys of deleted rows."""
        del expired  # no row is final
        if not self._absent:
            return
        absent = np.unique(np.concatenate(self._absent))
        self._absent.clear()
        _, results, _ = self.states.results(absent)
        mark = results[self._mark]
        gone = absent[mark.values & mark.valid]
        if len(gone):
            self.ledger.free(gone)
            self.column.retire(gone)
            self.states.clear(gone)
            self.space.release(gone)
