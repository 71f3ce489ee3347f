"""Event times that look as if they were read in another unit than they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.batch import Batch
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan

# Of 2005 and 2100, in seconds since 1970. Synthetic trades begin before, 10^9 ns after 1970.
_FIRST_S, _LAST_S = 1_104_537_600, 4_102_444_800
_PER_S = {"s": 1, "ms": 1_000, "us": 1_000_000}


class TimeUnits:
    """Asks once about the unit of a task's event times. remark: the question, None without one."""

    def __init__(self, *, is_known: bool) -> None:
        """Begin with no times. is_known: nothing is asked, as a previous task has."""
        self.remark: str | None = None
        self._is_known = is_known
        self._began_ns: dict[str, int] = {}

    def begins(self, source: SourceSpec, batch: Batch) -> bool:
        """Note the least time of a source's first batch with rows; return True once done."""
        if source.time_field is None or source.name in self._began_ns:
            return True
        if not batch.rows.num_rows:
            return False
        times = batch.records.column(source.time_field)
        if times.null_count < len(times):  # numpy has NaN for a null, which fmin leaves out
            self._began_ns[source.name] = int(np.fmin.reduce(times.to_numpy(zero_copy_only=False)))
        return source.name in self._began_ns

    def ask(self, plan: Plan, watermark_ns: int) -> str | None:
        """Return the remark at the first watermark, None from then on."""
        if self._is_known or watermark_ns == watermark.NONE:
            return None
        self._is_known = True
        self.remark = unit_remark(plan, watermark_ns, self._began_ns)
        return self.remark


def unit_remark(plan: Plan, watermark_ns: int, began_ns: Mapping[str, int]) -> str | None:
    """Return a question about the unit of times that lie in 1970, or None.

    Those are times of 2005 to 2100 in seconds, milliseconds or microseconds, as nanoseconds.
    began_ns: the time with which each source began, by its name; of one that began near 0, as
    generated records do, nothing is asked. Nothing is changed by it.
    """
    if watermark_ns in (watermark.NONE, watermark.END):
        return None
    for source in plan.sources:
        times = (began_ns.get(source.name, 0), watermark_ns + source.out_of_order_ns)
        units = [
            unit
            for unit, per_s in _PER_S.items()
            if all(_FIRST_S * per_s <= time < _LAST_S * per_s for time in times)
        ]
        if source.time_field is not None and units:
            return (
                f"the event times {source.time_field!r} of {source.name!r} lie in 1970: is their"
                " unit nanoseconds? For another one declare"
                f' {source.time_field}: rp.Timestamp = rp.field(format="{units[0]}")'
            )
    return None
