"""The rows of a ``.scan(...)`` one by one, in plain Python, with new objects for each call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.model.pipeline.waiting_nodes import (
    LIST_MAX,
    BookScan,
    LastScan,
    PositionScan,
    RunningScan,
    StepScan,
)
from ripple.model.records.instances import instances_of
from ripple.testing.reference.books import with_book
from ripple.testing.reference.interpreter import results_of
from ripple.testing.reference.positions import positioned
from ripple.testing.reference.running import with_running
from ripple.testing.reference.steps import TIME_END_NS, RefusedRow, checked, given_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.model.pipeline.waiting_nodes import Scan
    from ripple.testing.reference.steps import Row

States: TypeAlias = dict[tuple[Any, ...], tuple[int, Any]]
"""Per key the time of its last row, and the state after it."""


def is_over(node: Scan, last_ns: int, time_ns: int) -> bool:
    """Return whether the state of a key with its last row at ``last_ns`` has ended."""
    return node.ttl_ns is not None and time_ns - last_ns >= node.ttl_ns


def applied_message(
    node: BookScan, states: States, key: tuple[Any, ...], time_ns: int, row: Row
) -> tuple[list[RefusedRow], list[Row]]:
    """Apply a message to the book of its key; return why it failed, and the rows made of it."""
    last_ns, book = states.get(key, (time_ns, None))
    if is_over(node, last_ns, time_ns):
        book = None
    book, lost, made = with_book(node, book, row)
    states[key] = time_ns, book
    return lost, made


def applied(
    node: Scan, states: States, key: tuple[Any, ...], time_ns: int, row: Row
) -> Row | RefusedRow | None:
    """Apply a row to the state of its key; return the row made of it, None for none, or why not."""
    last_ns, state = states.get(key, (time_ns, None))
    if is_over(node, last_ns, time_ns):
        state = None
    made: Row | RefusedRow | None
    try:
        if isinstance(node, PositionScan):
            state, made = positioned(node, state or {}, row)
        elif isinstance(node, StepScan):
            state, made = _scanned(node, state or {}, row)
        else:
            state = [*(state or ()), (time_ns, row)]
            if isinstance(node, LastScan):
                made = with_last(node, state)
            else:
                assert isinstance(node, RunningScan), "no other scans"
                made = with_running(node, state)
    except RefusedRow as refused:
        made = refused
    states[key] = time_ns, state
    return made


def with_last(node: LastScan, rows: Sequence[tuple[int, Row]]) -> Row:
    """Return the last of the rows of a key with the aggregates over the last ones.

    Raises RefusedRow if one cannot be computed.
    """
    last = [row for _, row in rows[-node.rows :]]
    places = [(time_ns, at) for at, (time_ns, _) in enumerate(rows)][-node.rows :]
    made = dict(last[-1])
    for member in node.aggregates:
        made |= results_of(member, last, places, node)
    return made


def _scanned(
    node: StepScan, before: Mapping[str, Any], row: Row
) -> tuple[dict[str, Any], Row | None]:
    """Return the state after a row, and the row that is made of it, if one is."""
    given = given_of(row, node.fields_in)
    instance = instances_of(node.row, tuple(given))(tuple(given.values()))
    return called(node, node.function, before, instance, row)


def called(
    node: StepScan,
    function: Callable[[Any, Any], Any],
    before: Mapping[str, Any],
    of: Any,
    key: Row,
) -> tuple[dict[str, Any], Row | None]:
    """Return the state after a call with it and ``of``, and the row that is made, if one is.

    before: the state by field, {} for a new one. key: has the fields of the key. Raises RefusedRow
    where the function fails, or a value does not fit; the state then stays.
    """
    first = dict(zip((one.name for one in node.state_fields), node.initial, strict=True))
    of_state: Any = type(node.state.__name__, (node.state,), {"__setattr__": object.__setattr__})
    state = object.__new__(of_state)
    for name, value in given_of({**first, **before}, node.state_fields).items():
        setattr(state, name, list(value) if isinstance(value, list) else value)
    try:
        result = function(state, of)
        after = {name: getattr(state, name) for name in first}
        made = None
        if result is not None:
            of = result.__getitem__ if isinstance(result, dict) else partial(getattr, result)
            wanted = [one for one in node.schema.fields if one.name not in node.kept]
            made = {one.name: checked(of(one.name), one) for one in wanted}
            made |= {name: key[name] for name in node.kept}
        for name in first:
            object.__delattr__(state, name)  # raises AttributeError where the step deleted it
        if extra := getattr(state, "__dict__", None):
            raise TypeError(f"the step sets {sorted(extra)}")
        if any(isinstance(one, dict) and len(one) > LIST_MAX for one in after.values()):
            raise TypeError("a map of the state has too many members")
        after = {one.name: checked(after[one.name], one) for one in node.state_fields}
        if any(isinstance(one, list) and len(one) > LIST_MAX for one in after.values()):
            raise TypeError("a list of the state has too many items")
        if any(abs(after[name] or 0) >= TIME_END_NS for name, _ in node.timers):
            raise TypeError("a timer is beyond the times of events")
    except Exception as error:  # any error of a user's function, or a value that does not fit
        raise RefusedRow(node.name, f"{type(error).__name__}: {error}") from error
    return after, made
