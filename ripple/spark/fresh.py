"""A fresh evaluation, from the beginning of the inputs to a cut that a live run has reached."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.core.errors import InputError
from ripple.spark.finding import engine_class, table_of
from ripple.spark.progress import tell
from ripple.task.drive import Drive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.engine.machine import Changes
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Output, Plan
    from ripple.spark.oracle import Table
    from ripple.spark.progress import Teller
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
        """Make it. sample: of the keys that are computed. begun: from what, if not from nothing.

        Raises InputError where an input of the cut is not among the shares.
        """
        self.plan = plan
        by_name = {share.name: share for share in shares}
        missing = [name for name in cut if name not in by_name]
        if missing:
            raise InputError(
                f"what was written has read {', '.join(missing)}, and the source has "
                f"{', '.join(by_name)}: give the place that the live run reads"
            )
        # A stored cut has them in the order of their names; a run has them in that of the source.
        self._shares = [share for share in shares if share.name in cut]
        names = tuple(share.name for share in self._shares)
        kind = engine_class(engine)
        kind = kind if sample is None else sample.engine(kind)
        if begun is None:
            self.engine = kind(plan, 0, names, staged=staged, finals=True)
        else:
            cut = {name: begun.cut[name] for name in names}
            self.engine = kind.restore(plan, replace(begun, cut=cut), finals=True)
        self._final: dict[str, Table] = {output.name: {} for output in plan.outputs}

    @property
    def rows(self) -> int:
        """How many offsets were read."""
        return sum(self.engine.cut.values())

    def go_to(
        self,
        cut: Mapping[str, int],
        teller: Teller | None = None,
        *,
        last: Mapping[str, int] | None = None,
    ) -> None:
        """Read up to a cut, all inputs side by side. Raises InputError where they end before.

        teller: told how much that is of the ``last`` cut to go to, by default this one.
        """
        whole = sum((cut if last is None else last).values())
        drive, present = Drive(self.engine), self.engine.cut
        turns = deque(
            (share.name, share.entries(self.plan, since=present[share.name], until=end))
            for share in self._shares
            for end in [cut[share.name]]
            if present[share.name] < end
        )
        while turns:
            name, entries = turns.popleft()
            entry = next(entries, None)
            if entry is not None:
                turns.append((name, entries))
                drive.apply(name, entry)
                self.keep(drive.bring_up())
                tell(teller, self.rows, self.rows / whole)
        self.keep(drive.bring_up())
        tell(teller, self.rows, self.rows / whole if whole else 1.0, last=self.rows == whole)

    def table(self, output: Output) -> Table:
        """Return all rows that an output has had, those that became final among them."""
        rows = self.engine.table(output.name)
        return {**self._final[output.name], **table_of(rows, self.plan, output)}

    def keep(self, changes: Changes) -> None:
        """Keep the rows that became final."""
        for output in self.plan.outputs:
            rows = changes.final.get(output.name)
            if rows is not None and rows.num_rows:
                self._final[output.name].update(table_of(rows, self.plan, output))
