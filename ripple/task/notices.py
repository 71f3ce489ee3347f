"""Exceptional records and rows, reported when they first appear and whenever they have doubled.

So a log has few lines about them, however often they occur.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ripple.core.events import FromFuture, RecordsRefused, Remark, Uncomputable, VeryLate
from ripple.task.units import TimeUnits

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ripple.core.events import EventListener
    from ripple.engine.machine import Counters
    from ripple.engine.machine.partition import Partition


class ExceptionNotices:
    """The exceptions of a partition that one task has reported."""

    def __init__(self, emit: EventListener, known: Counters) -> None:
        """Begin with the counts of previous tasks."""
        self._emit = emit
        self._before = {FromFuture: known.future, VeryLate: known.very_late}
        self._noticed: dict[Hashable, int] = {}
        self._refused: Counter[str] = Counter()
        self.units = TimeUnits(is_known=known.consumed > 0)

    def look(self, engine: Partition) -> None:
        """Report changes since the last call. engine: with stabilized views."""
        self.look_at_times(engine)
        counters = engine.counters
        future = counters.future if engine.plan.flags_future else 0
        for kind, total in ((FromFuture, future), (VeryLate, counters.very_late)):
            count = total - self._before[kind]
            if self._is_news(kind, count):
                self._emit(kind(count))
        for fold, count in engine.uncomputable_counts.items():
            if self._is_news((Uncomputable, fold), count):
                found = engine.uncomputable[fold]
                first = next(iter(found.rows), None)
                why = ((), "", "") if first is None else (first.key, first.step, first.reason)
                self._emit(Uncomputable(fold, found.count, found.final, *why))

    def look_at_times(self, engine: Partition) -> None:
        """Ask about the unit of event times, once there is a watermark."""
        remark = self.units.ask(engine.plan, engine.watermark_ns)
        if remark is not None:
            self._emit(Remark(remark))

    def refused(self, name: str, count: int, cause: str) -> None:
        """Take notice of records that became dead letters. cause: of the last one."""
        self._refused[name] += count
        if self._is_news((RecordsRefused, name), self._refused[name]):
            self._emit(RecordsRefused(name, self._refused[name], cause))

    def _is_news(self, what: Hashable, count: int) -> bool:
        """Return whether it is the first, or twice as many as were reported; note that."""
        if not count or count < 2 * self._noticed.get(what, 0):
            return False
        self._noticed[what] = count
        return True
