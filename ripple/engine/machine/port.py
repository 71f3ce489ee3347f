"""The way of one source's records into a plan with branches: its inputs, schema and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.engine.kernels.columns import Layout
from ripple.engine.machine.counters import Counters
from ripple.engine.operators.admission import Admission
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.union_rows import united
from ripple.model.pipeline.plan import FLAT_ROWS_MAX, Union, reads_of
from ripple.model.window import duration_ns, watermark
from ripple.model.window.spec import FUTURE_TOLERANCE_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from ripple.engine.machine.fate import Fate
    from ripple.engine.operators.event_fold import EventFold
    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.stream_rows import StreamRows
    from ripple.model.pipeline.plan import EventNode, Plan, SourceSpec

    Ints = npt.NDArray[np.int64]

# The range of one source's places, so that SOURCES_MAX of them fit into 63 bits.
SPAN = (1 << 59) // FLAT_ROWS_MAX * FLAT_ROWS_MAX


class Port:
    """A source, and the nodes over its records, each after its inputs.

    A row's place is (source, offset, input, index in its record), as one number.
    """

    def __init__(self, plan: Plan, source: SourceSpec, names: Sequence[str]) -> None:
        """names: of its inputs, in their order."""
        self.source = source
        self.counters = Counters()
        self._inputs = {name: number for number, name in enumerate(names)}
        self._base = plan.sources.index(source) * SPAN
        self._end = SPAN if len(plan.sources) > 1 else watermark.END
        self.accepted = pa.schema(arrow_fields(source.fields))
        """The schema of batches that need no conversion."""
        self.layout = Layout(self.accepted)
        self.admission = Admission(source, self.layout)
        self.steps: list[EventNode] = []
        self.folds: list[EventFold] = []
        self.streams: dict[str, StreamRows] = {}
        self.readers: dict[str, str] = {}
        """Per node the last reader of its rows in a batch: steps, then folds, then outputs."""

    def lead(
        self, plan: Plan, folds: Sequence[EventFold], streams: Mapping[str, StreamRows]
    ) -> None:
        """Lead the records through ``plan`` to its folds and shown streams."""
        reached = {self.source.name}
        for step in plan.steps:
            if not reached.isdisjoint(reads_of(step)):
                reached.add(step.name)
                self.steps.append(step)
                self.readers |= dict.fromkeys(reads_of(step), step.name)
        self.folds = [fold for fold in folds if fold.fold.reads in reached]
        self.readers |= {fold.fold.reads: fold.fold.name for fold in self.folds}
        self.streams = {name: rows for name, rows in streams.items() if name in reached}
        self.readers |= {name: name for name in self.streams}
        windows = [one.fold.window for one in self.folds if one.fold.window is not None]
        self.latenesses_ns = sorted({window.lateness_ns for window in windows})
        spans_ns = [window.future_ns for window in windows]
        self.future_ns = min(spans_ns, default=duration_ns(FUTURE_TOLERANCE_DEFAULT))

    @property
    def offset_max(self) -> int:
        """The limit of offsets, so that every row has a place."""
        return self._end // (len(self._inputs) * FLAT_ROWS_MAX)

    @property
    def inputs(self) -> Sequence[str]:
        """The names of its inputs."""
        return tuple(self._inputs)

    def places(self, name: str, offsets: Ints) -> Ints:
        """Return the places of the first row of records of an input."""
        number = offsets * len(self._inputs) + self._inputs[name]
        return number * FLAT_ROWS_MAX + self._base

    def identities(self, places: Ints) -> tuple[Ints, Ints]:
        """Return the offsets of rows of an input, and their indexes in their records."""
        number = places - self._base
        return number // (FLAT_ROWS_MAX * len(self._inputs)), number % FLAT_ROWS_MAX

    def branches(self, rows: Rows, fate: Fate) -> dict[str, Rows]:
        """Return the rows of a batch and those after each step, and note refusals."""
        branches = {self.source.name: rows}
        for step in self.steps:
            if isinstance(step, Union):
                read = [name for name in step.reads if name in branches]
                parts = [self.branch_of(name, branches, step.name) for name in read]
                branch = parts[0] if len(parts) == 1 else united(step, parts)
            else:
                branch = self.branch_of(step.reads, branches, step.name)
                branch.run((step,))
            fate.note_refused(branch)
            branches[step.name] = branch
        return branches

    def branch_of(self, name: str, branches: Mapping[str, Rows], reader: str) -> Rows:
        """Return the rows of a node for one that reads it: themselves for the last one."""
        rows = branches[name]
        return rows if self.readers[name] == reader else rows.branch()
