"""Nodes that wait for answers, of ``.ask(...)``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import check_new_field, record_of
from ripple.model.pipeline.nodes import types_of
from ripple.model.pipeline.waiting_nodes import Ask
from ripple.model.window.duration import duration_ns

if TYPE_CHECKING:
    from ripple.model.pipeline.draft import Draft
    from ripple.model.schema.types import Schema

CONCURRENCY_MAX = 1024
RETRIES_MAX = 1000
TIMEOUT_NS_MIN = 10**6


def ask_of(
    name: str,
    draft: Draft,
    function: Callable[[Any], Any],
    *,
    into: type | Schema,
    timeout: str | int,
    retries: int,
    concurrency: int,
) -> Ask:
    """Return the node of an ``.ask(...)`` over the draft's rows.

    Raises PlanError for rows behind a node that waits, and for arguments at fault.
    """
    if draft.waits:
        raise PlanError(
            f"answers belong to records, and {draft.root!r} gives rows later: ask before it"
        )
    if not _is_async(function):
        raise PlanError(
            f"it takes an async function of a row, as async def rate(row), not {shown(function)}"
        )
    cls, schema = record_of(into, "into")
    types = types_of(draft.fields)
    for field in schema.fields:
        check_new_field(field.name, types)
    timeout_ns = duration_ns(timeout, "timeout", of_wall_clock=True)
    if timeout_ns < TIMEOUT_NS_MIN:
        raise PlanError(
            f"timeout is {shown(timeout)}, and no call would have an answer: it must be at least "
            "1ms, as in timeout='10s'"
        )
    _check_number("retries", retries, 0, RETRIES_MAX)
    _check_number("concurrency", concurrency, 1, CONCURRENCY_MAX)
    return Ask(
        name,
        function,
        draft.row,
        cls,
        schema,
        timeout_ns,
        retries,
        concurrency,
        draft.fields,
        draft.below(name),
        draft.at,
    )


def _is_async(function: object) -> bool:
    """Return whether a call of ``function`` gives an awaitable."""
    call = getattr(function, "__call__", None)  # noqa: B004 - of an object, which may be async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _check_number(what: str, given: object, least: int, most: int) -> None:
    if type(given) is not int or not least <= given <= most:
        raise PlanError(
            f"{what} is {shown(given)}: it must be a whole number from {least} to {most}"
        )
