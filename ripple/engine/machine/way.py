"""The way of a stream's rows into a plan with branches: from its beginning to folds and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.engine.operators.union_rows import united
from ripple.model.pipeline.plan import FLAT_ROWS_MAX, Union, reads_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.engine.machine.fate import Fate
    from ripple.engine.operators.event_fold import EventFold
    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.stream_rows import StreamRows
    from ripple.model.pipeline.plan import EventNode, Plan

# The range of the places of one beginning, so that SOURCES_MAX of them fit into 63 bits.
SPAN = (1 << 59) // FLAT_ROWS_MAX * FLAT_ROWS_MAX


class Way:
    """The nodes over the rows of one source, or of one node of final rows, each after its inputs.

    root: the name of where it begins.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.steps: list[EventNode] = []
        self.folds: list[EventFold] = []
        self.streams: dict[str, StreamRows] = {}
        self.readers: dict[str, str] = {}
        """Per node the last reader of its rows in a batch: steps, then folds, then outputs."""

    def lead(
        self, plan: Plan, folds: Sequence[EventFold], streams: Mapping[str, StreamRows]
    ) -> None:
        """Lead the rows through ``plan`` to its folds of streams and the shown streams."""
        reached = {self.root}
        for step in plan.steps:
            if not reached.isdisjoint(reads_of(step)):
                reached.add(step.name)
                self.steps.append(step)
                self.readers |= dict.fromkeys(reads_of(step), step.name)
        self.folds = [fold for fold in folds if fold.fold.reads in reached]
        self.readers |= {fold.fold.reads: fold.fold.name for fold in self.folds}
        self.streams = {name: rows for name, rows in streams.items() if name in reached}
        self.readers |= {name: name for name in self.streams}

    def branches(self, rows: Rows, fate: Fate) -> dict[str, Rows]:
        """Return the rows of a batch and those after each step, and note refusals."""
        branches = {self.root: rows}
        for step in self.steps:
            if isinstance(step, Union):
                read = [name for name in step.reads if name in branches]
                parts = [self.branch_of(name, branches, step.name) for name in read]
                branch = parts[0] if len(parts) == 1 else united(step, parts)
            else:
                (name,) = reads_of(step)
                branch = self.branch_of(name, branches, step.name)
                branch.run((step,))
            fate.note_refused(branch)
            branches[step.name] = branch
        return branches

    def branch_of(self, name: str, branches: Mapping[str, Rows], reader: str) -> Rows:
        """Return the rows of a node for one that reads it: themselves for the last one."""
        rows = branches[name]
        return rows if self.readers[name] == reader else rows.branch()
