"""Spans of less than a millisecond: an int of nanoseconds may have been meant as seconds."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from ripple.model.pipeline.description import span_text
from ripple.model.pipeline.nodes import Distinct, Fold, SourceSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.model.pipeline.plan import Plan
    from ripple.model.window.spec import WindowSpec

BRIEF_NS = 10**6


def brief_spans(plan: Plan) -> Iterator[str]:
    """Yield a remark for each span between 0 and a millisecond."""
    for where, what, span_ns in _spans(plan):
        if span_ns is not None and 0 < span_ns < BRIEF_NS:
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
            case Fold(name=name, window=window, expiry=expiry):
                if window is not None:
                    yield from _of_window(f"window {window.name!r}", window)
                elif expiry is not None:
                    renamed = {"gap": "ttl"}
                    for where, what, span_ns in _of_window(f"fold {name!r}", expiry):
                        yield where, renamed.get(what, what), span_ns


def _of_window(where: str, window: WindowSpec) -> Iterator[tuple[str, str, int]]:
    for of in (window.assigner, window):
        for field in fields(of):
            if field.name.endswith("_ns"):
                yield where, field.name.removesuffix("_ns"), getattr(of, field.name)
