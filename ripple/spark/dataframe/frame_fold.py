"""An engine over the sorted rows of a partition of DataFrames."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ripple.engine.machine import Engine
from ripple.spark.dataframe.taken import Taken, chunks
from ripple.spark.packet_output import packet_output_of
from ripple.spark.packets import REPORT
from ripple.spark.task_results import Results
from ripple.task.drive import Drive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ripple.model.pipeline.plan import Plan
    from ripple.spark.dataframe.given import Given
    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.progress import Reporter
    from ripple.spark.task_results import WantedResults

SOURCE = "ripple_source"
"""The column with the rank of a row's source, where there are several."""


@dataclass(frozen=True, slots=True)
class FrameFold:
    """The rows of a partition through the first stage, or, as the only one, through all.

    given: the columns and the order of each source, in the order of declaration. partitions: of the
    rows. staged: whether further stages run elsewhere.
    """

    parcel: Parcel
    given: tuple[Given, ...]
    partitions: int
    wanted: WantedResults
    staged: bool = False
    reporter: Reporter | None = None

    def run(self, number: int, batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
        """Yield rows, dead letters, packets for the next stage, and a report."""
        plan = self.parcel.plan()
        names = self._names(plan, number)
        engine = Engine(plan, number, names, staged=self.staged, finals=True)
        drive, giving = Drive(engine), Results(plan, engine, self.wanted, number)
        sending = packet_output_of(plan, engine, number)
        taken = [Taken(source, own) for source, own in zip(plan.sources, self.given, strict=True)]
        reporter = None if self.reporter is None else self.reporter.of(number)
        for rows in chunks(batches, self.wanted.every):
            for rank, (name, one) in enumerate(zip(names, taken, strict=True)):
                for batch in one.batches(self._of_source(rows, rank), engine.cut[name]):
                    giving.refuse(name, drive.apply(name, batch))
            yield from giving.changed(drive.stabilize())
            yield from sending.batch()
            if reporter is not None:
                reporter.send(sum(engine.cut.values()))
        if self.wanted.closes:
            yield from giving.changed(drive.close())
        yield from sending.all()
        inputs = {name: one.as_dict() for name, one in zip(names, taken, strict=True)}
        for packet in giving.end():
            is_report = packet.kind == REPORT
            yield replace(packet, about={**packet.about, "inputs": inputs}) if is_report else packet
        if reporter is not None:
            reporter.send(sum(engine.cut.values()), 1.0, last=True)

    def _names(self, plan: Plan, number: int) -> tuple[str, ...]:
        if self.partitions == 1:
            return tuple(source.name for source in plan.sources)
        return tuple(f"{source.name}/{number}" for source in plan.sources)

    def _of_source(self, rows: pa.RecordBatch, rank: int) -> pa.RecordBatch:
        if len(self.given) == 1:
            return rows
        return rows.filter(pc.equal(rows.column(SOURCE), pa.scalar(rank, pa.int32())))
