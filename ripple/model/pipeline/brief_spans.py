"""Spans of less than a millisecond: an int of nanoseconds may have been meant as seconds."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from ripple.model.pipeline.description import span_text
from ripple.model.pipeline.nodes import AsofJoin, Distinct, Fold, IntervalJoin, SourceSpec
from ripple.model.window.duration import BRIEF_NS
from ripple.model.window.spec import Session, WindowSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.model.pipeline.plan import Plan


def brief_spans(plan: Plan) -> Iterator[str]:
    """Yield a remark for each span of less than a millisecond, but none."""
    for where, what, span_ns in _spans(plan):
        if span_ns is not None and 0 < abs(span_ns) < BRIEF_NS:
            yield (
                f"{where}: {what} is {span_text(span_ns)}: an int counts nanoseconds, so say "
                f"{what}='{span_ns}s' where that many seconds are meant"
            )


def _spans(plan: Plan) -> Iterator[tuple[str, str, int | None]]:
    for node in plan.nodes:
        match node.of:
            case SourceSpec(name=name) as source:
                where = f"source {name!r}"
                yield where, "out_of_order", source.out_of_order_ns
                yield where, "reject_future", source.reject_future_ns
                yield where, "idle", source.idle_ns
            case Distinct(name=name) as distinct:
                yield f"distinct {name!r}", "within", distinct.within_ns
                yield f"distinct {name!r}", "lateness", distinct.lateness_ns
            case AsofJoin(name=name) as join:
                yield f"join_asof {name!r}", "tolerance", join.tolerance_ns
                yield f"join_asof {name!r}", "lateness", max(join.latenesses_ns)
            case IntervalJoin(name=name) as join:
                for at, bound_ns in enumerate((join.lo_ns, join.hi_ns)):
                    yield f"join_interval {name!r}", f"within[{at}]", bound_ns
                yield f"join_interval {name!r}", "lateness", max(join.latenesses_ns)
            case Fold(window=window) if window is not None:
                yield from _of_window(f"window {window.name!r}", window)
            case Fold(name=name, expiry=WindowSpec(assigner=Session(gap_ns=ttl_ns))):
                yield f"fold {name!r}", "ttl", ttl_ns


def _of_window(where: str, window: WindowSpec) -> Iterator[tuple[str, str, int]]:
    for of in (window.assigner, window):
        for field in fields(of):
            if field.name.endswith("_ns"):
                yield where, field.name.removesuffix("_ns"), getattr(of, field.name)
