"""Repartitioning in front of a pipeline, where the input has another key than the first fold.

It judges records and does the steps before the first fold, to find the rows left and their keys,
and gives each record, as it came, to the partition of its key. It folds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError
from ripple.engine.edges.edge_changes import EdgeChanges, targets_of
from ripple.engine.machine.engine import Engine
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.engine.operators.event_fold import EventFold
from ripple.engine.operators.rows import RejectedRow
from ripple.engine.snapshots.internal import internal
from ripple.model.pipeline.division import divided_into
from ripple.model.schema.exported import Part
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt

    from ripple.core.cut import Cut
    from ripple.engine.graph.node import Graph
    from ripple.engine.machine.inputs import Input
    from ripple.engine.operators.rows import Rows
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan

    Ints = npt.NDArray[np.int64]


OFFSET, WATERMARK = internal("offset"), internal("watermark_ns")


class Router(Engine):
    """One partition of the stage that divides records anew.

    Its targets are numbered by (input, partition of the first stage): ``input * N + partition``, so
    that a target's batch is of one input, in the order of its offsets. The rows have the source's
    fields, and two of the engine's own: their offset, and the input's watermark after each.
    """

    def __init__(
        self,
        plan: Plan,
        partition: int = 0,
        inputs: Sequence[str] | None = None,
        **rest: object,
    ) -> None:
        """Make an empty partition; as an engine of the first stage."""
        super().__init__(plan, partition, inputs, **{**rest, "staged": True})  # type: ignore[arg-type]
        self._outgoing = {}
        self._waiting = WaitingRows(plan, self._inputs)
        self._judged: tuple[Ints | None, Ints | None] = None, None

    @property
    def held_bytes(self) -> int:
        """The size of divided rows that no target has taken yet."""
        return self._waiting.held_bytes

    def _folds_here(self, plan: Plan, *, staged: bool) -> tuple[Fold, ...]:
        return super()._folds_here(plan, staged=staged)[:1]

    def _first_fold(self, graph: Graph, fold: Fold) -> EventFold:
        return Divided(graph, fold)

    def _resume(self, snapshot: Snapshot) -> None:
        super()._resume(snapshot)
        self._waiting.resume(self.cut)

    def _consume(
        self, given: Input, batch: pa.RecordBatch | Part, offsets: Ints | None
    ) -> list[RejectedRow]:
        assert isinstance(self._fold, Divided)
        self._fold.left = None
        rejected = super()._consume(given, batch, offsets)
        left = self._fold.left
        if left is not None and left.count:
            if offsets is None:
                offsets = np.arange(given.next_offset - batch.num_rows, given.next_offset)
            at = left.origins
            own = [pa.array(offsets[at]), pa.array(self._watermarks(at))]
            taken = batch.arrow() if isinstance(batch, Part) else batch
            if len(at) < batch.num_rows:
                taken = taken.take(pa.array(at))
            self._waiting.add(given.name, [*taken.columns, *own], left)
        return rejected

    def _judge(self, given: Input, rows: Rows) -> int:
        """Judge as ever, and note the watermark after each row that counts."""
        before_ns = given.watermark_ns
        crossing = super()._judge(given, rows)
        # Rows dropped here have not moved it.
        if rows.times_ns is None:
            self._judged = rows.origin, None
        else:
            after = np.asarray(rows.times_ns, np.int64) - given.out_of_order_ns
            self._judged = rows.origin, np.maximum(np.maximum.accumulate(after), before_ns)
        return crossing

    def _watermarks(self, at: Ints) -> Ints:
        """Return the watermark after each of these rows of the batch."""
        origin, after = self._judged
        if after is None:
            return np.full(len(at), watermark.NONE)
        return after[at if origin is None else np.searchsorted(origin, at)]

    def outgoing_to(self, targets: Collection[int]) -> dict[int, EdgeChanges]:
        """Return the rows for some targets since the last batch of each."""
        assert self._reported, "stabilize first"
        for target in targets:
            if not 0 <= target < self._waiting.targets:
                raise InputError(f"no partition {target!r} of a next stage follows this one")
        return self._waiting.take(self.cut, targets)


class Divided(EventFold):
    """Takes the first fold's place, rejects the rows that it would reject, and folds nothing."""

    def __init__(self, graph: Graph, fold: Fold) -> None:
        super().__init__(graph, fold)
        self.left: Rows | None = None
        """The rows of a batch left after the steps."""

    def apply(self, rows: Rows, crossing: int) -> None:
        """Take the rows left."""
        del crossing
        self.left = rows


class WaitingRows:
    """Rows that wait for their targets.

    Invariant: ``_since[t]`` is the cut of target t's last batch, None before the first.
    """

    def __init__(self, plan: Plan, inputs: dict[str, Input]) -> None:
        self._inputs = inputs
        self._numbers = {name: number for number, name in enumerate(inputs)}
        self._key = plan.folds[0].key
        self._of_key = pa.schema(arrow_fields(self._key))
        self._partitions = divided_into(plan)
        own = [pa.field(name, pa.int64()) for name in (OFFSET, WATERMARK)]
        self._schema = pa.schema([*arrow_fields(plan.source.fields), *own])
        self._none = pa.RecordBatch.from_pylist([], self._schema)
        self.targets = len(inputs) * self._partitions
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in range(self.targets)]
        self._since: list[Cut | None] = [None] * self.targets
        self.held_bytes = 0
        """How much waits, of all targets."""

    def add(self, name: str, columns: Sequence[pa.Array], left: Rows) -> None:
        """Add rows of an input, of which steps made ``left``."""
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        keys = [arrow_column(left.columns[field.name], field.type) for field in self._of_key]
        of_key = pa.RecordBatch.from_arrays(keys, schema=self._of_key)
        numbers = targets_of(of_key, self._of_key.names, self._partitions)
        first = self._numbers[name] * self._partitions
        order = np.argsort(numbers, kind="stable")
        present, starts = np.unique(numbers[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        ordered = rows.take(pa.array(order))
        for number, start, end in zip(present.tolist(), starts.tolist(), ends, strict=True):
            part = ordered.slice(start, end - start)
            self._waiting[first + number].append(part)
            self.held_bytes += part.nbytes

    def resume(self, cut: Cut) -> None:
        """Resume from a snapshot: from here on rows are those since its cut."""
        self._since = [cut] * self.targets

    def take(self, cut: Cut, targets: Collection[int]) -> dict[int, EdgeChanges]:
        """Return the rows waiting for these targets."""
        given = {}
        for target in targets:
            waiting, self._waiting[target] = self._waiting[target], []
            self.held_bytes -= sum(rows.nbytes for rows in waiting)
            rows = pa.concat_batches(waiting) if waiting else self._none
            name = list(self._inputs)[target // self._partitions]
            watermark_ns = self._inputs[name].watermark_ns
            given[target] = EdgeChanges(self._since[target], cut, watermark_ns, rows)
            self._since[target] = cut
        return given
