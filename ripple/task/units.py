"""Event times that look as if they were read in another unit than they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.model.window import watermark

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan

# Of 1990 and 2100, in seconds since 1970.
_FIRST_S, _LAST_S = 631_152_000, 4_102_444_800
_PER_S = {"s": 1, "ms": 1_000, "us": 1_000_000}


def unit_remark(plan: Plan, watermark_ns: int) -> str | None:
    """Return a question about the unit of times that lie in 1970, or None.

    Those are times of 1990 to 2100 in seconds, milliseconds or microseconds, as nanoseconds.
    Nothing is changed by it.
    """
    if watermark_ns in (watermark.NONE, watermark.END):
        return None
    for source in plan.sources:
        latest = watermark_ns + source.out_of_order_ns
        units = [
            unit for unit, per_s in _PER_S.items() if _FIRST_S * per_s <= latest < _LAST_S * per_s
        ]
        if source.time_field is not None and units:
            return (
                f"the event times {source.time_field!r} of {source.name!r} lie in 1970: is their"
                " unit nanoseconds? For another one declare"
                f' {source.time_field}: rp.Timestamp = rp.field(format="{units[0]}")'
            )
    return None
