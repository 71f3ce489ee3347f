"""The way of a stream's rows into a plan with branches: from its beginning to folds and outputs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ripple.engine.operators.union_rows import united
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX, Union, reads_of
from ripple.model.pipeline.waiting_nodes import Waiting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from ripple.engine.machine.fate import Fate
    from ripple.engine.operators.asked_rows import AskedRows
    from ripple.engine.operators.event_fold import EventFold
    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.stream_rows import StreamRows
    from ripple.engine.operators.waiting import Side
    from ripple.model.pipeline.nodes import EventNode, Fields
    from ripple.model.pipeline.plan import Plan

_NONE_LATE: Mapping[int, npt.NDArray[np.bool_] | None] = MappingProxyType({})

# The range of the places of one beginning, so that SOURCES_MAX of them fit into 63 bits.
SPAN = (1 << 59) // FLAT_ROWS_MAX * FLAT_ROWS_MAX

# The end of a range, for rows that precede the first record of the next range.
PRECEDING = SPAN // 16


class Keyed(NamedTuple):
    """Rows with a key. reader: the fold, or the side of another node; key: its fields."""

    rows: Rows
    reader: str
    key: Fields


class Taken(NamedTuple):
    """The rows of a batch that come to nodes that hold them, to folds and to outputs."""

    held: list[tuple[Side, Rows]]
    folded: list[tuple[EventFold, Rows]]
    asked: list[tuple[AskedRows, Rows]]
    shown: list[tuple[StreamRows, Rows]]

    @property
    def keyed(self) -> list[Keyed]:
        """The rows with a key."""
        held = [Keyed(rows, one.reader, one.key) for one, rows in self.held]
        return held + [Keyed(rows, one.fold.name, one.fold.key) for one, rows in self.folded]


class Way:
    """The nodes over the rows of one source, or of one node that waits, each after its inputs.

    root: the name of its first node.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.steps: list[EventNode] = []
        self.folds: list[EventFold] = []
        self.sides: list[Side] = []
        self.asks: list[AskedRows] = []
        self.latenesses_ns: list[int] = []
        self.streams: dict[str, StreamRows] = {}
        self.alone: Side | None = None
        """The only reader of the rows, if it is a side of a node that holds them."""
        self.only_fold: EventFold | None = None
        """The only reader of the rows, if it is a fold without windows and without a ttl."""
        self.only_shows = False
        """Whether outputs alone read the rows, and no row comes from an ask."""
        self.readers: dict[str, str] = {}
        """Per node the last reader of its rows in a batch: steps, sides of nodes that hold rows,
        folds, asks, outputs."""

    def lead(
        self,
        plan: Plan,
        folds: Sequence[EventFold],
        streams: Mapping[str, StreamRows],
        sides: Sequence[Side],
        asks: Sequence[AskedRows],
    ) -> None:
        """Lead the rows through ``plan`` to its waiting nodes, folds and outputs."""
        reached = {self.root}
        for step in plan.steps:
            if not isinstance(step, Waiting) and not reached.isdisjoint(reads_of(step)):
                reached.add(step.name)
                self.steps.append(step)
                self.readers |= dict.fromkeys(reads_of(step), step.name)
        self.sides = [one for one in sides if one.reads in reached]
        self.readers |= {one.reads: one.reader for one in self.sides}
        self.folds = [fold for fold in folds if fold.fold.reads in reached]
        self.readers |= {fold.fold.reads: fold.fold.name for fold in self.folds}
        windows = [one.fold.timing for one in self.folds if one.fold.timing is not None]
        latenesses_ns = {one.lateness_ns for one in self.sides}
        self.latenesses_ns = sorted(latenesses_ns | {window.lateness_ns for window in windows})
        self.asks = [one for one in asks if one.node.reads in reached]
        self.readers |= {one.node.reads: one.node.name for one in self.asks}
        self.streams = {name: rows for name, rows in streams.items() if name in reached}
        self.readers |= {name: name for name in self.streams}
        is_answered = any(one.node.name == self.root for one in asks)
        readers = bool(self.steps or self.folds or self.asks)
        self.only_shows = not (is_answered or readers or self.sides)
        if len(self.sides) == 1 and not (readers or self.streams):
            (self.alone,) = self.sides
        others = bool(self.steps or self.sides or self.asks or self.streams)
        if len(self.folds) == 1 and not others and self.folds[0].fold.timing is None:
            (self.only_fold,) = self.folds

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

    def admitted(
        self,
        branches: Mapping[str, Rows],
        fate: Fate,
        too_late: Mapping[int, npt.NDArray[np.bool_] | None] = _NONE_LATE,
    ) -> tuple[list[tuple[Side, Rows]], list[tuple[EventFold, Rows]]]:
        """Return the rows for each side of a node that holds them, and for folds; note refusals.

        too_late: per lateness which records are later. Nothing changes before ``Fate.count_in``
        was asked of all, since a record counts everywhere or nowhere.
        """
        held = []
        for one in self.sides:
            taken = self.branch_of(one.reads, branches, one.reader)
            fate.drop_late(taken, too_late.get(one.lateness_ns))
            one.admit(taken)
            fate.note_refused(taken)
            held.append((one, taken))
        folded = []
        for fold in self.folds:
            taken = self.branch_of(fold.fold.reads, branches, fold.fold.name)
            if fold.fold.timing is not None:
                fate.drop_late(taken, too_late.get(fold.fold.timing.lateness_ns))
            fold.admit(taken)
            fate.note_refused(taken)
            folded.append((fold, taken))
        return held, folded

    def taken(
        self,
        branches: Mapping[str, Rows],
        fate: Fate,
        too_late: Mapping[int, npt.NDArray[np.bool_] | None],
    ) -> Taken:
        """Return the rows for all their readers, without records that count nowhere."""
        held, folded = self.admitted(branches, fate, too_late)
        asked = [
            (one, self.branch_of(one.node.reads, branches, one.node.name)) for one in self.asks
        ]
        shown = [
            (rows, self.branch_of(name, branches, name)) for name, rows in self.streams.items()
        ]
        for _, rows in (*held, *folded, *asked, *shown):
            fate.count_in(rows)
        return Taken(held, folded, asked, shown)

    def branch_of(self, name: str, branches: Mapping[str, Rows], reader: str) -> Rows:
        """Return the rows of a node for one reader: themselves for the last one."""
        rows = branches[name]
        return rows if self.readers[name] == reader else rows.branch()
