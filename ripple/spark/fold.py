"""Jobs over an input: a fold of each share, then one gather per later stage.

No Spark here: a job is a value that yields packets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ripple.core.errors import InputError
from ripple.engine.machine import Engine
from ripple.engine.machine.router import Router
from ripple.model.pipeline.topology import divided_into, stages_of
from ripple.model.window import OnCount, OnInterval
from ripple.spark.gather import Gather
from ripple.spark.options import BATCH_ROWS
from ripple.spark.packet_output import packet_output_of
from ripple.spark.task_results import Results
from ripple.task.drive import Drive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.engine.operators.division import Division
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.progress import Reporter
    from ripple.spark.shares import Share, Source
    from ripple.spark.task_results import WantedResults


class Job(Protocol):
    """The work of a task."""

    def run(self) -> Iterator[Packet]:
        """Yield its packets."""
        ...


@dataclass(frozen=True, slots=True)
class Fold:
    """One share through the first stage, or, as the only share, through all.

    staged: whether further stages run elsewhere. divides: whether its records are repartitioned by
    key for the first stage, instead of being folded here.
    """

    parcel: Parcel
    share: Share
    wanted: WantedResults
    staged: bool = False
    divides: bool = False
    division: Division | None = None
    reporter: Reporter | None = None
    batch_rows: int = BATCH_ROWS

    def run(self) -> Iterator[Packet]:
        """Yield rows, dead letters, packets for the next stage, and a report."""
        plan, share = self.parcel.plan(), self.share
        kind = Router if self.divides else Engine
        start = {share.name: share.first} if share.first else {}
        engine = kind(
            plan, share.number, (share.name,), start=start, staged=self.staged, finals=True
        )
        if self.division is not None:
            engine.expect(self.division)
        drive, giving = Drive(engine), Results(plan, engine, self.wanted, share.number)
        sending = packet_output_of(plan, engine, share.number)
        for entry in share.entries(plan, self.batch_rows):
            giving.refuse(share.name, drive.apply(share.name, entry))
            changes = drive.stabilize()
            yield from giving.changed(changes)
            yield from sending.batch()
            self._report_progress(engine, last=False)
        if self.wanted.closes and not self.divides:
            yield from giving.changed(drive.close())
        yield from sending.all()
        yield from giving.end()
        self._report_progress(engine, last=True)

    def _report_progress(self, engine: Engine, *, last: bool) -> None:
        if self.reporter is not None:
            done = engine.cut[self.share.name] - self.share.first
            total = self.share.rows
            fraction = (done / total if total else 1.0) if total is not None else float(last)
            self.reporter.send(done, fraction, last=last)


def laid_out(
    parcel: Parcel,
    plan: Plan,
    source: Source,
    wanted: WantedResults,
    reporter: Reporter | None = None,
) -> tuple[list[Fold], list[Gather]]:
    """Return the jobs for an input: one for each share, and the gathers that follow.

    Raises InputError if several inputs cannot be combined.
    """
    stages, shares = len(stages_of(plan)), source.shares
    divides = source.divided_anew(plan) is not None
    staged = stages > 1 and len(shares) > 1
    if divides:
        check_triggers(plan)
    jobs = [
        Fold(
            parcel,
            share,
            wanted,
            staged,
            divides,
            source.division(plan),
            None if reporter is None else reporter.of(share.number),
        )
        for share in shares
    ]
    gathers = []
    if divides:
        gathers.append(Gather(parcel, 0, tuple(share.name for share in shares), wanted))
    senders = divided_into(plan) if divides else len(shares)
    for stage in range(1, stages if staged else 1):
        gathers.append(Gather(parcel, stage, tuple(map(str, range(senders))), wanted))
        senders = gathers[-1].targets(plan)
    return jobs, gathers


def check_triggers(plan: Plan) -> None:
    """Raise InputError where rows would depend on the order in which inputs are read."""
    window = plan.folds[0].window
    if window is not None and isinstance(window.trigger, OnCount | OnInterval):
        raise InputError(
            "a window that shows partial results by OnCount or OnInterval cannot be computed over "
            "several repartitioned inputs: its results depend on the order of reading"
        )
