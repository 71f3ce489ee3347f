"""Nodes that hold rows until the watermark decides: of ``.distinct(...)`` and ``.finals(...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import dividing_fields
from ripple.model.pipeline.draft import lateness_of, need_records, need_time, window_below
from ripple.model.pipeline.nodes import SOURCES_MAX, WINDOW_FIELD_NAMES, TableJoin, tables_below
from ripple.model.pipeline.waiting_nodes import Distinct, Finals
from ripple.model.window.duration import duration_ns
from ripple.model.window.spec import Sliding, ZonedTumbling
from ripple.model.window.trading_sessions import TradingSessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.expression.expr import Operand
    from ripple.model.pipeline.draft import Draft
    from ripple.model.pipeline.nodes import Fold


def distinct_of(
    name: str,
    draft: Draft,
    key: Operand | Sequence[Operand],
    *,
    within: str | int | None,
    lateness: str | int | None,
    emit: Any,
) -> Distinct:
    """Return the node of a ``.distinct(...)`` over the draft's rows.

    Raises PlanError for rows without an order in time, and for arguments at fault.
    """
    need_time(draft, "rows are compared by event time")
    need_records(
        draft,
        "put it before that fold; or keep the first row a key by .partition(...), .window(...) and "
        "rp.first_row in a fold, and its .finals(...)",
    )
    fields = dividing_fields(key, draft.fields)
    if not fields:
        raise PlanError("key is missing: name the field whose first row is kept")
    if within is None:
        raise PlanError(
            "within is missing, and every key ever seen would be kept: name a span, or "
            "take rp.first_row in a fold"
        )
    if not isinstance(emit, str) or emit != "final":
        raise PlanError(
            f"emit is {shown(emit)}: a stream takes no rows back: leave emit= out, which gives "
            "each row once; or show the rp.first_row of each rp.Session, whose gap is a nanosecond "
            "longer than within=, with rp.OnEveryElement(): the same rows, at once and corrected"
        )
    lateness = lateness_of(draft, lateness)
    spans_ns = duration_ns(within, "within"), duration_ns(lateness, "lateness")
    return Distinct(name, fields, *spans_ns, draft.fields, draft.below(name), draft.at)


def finals_of(name: str, draft: Draft) -> Finals:
    """Return the node of a ``.finals(...)`` over the draft's fold.

    Raises PlanError for a fold without windows, and for too many sources.
    """
    fold = draft.fold
    assert fold is not None, "there are results"
    if fold.window is None:
        raise PlanError(_never_final(draft, fold))
    if len(draft.sources) >= SOURCES_MAX:
        raise PlanError(
            f"a pipeline with final rows has at most {SOURCES_MAX - 1} sources, not "
            f"{len(draft.sources)}"
        )
    lateness_ns, key = fold.window.lateness_ns, draft.below(name)
    return Finals(name, fold.name, lateness_ns, fold.row, key, draft.at)


def _never_final(draft: Draft, fold: Fold) -> str:
    """Return why the rows of a fold without a window of its own are not final ones, and which are.

    Rows that end with the windows of a fold below leave with those.
    """
    from ripple.model.pipeline.description import span_text  # noqa: PLC0415 - only errors say it

    ending = window_below(draft)
    if ending is None:
        return (
            f"the rows of {fold.name!r} may change for ever: put it after a fold with a "
            ".window(...)"
        )
    below = " and ".join(repr(name) for name in dict.fromkeys(tables_below(fold)))
    leave = f"the rows of {fold.name!r} leave with the windows of {ending.name!r}, but only those"
    if isinstance(fold, TableJoin):
        return (
            f"{leave} of a fold with a .window(...) become a stream: take .finals(...) of {below}, "
            "and match their rows with .join_interval(..., within=('0s', '0s'))"
        )
    assigner = ending.window.assigner
    if isinstance(assigner, ZonedTumbling):
        windows = f"rp.Tumbling({assigner.size!r}, zone={assigner.zone!r})"
    elif isinstance(assigner, TradingSessions):
        windows = "the same rp.TradingSessions"
    else:
        aligned_ns = assigner.slide_ns if isinstance(assigner, Sliding) else assigner.size_ns
        windows = f"rp.Tumbling({span_text(aligned_ns)!r})"
    rest = ", ".join(one.name for one in fold.key if one.name not in WINDOW_FIELD_NAMES)
    return (
        f"{leave} of a fold with a .window(...) become a stream: take .finals(...) of "
        f"{below}, and fold their rows by {rest or 'a constant, of .derive(...),'} in windows of "
        f"{windows}"
    )
