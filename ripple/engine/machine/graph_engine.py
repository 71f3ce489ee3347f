"""The engine of a plan with branches: the way of a record to folds and outputs.

The row steps of all branches run before any state changes, so that a record counts everywhere or
nowhere. Everything else, from the counters to the views, is that of the engine of a chain.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from ripple.engine.kernels.columns import Columns
from ripple.engine.machine.engine import Engine
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.stream_rows import StreamRows
from ripple.engine.snapshots.snapshot import REJECTED
from ripple.model.canonical import digest_of
from ripple.model.expression.bound import numbers
from ripple.model.expression.typed import Kind
from ripple.model.pipeline.plan import FLAT_ROWS_MAX
from ripple.model.pipeline.topology import need_chain
from ripple.model.window import duration_ns, watermark
from ripple.model.window.spec import FUTURE_TOLERANCE_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from ripple.engine.graph.node import Graph
    from ripple.engine.machine.inputs import Input
    from ripple.engine.operators.division import Division
    from ripple.engine.operators.event_fold import EventFold
    from ripple.engine.operators.rows import RejectedRow
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Fold, Plan
    from ripple.model.schema.exported import Part

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]


class GraphEngine(Engine):
    """One partition of a pipeline with branches; see Engine.

    A row's place is (offset, input, index in its record), as one number: ``offsets`` of rows.
    """

    _rows_a_record = FLAT_ROWS_MAX

    def _begin(
        self, plan: Plan, graph: Graph, *, staged: bool
    ) -> tuple[Sequence[EventFold], Sequence[Fold], Mapping[str, StreamRows]]:
        if staged:
            need_chain(plan, "a stage")
        self._event_folds: list[EventFold] = [
            self._first_fold(graph, fold) for fold in plan.event_folds
        ]
        self._is_stepwise = any(fold.stepwise for fold in self._event_folds)
        windows = [fold.fold.window for fold in self._event_folds if fold.fold.window is not None]
        self._latenesses_ns = sorted({window.lateness_ns for window in windows})
        self._lateness_ns = watermark.ANY_LATENESS_NS
        spans_ns = [window.future_ns for window in windows]
        self._future_ns = min(spans_ns, default=duration_ns(FUTURE_TOLERANCE_DEFAULT))
        self._orders = True
        shown = {output.of: output for output in plan.outputs if output.is_stream}
        self._streams = {name: StreamRows(output.fields) for name, output in shown.items()}
        self._readers = _readers(plan)
        # By the digest of a step or fold; None after a start from a snapshot without these counts.
        self._rejected: Counter[str] | None = Counter()
        self._digests = {node.of.name: digest_of(node.of.node_key) for node in plan.nodes}
        above = [fold for fold in plan.folds if fold not in plan.event_folds]
        return self._event_folds, above, self._streams

    def expect(self, division: Division) -> None:
        """Take no notice: all keys are in this one partition."""

    def _order(self, given: Input, offsets: Ints) -> Ints:
        return super()._order(given, offsets) * FLAT_ROWS_MAX

    def _rejected_counters(self) -> Mapping[str, int]:
        if self._rejected is None or not self.counters.dead_lettered:
            return {}
        source = digest_of(self.plan.source.node_key)
        counts = {digest: n for digest, n in self._rejected.items() if digest != source}
        counts[source] = self.counters.dead_lettered - sum(counts.values())
        return {f"{REJECTED}{digest}": count for digest, count in counts.items() if count}

    def _load(self, snapshot: Snapshot, freed_digests: Mapping[str, int]) -> None:
        super()._load(snapshot, freed_digests)
        self._rejected = snapshot.rejected

    def _advance(self, before_ns: int) -> None:
        for fold in self._event_folds:
            fold.advance(before_ns, self.watermark_ns)

    def _consume(
        self, given: Input, batch: pa.RecordBatch | Part, offsets: Ints | None
    ) -> list[RejectedRow]:
        """Judge rows of one input, transform them in all branches, then fold and show them."""
        assert offsets is not None, "every row has a place"
        count = batch.num_rows
        rows = Rows(Columns(batch, self._layout), count, self._order(given, offsets))
        if not self._admission.passes(rows.columns):
            self._admission.refuse(rows)
        others_ns, before_ns = self._watermark_of_others(given), given.watermark_ns
        times, too_late = self._judged(given, rows, count)
        origin = rows.origin
        fate = _Fate(count, rows)
        branches = self._branches(rows, fate)
        folded = []
        for fold in self._event_folds:
            taken = self._branch_of(fold.fold.reads, branches, fold.fold.name)
            window = fold.fold.window
            if window is not None:
                fate.drop_late(taken, too_late[window.lateness_ns])
            fold.admit(taken)
            fate.note_refused(taken)
            folded.append((fold, taken))
        dead = fate.dead
        for fold, taken in folded:
            fate.count_in(taken)
            crossing = -1
            if fold.interval_ns is not None and times is not None:
                crossing = watermark.last_crossing(
                    times,
                    before_ns,
                    given.out_of_order_ns,
                    given.future_ns_max,
                    others_ns,
                    fold.interval_ns,
                )
                if crossing >= 0 and origin is not None:
                    crossing = int(origin[crossing])
            if taken.count:
                fold.apply(taken, crossing)
            elif crossing >= 0:
                fold.show_waiting()
        for name, stream in self._streams.items():
            shown = self._branch_of(name, branches, name)
            fate.count_in(shown)
            assert shown.offsets is not None
            records = shown.offsets // (FLAT_ROWS_MAX * len(self._rank))
            stream.add(given.name, shown, records, shown.offsets % FLAT_ROWS_MAX)
        self._count(count, dead, fate.very_late)
        return dead

    def _count(self, count: int, dead: Sequence[RejectedRow], very_late: int) -> None:
        """Count the records of a batch."""
        self.counters.mildly_late -= very_late  # which were behind, too
        self.counters.dead_lettered += len(dead)
        self.counters.very_late += very_late
        self.counters.applied += count - len(dead) - very_late
        if self._rejected is not None:
            self._rejected.update(self._digests[bad.step] for bad in dead)

    def _branches(self, rows: Rows, fate: _Fate) -> dict[str, Rows]:
        """Return the rows of the source and after each step, and note refusals."""
        branches = {self.plan.source.name: rows}
        for step in self.plan.steps:
            branch = self._branch_of(step.reads, branches, step.name)
            branch.run((step,))
            fate.note_refused(branch)
            branches[step.name] = branch
        return branches

    def _branch_of(self, name: str, branches: dict[str, Rows], reader: str) -> Rows:
        """Return the rows of a node for one that reads it: themselves for the last one."""
        rows = branches[name]
        return rows if self._readers[name] == reader else rows.branch()

    def _judged(
        self, given: Input, rows: Rows, count: int
    ) -> tuple[Ints | None, dict[int, Mask | None]]:
        """Judge rows and move the watermark past them; reject those whose times cannot be.

        Returns the times of all, and per lateness which records of the batch are later: bool[count]
        or None where none is.
        """
        none_late: dict[int, Mask | None] = dict.fromkeys(self._latenesses_ns)
        if self._time_field is None:
            return None, none_late
        times: Ints = np.asarray(numbers(rows.columns[self._time_field], Kind.INT).values)
        rows.times_ns = times
        origin = np.arange(count) if rows.origin is None else rows.origin
        before_ns = given.watermark_ns
        verdicts, late, _, future, refused = given.judge(times, self._lateness_ns, self._future_ns)
        if verdicts is None:
            return times, none_late
        self.counters.mildly_late += late
        self.counters.future += future
        for lateness_ns in self._latenesses_ns if late else ():
            found = watermark.judge(
                times,
                before_ns,
                given.out_of_order_ns,
                lateness_ns,
                self._future_ns,
                given.future_ns_max,
            )[1]
            if found is not None and (found == watermark.VERY_LATE).any():
                mask = np.zeros(count, np.bool_)
                mask[origin[found == watermark.VERY_LATE]] = True
                none_late[lateness_ns] = mask
        if refused:
            self._reject_beyond(rows, verdicts)
        return times, none_late


def _readers(plan: Plan) -> dict[str, str]:
    """Return per node the last reader of its rows in a batch: steps, then folds, then outputs."""
    last: dict[str, str] = {}
    for step in plan.steps:
        last[step.reads] = step.name
    for fold in plan.event_folds:
        last[fold.reads] = fold.name
    for output in plan.outputs:
        if output.is_stream:
            last[output.of] = output.of
    return last


class _Fate:
    """What becomes of each record of a batch, by its index there.

    Invariant: a record is refused for the first reason, in the order of the plan's nodes.
    """

    def __init__(self, count: int, rows: Rows) -> None:
        self._refused: dict[int, RejectedRow] = {}
        self._count = count
        self._late = np.zeros(count, np.bool_)
        self._taken = np.zeros(count, np.bool_)
        self.note_refused(rows)

    def note_refused(self, rows: Rows) -> None:
        for bad in rows.rejected:
            self._refused.setdefault(bad.row, bad)
        rows.rejected = []

    def drop_late(self, rows: Rows, late: Mask | None) -> None:
        """Drop the rows that are too late for a window."""
        if late is not None:
            is_late = late if rows.origin is None else late[rows.origin]
            self._late |= late & self._mask_of(rows)
            rows.keep(~is_late)

    def count_in(self, rows: Rows) -> None:
        """Drop the rows of refused records, and note that the others count."""
        if self._refused:
            alive = np.ones(self._count, np.bool_)
            alive[list(self._refused)] = False
            rows.keep(alive if rows.origin is None else alive[rows.origin])
        self._taken |= self._mask_of(rows)

    @property
    def dead(self) -> list[RejectedRow]:
        """The refused records."""
        return list(self._refused.values())

    @property
    def very_late(self) -> int:
        """How many reached windows alone, all of which were over for them."""
        late = self._late & ~self._taken
        late[list(self._refused)] = False
        return int(late.sum())

    def _mask_of(self, rows: Rows) -> Mask:
        """Return which records have rows here."""
        if rows.origin is None:
            return np.ones(self._count, np.bool_)
        mask = np.zeros(self._count, np.bool_)
        mask[rows.origin] = True
        return mask
