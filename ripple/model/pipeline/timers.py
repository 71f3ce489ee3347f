"""The timers of a scan: fields of its state that hold times, and the functions called then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import type_text
from ripple.model.pipeline.draft import need_records
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX, Explode, FlatMap, reads_of, type_of
from ripple.model.pipeline.waiting_nodes import BookScan, IntervalJoin, RunningScan, StepScan
from ripple.model.running.functions import Bar
from ripple.model.schema.types import Int, Int64, Option

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.model.pipeline.draft import Draft
    from ripple.model.pipeline.nodes import EventNode, Fields

    Timer = tuple[str, Callable[[Any, int], Any]]

TIMERS_MAX = FLAT_ROWS_MAX  # calls of timers between two rows of a key: their rows have its indexes


def timers_of(
    given: Mapping[str, Callable[[Any, int], Any]] | None,
    state: tuple[type, Fields, tuple[Any, ...]],
    draft: Draft,
    *,
    is_last: bool,
) -> tuple[Timer, ...]:
    """Return the timers of a scan over the draft's rows. Raises PlanError.

    state: its class, its fields, and their defaults. is_last: whether it shows the last row of a
    key, so that no row of a timer needs a place.
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not given:
        raise PlanError(
            "timers takes fields of the state, each with a function of the state and the time, as "
            f"{{'closes': close}}, not {shown(given)}"
        )
    cls, fields, initial = state
    defaults = dict(zip((one.name for one in fields), initial, strict=True))
    types = {one.name: type_of(one) for one in fields}
    for name, function in given.items():
        if name not in types:
            raise PlanError(
                f"timers: {shown(name)} is no field of {cls.__name__}: write {name}: rp.Timestamp "
                "| None = None there"
            )
        of = types[name]
        if not isinstance(of, Option) or not isinstance(of.of, Int | Int64):
            raise PlanError(
                f"timers: {cls.__name__}.{name} is {type_text(of)}, and a timer is a time in "
                "nanoseconds since 1970, or none: write rp.Timestamp | None"
            )
        if defaults[name] is not None:
            raise PlanError(
                f"timers: {cls.__name__}.{name} has the default {defaults[name]}, and a new state "
                "waits for no time: write = None"
            )
        if not callable(function):
            raise PlanError(
                f"timers: {name!r} takes a function of the state and the time, not "
                f"{shown(function)}"
            )
    if is_last:
        return tuple(given.items())
    need_records(
        draft,
        "rows of timers need numbers of their own: say show='last' in place of settled=True, or "
        "write the final rows to a log, and scan that in a pipeline of its own",
    )
    _need_single_rows(draft)
    return tuple(given.items())


def _need_single_rows(draft: Draft) -> None:
    """Raise PlanError where a record may have several rows: theirs are told apart by an index."""
    steps = {one.name: one for one in draft.steps}
    left, seen = [draft.at], set[str]()
    while left:
        name = left.pop()
        step = steps.get(name)
        if name in seen or (step is not None and _makes_several(step)):
            where = f"{name!r} gives" if name not in seen else f"the streams of {name!r} give"
            raise PlanError(
                f"timers: {where} several rows of a record, and rows of timers would have the "
                "numbers of these: scan what is before it, or write its rows to a log, and scan "
                "that in a pipeline of its own"
            )
        seen.add(name)
        left += () if step is None else reads_of(step)


def _makes_several(step: EventNode) -> bool:
    if isinstance(step, RunningScan):
        return any(isinstance(of, Bar) and of.split for _, of, _ in step.columns)
    if isinstance(step, BookScan):
        return step.book.show == "levels"
    if isinstance(step, StepScan):
        return bool(step.timers)
    return isinstance(step, FlatMap | Explode | IntervalJoin)
