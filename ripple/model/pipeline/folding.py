"""Windows and folds, checked: of steps ``.window(...)`` and ``.fold(...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.aggregate import Aggregate
from ripple.model.aggregate.contract import call_of
from ripple.model.expression.expr import as_column, col
from ripple.model.pipeline.checks import blaming_field, check_new_field, check_result_field
from ripple.model.pipeline.draft import lateness_of, need_time
from ripple.model.pipeline.nodes import WINDOW_FIELD_NAMES, Fields, Fold, FoldAggregate, types_of
from ripple.model.schema.types import Field, Int64
from ripple.model.window.duration import duration_ns
from ripple.model.window.spec import (
    FUTURE_TOLERANCE_DEFAULT,
    LATENESS_DEFAULT,
    OnEveryElement,
    Session,
    window_spec,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.pipeline.draft import Draft
    from ripple.model.window.spec import Assigner, Trigger, WindowSpec


def window_of(
    name: str,
    draft: Draft,
    assigner: Assigner,
    *,
    trigger: Trigger | None,
    lateness: str | int | None,
    future: str | int,
) -> WindowSpec:
    """Return the windows of the draft's rows.

    Raises PlanError for rows without a time, and for partial results in the order of reading.
    """
    need_time(draft, "windows are spans of event time")
    lateness = lateness_of(draft, lateness)
    spec = window_spec(name, assigner, trigger=trigger, lateness=lateness, future=future)
    if spec.shows_partial and (len(draft.read) > 1 or draft.waits):
        read = f"rows of {draft.root!r} come" if draft.waits else "the sources are read"
        raise PlanError(
            f"which partial results {spec.trigger!r} shows would depend on the order in which "
            f"{read}: use OnWatermark or OnEveryElement"
        )
    return spec


def with_unnamed(unnamed: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return all aggregates of a fold by name; an unnamed one has the name of its kind.

    Raises PlanError for a result without a name of its own, and for two aggregates of one kind.
    """
    aggregates: dict[str, Any] = {}
    for aggregate in unnamed:
        _need_aggregate(aggregate)
        given = aggregate.unnamed()
        if given.name in aggregates or given.name in named:
            raise PlanError(
                f"its results would have the names of another {given.name}: name one of the two, "
                f"as in NAME={call_of(aggregate)}"
            )
        aggregates[given.name] = given
    return {**aggregates, **named}


def _need_aggregate(given: object) -> None:
    """Raise PlanError for anything but an aggregate."""
    if not isinstance(given, Aggregate):
        raise PlanError(f"expected an aggregate such as rp.sum('size'), not {shown(given)}")


def fold_of(name: str, draft: Draft, aggregates: dict[str, Any]) -> Fold:
    """Return a fold of the draft's rows; ``ttl`` among the aggregates may be a span.

    Raises PlanError for an impossible aggregate, with the field at fault.
    """
    expiry = None
    if "ttl" in aggregates and not isinstance(aggregates["ttl"], Aggregate):
        expiry = _expiry(draft, aggregates.pop("ttl"))
    if not aggregates:
        raise PlanError("it computes nothing: write field=aggregate, as in n=rp.count()")
    below = draft.fold
    members = [
        aggregate_of(field, aggregate, draft, over_table=below is not None)
        for field, aggregate in aggregates.items()
    ]
    for member in members if expiry is not None else ():
        with blaming_field(member.name):
            _need_merge(member.aggregate, "the sessions of a key with ttl= are")
    row = _result_row(draft, members)
    return Fold(
        name,
        draft.root if below is None else below.name,
        draft.partition,
        draft.key,
        draft.window,
        tuple(members),
        (),
        row,
        draft.fields,
        draft.below(name),
        draft.at,
        draft.partitions,
        draft.via_log,
        expiry,
    )


def aggregate_of(field: str, aggregate: Any, draft: Draft, *, over_table: bool) -> FoldAggregate:
    """Return an aggregate over the draft's rows. Raises PlanError."""
    with blaming_field(field):
        _need_aggregate(aggregate)
        if aggregate.ordered and over_table and not aggregate.by_value:
            raise PlanError(
                f"{aggregate.name} takes rows in the order of time, but the rows of a table are "
                "replaced, not ordered: use arg_max, arg_min, or fold the events instead"
            )
        if aggregate.ordered and not aggregate.by_value:
            need_time(draft, f"{aggregate.name} takes rows in the order of event time")
        types = types_of(draft.fields)
        what = f"an input of {aggregate.name}"
        inputs = tuple(as_column(value, what).bind(types) for value in aggregate.inputs)
        if aggregate.by_value and draft.fold is not None:
            # Rows of a table have no place in time: their key decides between equal values.
            inputs += tuple(col(field.name).bind(types) for field in draft.fold.row_key)
        bound = aggregate.bind(tuple(item.type for item in inputs))
        bound.state(retractable=over_table)  # raises PlanError if it cannot retract
        if draft.window is not None and isinstance(draft.window.assigner, Session):
            _need_merge(aggregate, "sessions are")
        return FoldAggregate(field, aggregate, inputs, bound)


def _expiry(draft: Draft, ttl: Any) -> WindowSpec | None:
    """Return the sessions of a fold's keys; None: they do not end."""
    if ttl is None:
        return None
    if draft.is_table:
        raise PlanError(
            "rows of a table from a topic end with their deletions: leave ttl= out, or give it to "
            ".table(..., time=..., ttl=...)"
        )
    if draft.fold is not None:
        raise PlanError(
            "ttl= ends keys by event time, which rows of a table have not: give it to the fold of "
            f"events below {draft.fold.name!r}"
        )
    if draft.window is not None:
        raise PlanError("the windows end already, and their rows with them: leave ttl= out")
    need_time(draft, "ttl= ends keys by event time")
    return ending_after(ttl, 0 if draft.is_settled else LATENESS_DEFAULT)


def ending_after(
    ttl: str | int, lateness: str | int, future: str | int = FUTURE_TOLERANCE_DEFAULT
) -> WindowSpec:
    """Return the sessions of keys that end so long after their last event. Raises PlanError."""
    ttl_ns = duration_ns(ttl, "ttl")
    if not ttl_ns:
        raise PlanError(f"ttl must be longer than zero, not {shown(ttl)}")
    trigger = OnEveryElement()
    return window_spec(
        "", Session(f"{ttl_ns}ns"), trigger=trigger, lateness=lateness, future=future
    )


def _need_merge(aggregate: Aggregate, what: str) -> None:
    if not aggregate.merges:
        raise PlanError(
            f"{aggregate} cannot be merged, but {what}, when an event joins two of them: "
            "give it merge=, which makes one state of two, or use Tumbling or Sliding windows"
        )


def _result_row(draft: Draft, members: Sequence[FoldAggregate]) -> Fields:
    window = WINDOW_FIELD_NAMES if draft.window is not None else ()
    identity = (*draft.key, *(Field(name, Int64()) for name in window))
    taken = [field.name for field in identity]
    for name in window:
        if name in (field.name for field in draft.key):
            raise PlanError(
                f"the key {name!r} has the name of a window field: rename it with .derive(...)"
            )
    results = results_of(members)
    for member in members:
        for key in draft.key:
            if key.name.startswith(f"{member.name}."):
                raise PlanError(
                    f"the key {key.name!r} is called like state of the aggregate {member.name!r}: "
                    "rename one of them"
                )
    for result in results:
        check_new_field(result.name, taken)
        check_result_field(result.name)
        taken.append(result.name)
    return (*identity, *results)


def results_of(members: Sequence[FoldAggregate]) -> list[Field]:
    """Return the fields that aggregates make."""
    return [
        Field(name, result)
        for member in members
        for name, (_, result) in zip(
            member.aggregate.result_names(member.name, member.bound),
            member.bound.results,
            strict=True,
        )
    ]
