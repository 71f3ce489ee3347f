"""Jobs over an input: a fold of each portion, then one gather per later stage.

No Spark here: a job is a value that yields packets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ripple.core.errors import InputError
from ripple.engine.machine import Engine
from ripple.engine.machine.router import Router
from ripple.model.pipeline.division import divided_into
from ripple.model.pipeline.topology import stages_of
from ripple.spark.answers import ANSWERS, AnswersReader
from ripple.spark.gather import Gather
from ripple.spark.merge import entries_in_time
from ripple.spark.packet_output import packet_output_of
from ripple.spark.task_results import Results
from ripple.task.drive import Drive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.engine.operators.division import Division
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.answers import RecordedAnswers
    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.portions import Portion, Sources
    from ripple.spark.progress import Reporter
    from ripple.spark.task_results import WantedResults


class Job(Protocol):
    """The work of a task."""

    def run(self) -> Iterator[Packet]:
        """Yield its packets."""
        ...


@dataclass(frozen=True, slots=True)
class Fold:
    """One portion through the first stage, or, as the only one, through all.

    staged: whether further stages run elsewhere. divides: whether its records are repartitioned by
    key for the first stage, instead of being folded here. answers: of services, as recorded.
    """

    parcel: Parcel
    portion: Portion
    wanted: WantedResults
    staged: bool = False
    divides: bool = False
    divisions: tuple[Division, ...] = ()
    reporter: Reporter | None = None
    answers: RecordedAnswers | None = None

    def run(self) -> Iterator[Packet]:
        """Yield rows, dead letters, packets for the next stage, and a report."""
        plan, portion = self.parcel.plan(), self.portion
        kind = Router if self.divides else Engine
        start = {name: first for name, first in portion.start.items() if first}
        names = portion.names
        if self.answers is not None:
            names, start[ANSWERS] = (*names, ANSWERS), self.answers.first
        engine = kind(plan, portion.number, names, start=start, staged=self.staged, finals=True)
        for division in self.divisions:
            engine.expect(division)
        drive, giving = Drive(engine), Results(plan, engine, self.wanted, portion.number)
        sending = packet_output_of(plan, engine, portion.number)
        closes = self.wanted.closes and not self.divides
        with AnswersReader(self.answers, plan) as recorded:
            for name, entry in entries_in_time(
                plan, portion.shares, engine, self.wanted.every, closes=closes
            ):
                giving.refuse(name, drive.apply(name, entry))
                for answers in recorded.known(engine.cut):
                    drive.apply(ANSWERS, answers)
                changes = drive.stabilize()
                yield from giving.changed(changes)
                yield from sending.batch()
                self._report_progress(engine, last=False)
            for answers in recorded.rest(engine.cut):
                drive.apply(ANSWERS, answers)
        if closes:
            yield from giving.changed(drive.close())
        elif self.answers is not None:
            yield from giving.changed(drive.stabilize())  # rows with the last answers
        yield from sending.all()
        yield from giving.end()
        self._report_progress(engine, last=True)

    def _report_progress(self, engine: Engine, *, last: bool) -> None:
        if self.reporter is not None:
            cut, start = engine.cut, self.portion.start
            done = sum(cut[name] - first for name, first in start.items())
            total = self.portion.rows
            fraction = (done / total if total else 1.0) if total is not None else float(last)
            self.reporter.send(done, fraction, last=last)


def laid_out(
    parcel: Parcel,
    plan: Plan,
    sources: Sources,
    wanted: WantedResults,
    reporter: Reporter | None = None,
) -> tuple[list[Fold], list[Gather]]:
    """Return the jobs for an input: one for each portion, and the gathers that follow.

    Raises InputError if several inputs cannot be combined.
    """
    stages, portions = len(stages_of(plan)), sources.portions(plan)
    divides = sources.divided_anew(plan) is not None
    staged = stages > 1 and len(portions) > 1
    if divides or any(len(portion.shares) > 1 for portion in portions):
        check_triggers(plan)
    jobs = [
        Fold(
            parcel,
            portion,
            wanted,
            staged,
            divides,
            sources.divisions(plan, portion),
            None if reporter is None else reporter.of(portion.number),
            answers=sources.answers,
        )
        for portion in portions
    ]
    gathers = []
    if divides:
        names = tuple(name for portion in portions for name in portion.names)
        gathers.append(Gather(parcel, 0, names, wanted))
    senders = divided_into(plan) if divides else len(portions)
    if staged:
        gathers += later_gathers(parcel, plan, senders, wanted)
    return jobs, gathers


def later_gathers(parcel: Parcel, plan: Plan, senders: int, wanted: WantedResults) -> list[Gather]:
    """Return a gather for each stage after the first. senders: partitions of the first."""
    gathers: list[Gather] = []
    for stage in range(1, len(stages_of(plan))):
        gathers.append(Gather(parcel, stage, tuple(map(str, range(senders))), wanted))
        senders = gathers[-1].targets(plan)
    return gathers


def check_triggers(plan: Plan) -> None:
    """Raise InputError where rows would depend on the order in which inputs are read."""
    if plan.partial_folds:
        raise InputError(
            "a window that shows partial results by OnCount or OnInterval cannot be computed over "
            "several inputs that one task reads or that are repartitioned: its results depend on "
            "the order of reading"
        )
