"""Result rows to result rows: a fold over the rows of another fold, added and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.engine.operators.groups import Groups
from ripple.engine.operators.result_rows import ResultRows
from ripple.engine.operators.uncomputable import UncomputableRows

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.graph.column import Column
    from ripple.engine.graph.node import Graph
    from ripple.model.pipeline.nodes import Fold

    Ints = npt.NDArray[np.int64]


class TableFold(Groups):
    """A keyed view of a keyed view: a group with members has a row, if that can be computed."""

    def __init__(self, graph: Graph, fold: Fold, parent: Column) -> None:
        """Fold the rows of ``parent``."""
        self.result_rows = ResultRows(fold)
        super().__init__(graph, fold, parent, self.result_rows.column_fields)
        self.result_rows.lay_out(self.states)
        self.uncomputable = UncomputableRows(self.keys)

    def recompute_now(self) -> None:
        """Show the groups with changed members."""
        if not self.uncomputable.failures and self.result_rows.shows_touched(
            self, self.states, self._touched, self.members
        ):
            return
        live, empty = self.take_touched()
        if len(empty):
            self.drop(empty)
            self.uncomputable.forget(empty)
        if len(live) and self.result_rows.shown_as_they_are(self, self.states, live):
            self.uncomputable.note(live, {})
        elif len(live):
            kept, values, valid, failed = self.result_rows.computed(self, self.states, live)
            if len(kept) < len(live):
                self.drop(np.setdiff1d(live, kept))
            self.put(kept, values, valid)
            self.uncomputable.note(live, failed)

    def finalize(self, expired: Ints) -> None:
        """Count the rows that will never be computed."""
        self.uncomputable.finalize(expired)
