"""The end of a one-shot run, with the warnings about it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from ripple.core.arguments import plain
from ripple.core.errors import LostRecordsWarning
from ripple.core.frozen import frozen
from ripple.model.pipeline.row_table import ROWS
from ripple.task.rejection_limit import reasons_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.model.pipeline.plan import Plan
    from ripple.task.report import Report

_LATE = "a larger out_of_order= of the source, or lateness=, counts them"


@frozen
class Ended:
    """The end of a run of ``plan``, with its report.

    lost: the numbers of records that did not count and are not kept, as a text, "" for none. hint:
    at the likely reason, in brackets, "" without one. remark: a question about the unit of the
    event times, None without one.
    """

    plan: Plan
    report: Report
    lost: str = ""
    hint: str = ""
    remark: str | None = None

    def warn(self, *, stacklevel: int, kept_in: str = "") -> Report:
        """Warn of the remark and of lost records; return the report.

        stacklevel: as of ``warnings.warn`` in the caller. kept_in: the place of rejected records in
        memory, which are then reported, too.
        """
        lost, report = self.lost, self.report
        if kept_in and report.rejected:
            some = plain(_rejected_text(report, f"{kept_in} has them"))
            lost = f"{lost}, {some}" if lost else f"of {report.consumed} records, {some}"
        name = f"pipeline {self.plan.name!r}"
        if self.remark is not None:
            warnings.warn(f"{name}: {self.remark}", stacklevel=stacklevel + 1)
        if lost:
            warnings.warn(f"{name}: {lost}{self.hint}", LostRecordsWarning, stacklevel + 1)
        return report


def _rejected_text(report: Report, where: str) -> str:
    """Return the number of rejected records, the reasons and the place."""
    return f"{report.rejected.total()} rejected ({reasons_text(report.rejected)}; {where})"


def lost_text(report: Report, plan: Plan, *, are_kept: bool) -> str:
    """Say how many records did not count and are not kept, and how many rows have no result.

    "" if there are none.
    """
    parts = []
    if report.rejected and not are_kept:
        parts.append(_rejected_text(report, "dead_letters= keeps them"))
    if report.very_late:
        parts.append(f"{report.very_late} too late for their windows ({_LATE})")
    scans = [scan.name for scan in plan.scans]
    at_once = [f"{name}{ROWS}" for name in scans]  # counted there, where a table has the rows
    of_records = (*(ask.name for ask in plan.asks), *scans, *at_once)
    parts += _absent(report, of_records)
    lost = f"of {report.consumed} records, some do not count: {', '.join(parts)}" if parts else ""
    of_results = _absent(report, (name for name in report.uncomputable if name not in of_records))
    return plain(", ".join((*filter(None, (lost,)), *of_results)))


def _absent(report: Report, names: Iterable[str]) -> list[str]:
    """Return the numbers of rows of some nodes that could not be computed, with a first reason."""
    parts = []
    for name in names:
        found = report.uncomputable.get(name)
        if found is not None and found.rows:
            first = f"{found.rows[0].step}: {found.rows[0].reason}"
            rows = "1 row" if found.count == 1 else f"{found.count} rows"
            parts.append(f"{rows} of {name!r} without a result (first: {first})")
    return parts
