"""The engine against the oracle: every row and every counter, by exact types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.model.batch import Batch
from ripple.spark.finding import OUR_ENGINE, Difference, EventTable, Finding, difference
from ripple.spark.fresh import Fresh
from ripple.spark.oracle import GraphOracle, Oracle, first_difference, oracle_of
from ripple.spark.progress import report_progress
from ripple.task.drive import Drive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.model.pipeline.plan import Plan
    from ripple.spark.oracle import Table
    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.portions import Portion
    from ripple.spark.progress import Reporter
    from ripple.spark.shares import Share

ORACLE_ROWS_DEFAULT = 100_000
WAITING_ROWS_MAX = 1_000
"""Records of each share where nodes wait for the watermark: then all windows are looked at."""
_CHECK_ROWS = 1 << 14


@dataclass(frozen=True, slots=True)
class AgainstOracle:
    """The first records of shares, by the engine and by the oracle: every row, every counter."""

    parcel: Parcel
    portion: Portion
    rows: int
    engine: str = OUR_ENGINE
    reporter: Reporter | None = None

    def run(self) -> Iterator[Packet]:
        """Yield the finding."""
        plan, shares = self.parcel.plan(), self.portion.shares
        names = self.portion.names
        finding = Finding("oracle", ", ".join(names))
        fresh = Fresh(plan, shares, dict.fromkeys(names, 0), self.engine, staged=False)
        oracle = oracle_of(plan, names)
        cut: dict[str, int] = {}
        for share in shares:
            cut[share.name] = self._read(plan, share, fresh, oracle)
            finding.rows += cut[share.name] - share.first
        fresh.keep(Drive(fresh.engine).close())
        report_progress(self.reporter, finding.rows, 1.0, last=True)
        tables = oracle.finish()
        for output in plan.outputs:
            found, expected = fresh.table(output), _table_of(oracle, output.name, tables)
            finding.cases += len(expected)
            if first_difference(expected, found) is not None:
                where = f"the first {finding.rows} records, by exact types"
                finding.differences.append(
                    difference(plan, output, where, (expected, found), (shares, cut))
                )
        counted = fresh.engine.counters.as_dict()
        if counted != oracle.counts:
            finding.differences.append(Difference(f"counters: {oracle.counts}, not {counted}"))
        yield finding.packet()

    def _read(self, plan: Plan, share: Share, fresh: Fresh, oracle: Oracle | GraphOracle) -> int:
        """Give both the first records of a share; return the offset after them."""
        rows = min(self.rows, WAITING_ROWS_MAX) if plan.waiting else self.rows
        until = share.first + rows
        until = until if share.end is None else min(until, share.end)
        drive, at = Drive(fresh.engine), share.first
        for entry in share.entries(plan, _CHECK_ROWS, since=share.first, until=share.end):
            taken = entry
            if isinstance(entry, Batch) and entry.next_offset > until:
                if entry.first_offset >= until:
                    break
                taken = entry.split_at(until)[0]
            moved = _at(taken, share.first)
            drive.apply(share.name, moved)
            fresh.keep(drive.stabilize())
            oracle.take(share.name, moved)
            at = taken.next_offset
            done = at - share.first
            report_progress(self.reporter, done, done / max(1, until - share.first))
            if at >= until:
                break
        return at


def _table_of(oracle: Oracle | GraphOracle, output: str, tables: Mapping[str, Table]) -> Table:
    """Return the expected rows of an output, or its events."""
    if output in tables:
        return tables[output]
    assert isinstance(oracle, GraphOracle), "a chain shows folds"
    events = EventTable()
    events.add(oracle.shown(output))
    return events.rows


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
