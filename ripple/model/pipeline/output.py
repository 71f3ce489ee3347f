"""The output of a step ``.sink(...)``: of events, or of a fold's results, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import check_shown_field, check_text, dividing_fields
from ripple.model.pipeline.draft import check_topic
from ripple.model.pipeline.nodes import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.expression.expr import Operand
    from ripple.model.pipeline.draft import Draft


def output_of(
    name: str,
    draft: Draft,
    *,
    topic: str | None,
    of: str | None,
    key: Operand | Sequence[Operand],
) -> Output:
    """Return the output of the draft's rows, or of those of the fold ``of``.

    Raises PlanError for a fold that is not there, a topic that another output has, and fields that
    cannot be shown.
    """
    check_text(topic, "topic")
    check_text(of, "of")
    folds = {fold.name: fold for fold in draft.folds}
    if of is not None and of not in folds:
        raise PlanError(f"there is no fold {of!r}: the folds are {', '.join(folds) or 'none'}")
    check_topic(topic, draft.outputs)
    fold = draft.fold if of is None else folds[of]
    if fold is None:
        for field in draft.fields:
            check_shown_field(field.name)
        by = dividing_fields(key, draft.fields)
        return Output(name, draft.at, topic, draft.fields, name, is_stream=True, key=by)
    if key is not None:
        raise PlanError(
            f"the rows of {fold.name!r} have their key already, that of the fold: leave key= out, "
            "or put the sink before .partition(...) to show events"
        )
    return Output(name, fold.name, topic, fold.row, name)
