"""The engine against the oracle: every row and every counter, by exact types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.model.batch import Batch
from ripple.spark.finding import OUR_ENGINE, Difference, Finding, difference
from ripple.spark.fresh import Fresh
from ripple.spark.oracle import Oracle, first_difference
from ripple.spark.progress import report_progress
from ripple.task.drive import Drive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.progress import Reporter
    from ripple.spark.shares import Share

ORACLE_ROWS_DEFAULT = 100_000
_CHECK_ROWS = 1 << 14


@dataclass(frozen=True, slots=True)
class AgainstOracle:
    """The first records of a share, by the engine and by the oracle: every row, every counter."""

    parcel: Parcel
    share: Share
    rows: int
    engine: str = OUR_ENGINE
    reporter: Reporter | None = None

    def run(self) -> Iterator[Packet]:
        """Yield the finding."""
        plan, share = self.parcel.plan(), self.share
        finding = Finding("oracle", share.name)
        until = share.first + self.rows
        until = until if share.end is None else min(until, share.end)
        fresh = Fresh(plan, [share], {share.name: 0}, self.engine, staged=False)
        drive, oracle = Drive(fresh.engine), Oracle(plan)
        cut = {share.name: share.first}
        for entry in share.entries(plan, _CHECK_ROWS, since=share.first, until=share.end):
            taken = entry
            if isinstance(entry, Batch) and entry.next_offset > until:
                if entry.first_offset >= until:
                    break
                taken = entry.split_at(until)[0]
            drive.apply(share.name, _at(taken, share.first))
            fresh.keep(drive.stabilize())
            if isinstance(taken, Batch):
                oracle.apply_rows(taken.records)
                oracle.refuse(len(taken.rejected))
            else:
                oracle.advance(plan.source.name, taken.watermark_ns)
            cut = {share.name: taken.next_offset}
            done = taken.next_offset - share.first
            report_progress(self.reporter, done, done / max(1, until - share.first))
            if taken.next_offset >= until:
                break
        fresh.keep(drive.close())
        finding.rows = cut[share.name] - share.first
        report_progress(self.reporter, finding.rows, 1.0, last=True)
        tables = oracle.finish()
        for output in plan.outputs:
            found, expected = fresh.table(output), tables[output.name]
            finding.cases += len(expected)
            if first_difference(expected, found) is not None:
                where = f"the first {finding.rows} records, by exact types"
                finding.differences.append(
                    difference(plan, output, where, (expected, found), ([share], cut))
                )
        counted = fresh.engine.counters.as_dict()
        if counted != oracle.counts:
            finding.differences.append(Difference(f"counters: {oracle.counts}, not {counted}"))
        yield finding.packet()


def _at(entry: Any, first: int) -> Any:
    """Return a batch or marker with offsets relative to this share."""
    if isinstance(entry, Batch):
        offsets = None if entry.row_offsets is None else entry.row_offsets - first
        return Batch(
            entry.records,
            entry.next_offset - first,
            tuple(_moved(bad, first) for bad in entry.rejected),
            offsets,
            entry.watermark_ns,
        )
    return type(entry)(entry.watermark_ns, entry.next_offset - first)


def _moved(bad: Any, first: int) -> Any:
    return type(bad)(bad.offset - first, bad.line_number, bad.reason, bad.raw, bad.step)
