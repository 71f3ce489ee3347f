"""A key of a scan with timers, from row to row: its state, and the timers called in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.engine.operators.rows import refusal_of
from ripple.engine.operators.state_step import timer_calls
from ripple.model.pipeline.timers import TIMERS_MAX
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Container

    from ripple.engine.operators.position_step import PositionStep
    from ripple.engine.operators.state_step import StateStep, Stored
    from ripple.model.pipeline.waiting_nodes import StepScan

TOO_MANY = f"timers were called {TIMERS_MAX - 1} times since the last row of the key: they are off"


class Fired(NamedTuple):
    """A row of a timer, with its place; its result is a text, the reason, if the timer failed."""

    time_ns: int
    place: int
    result: Stored | str


class Run(NamedTuple):
    """A key after a row, or after timers behind it.

    row_ns: the time of its last row, NONE without one. now_ns: of that, or of the last timer called
    since. fired: how many were. last: the newest result. failed: when and why calls failed, of the
    row and the timers before it, or of the timers behind. For a table of all rows: place, of the
    last row; result, of the row, or the reason of its failure; made, the rows of these timers.
    """

    state: Stored
    row_ns: int = watermark.NONE
    now_ns: int = watermark.NONE
    fired: int = 0
    last: Stored | None = None
    failed: tuple[tuple[int, str], ...] = ()
    place: int = 0
    result: Stored | str | None = None
    made: tuple[Fired, ...] = ()


class Timers:
    """The rules of a scan's timers: which is next, and what it makes of a state."""

    def __init__(self, node: StepScan) -> None:
        self._node = node
        names = [field.name for field in node.state_fields]
        self.places = [names.index(name) for name, _ in node.timers]
        """Of the timers in a state, by their numbers."""
        self.every = range(len(self.places))
        self._names = [name for name, _ in node.timers]
        self._calls = timer_calls(node)
        self._ttl_ns = node.ttl_ns

    def is_over(self, row_ns: int, time_ns: int) -> bool:
        """Return whether a state has ended by then; row_ns: of its last row, NONE without one."""
        if self._ttl_ns is None or row_ns == watermark.NONE:
            return False
        return time_ns - row_ns >= self._ttl_ns

    def next(self, state: Stored, now_ns: int, of: Container[int]) -> tuple[int, int] | None:
        """Return the time of the next timer, and which it is; of: of these.

        now_ns: the time of the last row, or of the last timer called since.
        """
        after_ns = now_ns + 1
        return min(
            (
                (max(state[at], after_ns), number)
                for number, at in enumerate(self.places)
                if state[at] is not None and number in of
            ),
            default=None,
        )

    def set_in(self, state: Stored) -> set[int]:
        """Return which timers are set."""
        return {number for number, at in enumerate(self.places) if state[at] is not None}

    def call(
        self, state: Stored, time_ns: int, number: int, fired: int
    ) -> tuple[Stored, Stored | None, str | None]:
        """Return the state after a timer, its result, and why the call failed; None for either.

        fired: how many were called since the last row, with this one.
        """
        if fired >= TIMERS_MAX:
            return self.off(state), None, TOO_MANY
        before = _without(state, {self.places[number]})
        try:
            return (*self._calls[number](before, (time_ns,)), None)
        except (Exception, SystemExit) as error:  # any error of a user's function
            reason = refusal_of(self._node.name, error)
            return before, None, f"timer {self._names[number]!r}: {reason}"

    def off(self, state: Stored) -> Stored:
        """Return a state with all timers off."""
        return _without(state, self.places)


class TimedStep:
    """Calls a step for each row of a key, and before it the timers that are due by then."""

    def __init__(self, node: StepScan, step: StateStep | PositionStep, initial: Stored) -> None:
        """Call the functions of ``node``. initial: the state of a new key."""
        self._node, self._timers, self._step = node, Timers(node), step.call
        self._has_rows = not node.is_last
        self.begin = Run(initial)

    def called(self, before: tuple[Any, ...], given: Any) -> tuple[tuple[Run], Run]:
        """Return a key after a row, twice: as the only value of its state, and as its result.

        before: with a ``Run``. given: the values of the row, its time and its place.
        """
        row, time_ns, place = given
        run = self.until(before[0], time_ns)
        made = run.made
        if self._timers.is_over(run.row_ns, time_ns):
            run = self.begin
        state, last, failed = run.state, run.last, run.failed
        result: Stored | str | None
        try:
            state, result = self._step(state, row)
        except (Exception, SystemExit) as error:  # any error of a user's function
            result = refusal_of(self._node.name, error)
            failed += ((time_ns, result),)
        else:
            last = last if result is None else result
        after = Run(state, time_ns, time_ns, 0, last, failed)
        if self._has_rows:
            after = after._replace(last=None, failed=(), place=place, result=result, made=made)
        return (after,), after

    def until(self, before: Run, until_ns: int) -> Run:
        """Return the key after the timers that are due up to a time."""
        run, made = before._replace(failed=(), made=()), list[Fired]()
        while (due := self._next(run)) is not None and due[0] <= until_ns:
            run = self._fire(run, *due, made)
        return run._replace(made=tuple(made)) if made else run

    def ended(self, before: Run) -> Run:
        """Return the key after each timer that is set, of which none is set any more."""
        run, made = before._replace(failed=(), made=()), list[Fired]()
        left = self._timers.set_in(run.state)
        while (due := self._next(run, left)) is not None:
            left.remove(due[1])
            run = self._fire(run, *due, made)
        return run._replace(state=self._timers.off(run.state), made=tuple(made))

    def next_ns(self, run: Run) -> int | None:
        """Return when the next timer is due, None for never."""
        due = self._next(run)
        return None if due is None else due[0]

    def _next(self, run: Run, of: Container[int] | None = None) -> tuple[int, int] | None:
        """Return the time of the next timer before the state ends, and which it is; of: of these.

        None for no such timer.
        """
        due = self._timers.next(run.state, run.now_ns, self._timers.every if of is None else of)
        return None if due is None or self._timers.is_over(run.row_ns, due[0]) else due

    def _fire(self, run: Run, time_ns: int, number: int, made: list[Fired]) -> Run:
        """Return the key after a timer; add its row."""
        fired = run.fired + 1
        state, result, why = self._timers.call(run.state, time_ns, number, fired)
        after = run._replace(state=state, now_ns=time_ns - 1, fired=fired)
        shown = result if why is None else why
        if self._has_rows:
            if shown is not None:
                made.append(Fired(time_ns - 1, run.place + fired, shown))
            return after
        last = run.last if result is None else result
        failed = run.failed if why is None else (*run.failed, (time_ns - 1, why))
        return after._replace(last=last, failed=failed)


def _without(state: Stored, off: Container[int]) -> Stored:
    """Return a state with None in some places: the timers there are off."""
    return tuple(None if at in off else value for at, value in enumerate(state))
