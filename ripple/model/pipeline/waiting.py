"""Nodes that hold rows until the watermark decides: of ``.distinct(...)`` and ``.finals(...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import dividing_fields
from ripple.model.pipeline.draft import need_time
from ripple.model.pipeline.nodes import SOURCES_MAX, Distinct, Finals
from ripple.model.window.duration import duration_ns
from ripple.model.window.spec import LATENESS_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.expression.expr import Operand
    from ripple.model.pipeline.draft import Draft


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
    if draft.finals:
        raise PlanError(
            f"{draft.finals!r} has one row a key and window: put it before the fold, or "
            "take rp.first_row in a fold"
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
            f"emit is {shown(emit)}: rows that may be taken back reach no sink and no fold "
            "yet; leave emit= out, which gives each row once"
        )
    if draft.is_settled and lateness is not None:
        raise PlanError(f"the rows of {draft.root!r} are never late: leave lateness= out")
    if lateness is None:
        lateness = 0 if draft.is_settled else LATENESS_DEFAULT
    spans_ns = duration_ns(within, "within"), duration_ns(lateness, "lateness")
    return Distinct(name, fields, *spans_ns, draft.fields, draft.below(name), draft.at)


def finals_of(name: str, draft: Draft) -> Finals:
    """Return the node of a ``.finals(...)`` over the draft's fold.

    Raises PlanError for a fold without windows, and for too many sources.
    """
    fold = draft.fold
    assert fold is not None, "there are results"
    if fold.window is None:
        raise PlanError(
            f"the rows of {fold.name!r} may change for ever: put it after a fold with a "
            ".window(...)"
        )
    if len(draft.sources) >= SOURCES_MAX:
        raise PlanError(
            f"a pipeline with final rows has at most {SOURCES_MAX - 1} sources, not "
            f"{len(draft.sources)}"
        )
    lateness_ns, key = fold.window.lateness_ns, draft.below(name)
    return Finals(name, fold.name, lateness_ns, fold.row, key, draft.at)
