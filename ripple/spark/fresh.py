"""A fresh evaluation, from the beginning of the inputs to a live run's cut."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.model.pipeline.input_names import is_markers
from ripple.spark.finding import EventTable, engine_class, table_of
from ripple.spark.marks import counted
from ripple.spark.merge import entries_in_time
from ripple.spark.progress import report_progress
from ripple.spark.shares import check_inputs
from ripple.task.drive import Drive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.engine.machine import Changes
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.oracle import Table
    from ripple.spark.progress import Reporter
    from ripple.spark.sampling import Sample
    from ripple.spark.shares import Share


class Fresh:
    """An engine that reads the inputs of a cut from their beginning, once; cut after cut."""

    def __init__(
        self,
        plan: Plan,
        shares: Sequence[Share],
        cut: Mapping[str, int],
        engine: str,
        *,
        staged: bool,
        sample: Sample | None = None,
        begun: Snapshot | None = None,
    ) -> None:
        """Begin. sample: of the computed keys. begun: the starting point, if not nothing.

        Raises InputError if an input of the cut is not among the shares.
        """
        self.plan = plan
        read = (name for name in cut if not is_markers(name))
        check_inputs(shares, read, "the live run has read")
        # A stored cut has inputs in the order of their names; a run has the order of the source.
        self._shares = [share for share in shares if share.name in cut]
        names = tuple(share.name for share in self._shares)
        kind = engine_class(engine)
        kind = kind if sample is None else sample.engine(kind)
        if begun is None:
            self.engine = kind(plan, 0, names, staged=staged, finals=True)
        else:
            cut = {name: begun.cut[name] for name in names}
            self.engine = kind.restore(plan, replace(begun, cut=cut), finals=True)
        self._final: dict[str, Table] = {
            output.name: {} for output in plan.outputs if not output.is_stream
        }
        self._events = {output.name: EventTable() for output in plan.outputs if output.is_stream}

    @property
    def rows(self) -> int:
        """The number of offsets read."""
        return sum(self.engine.cut.values())

    def go_to(
        self,
        cut: Mapping[str, int],
        reporter: Reporter | None = None,
        *,
        last: Mapping[str, int] | None = None,
    ) -> None:
        """Read all inputs up to a cut, merged. Raises InputError if they end before.

        reporter: reports progress relative to the ``last`` cut, by default this one.
        """
        whole = sum(self._records(cut if last is None else last).values())
        drive, present = Drive(self.engine), self.engine.cut
        left = [
            share
            for share in counted(self._shares, cut)
            if share.marks or present[share.name] < cut[share.name]
        ]
        cut = self._records(cut)
        for name, entry in entries_in_time(self.plan, left, self.engine, until=cut):
            drive.apply(name, entry)
            self.keep(drive.stabilize())
            report_progress(reporter, self.rows, self.rows / whole)
        self.keep(drive.stabilize())
        report_progress(
            reporter, self.rows, self.rows / whole if whole else 1.0, last=self.rows == whole
        )

    def go_to_end(self, reporter: Reporter | None = None) -> None:
        """Read all inputs to their ends, and close all windows."""
        drive = Drive(self.engine)
        for name, entry in entries_in_time(self.plan, self._shares, self.engine, closes=True):
            drive.apply(name, entry)
            self.keep(drive.stabilize())
            report_progress(reporter, self.rows, 0.0)
        self.keep(drive.close())
        report_progress(reporter, self.rows, 1.0, last=True)

    @property
    def cut(self) -> Mapping[str, int]:
        """The offsets up to which the inputs have been read."""
        return self.engine.cut

    def _records(self, cut: Mapping[str, int]) -> dict[str, int]:
        return {share.name: cut[share.name] for share in self._shares}

    def table(self, output: Output) -> Table:
        """Return all rows of an output, including final ones, or all of its events."""
        if output.is_stream:
            return self._events[output.name].rows
        rows = self.engine.table(output.name)
        return {**self._final[output.name], **table_of(rows, self.plan, output)}

    def keep(self, changes: Changes) -> None:
        """Keep the rows that became final, such as events."""
        for name, events in self._events.items():
            events.add(changes.outputs[name].to_pylist())
        for output in self.plan.outputs:
            if output.is_stream:
                continue
            rows = changes.final.get(output.name)
            if rows is not None and rows.num_rows:
                self._final[output.name].update(table_of(rows, self.plan, output))
