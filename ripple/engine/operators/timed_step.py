"""A key of a scan with timers, from row to row: its state, and the timers called in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.engine.operators.rows import reason_of
from ripple.engine.operators.state_step import timer_calls
from ripple.model.pipeline.timers import TIMERS_MAX
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Container

    from ripple.engine.operators.position_step import PositionStep
    from ripple.engine.operators.state_step import StateStep, Stored
    from ripple.model.pipeline.waiting_nodes import StepScan

TOO_MANY = f"timers were called {TIMERS_MAX - 1} times since the last row of the key: they are off"


class Run(NamedTuple):
    """A key after a row, or after timers behind it.

    row_ns: the time of its last row, NONE without one. now_ns: of that, or of the last timer called
    since. fired: how many were. last: the newest result. failed: when and why calls failed, of the
    row and the timers before it, or of the timers behind.
    """

    state: Stored
    row_ns: int = watermark.NONE
    now_ns: int = watermark.NONE
    fired: int = 0
    last: Stored | None = None
    failed: tuple[tuple[int, str], ...] = ()


class TimedStep:
    """Calls a step for each row of a key, and before it the timers that are due by then."""

    def __init__(self, node: StepScan, step: StateStep | PositionStep, initial: Stored) -> None:
        """Call the functions of ``node``. initial: the state of a new key."""
        names = [field.name for field in node.state_fields]
        self._timers = [names.index(name) for name, _ in node.timers]
        self._names = [name for name, _ in node.timers]
        self._calls, self._step = timer_calls(node), step.call
        self._ttl_ns = node.ttl_ns
        self.begin = Run(initial)

    def called(self, before: tuple[Any, ...], given: Any) -> tuple[tuple[Run], Run]:
        """Return a key after a row, twice: as the only value of its state, and as its result.

        before: with a ``Run``. given: the values of the row, and its time.
        """
        row, time_ns = given
        run = self.until(before[0], time_ns)
        if self._is_over(run, time_ns):
            run = self.begin
        state, last, failed = run.state, run.last, run.failed
        try:
            state, result = self._step(state, row)
        except Exception as error:  # any error of a user's function
            failed += ((time_ns, reason_of(error)),)
        else:
            last = last if result is None else result
        after = Run(state, time_ns, time_ns, 0, last, failed)
        return (after,), after

    def until(self, before: Run, until_ns: int) -> Run:
        """Return the key after the timers that are due up to a time."""
        run, every = before._replace(failed=()), range(len(self._timers))
        while (due := self._next(run, every)) is not None and due[0] <= until_ns:
            if self._is_over(run, due[0]):
                break
            run = self._fire(run, *due)
        return run

    def ended(self, before: Run) -> Run:
        """Return the key after each timer that is set, of which none is set any more."""
        run = before._replace(failed=())
        left = {number for number, at in enumerate(self._timers) if run.state[at] is not None}
        while (due := self._next(run, left)) is not None and not self._is_over(run, due[0]):
            left.remove(due[1])
            run = self._fire(run, *due)
        return run._replace(state=_without(run.state, self._timers))

    def next_ns(self, run: Run) -> int | None:
        """Return when the next timer is due, None for never."""
        due = self._next(run, range(len(self._timers)))
        return None if due is None or self._is_over(run, due[0]) else due[0]

    def _is_over(self, run: Run, time_ns: int) -> bool:
        if self._ttl_ns is None or run.row_ns == watermark.NONE:
            return False
        return time_ns - run.row_ns >= self._ttl_ns

    def _next(self, run: Run, of: Container[int]) -> tuple[int, int] | None:
        """Return the time of the next timer, and which it is; of: of these."""
        after_ns = run.now_ns + 1
        return min(
            (
                (max(run.state[at], after_ns), number)
                for number, at in enumerate(self._timers)
                if run.state[at] is not None and number in of
            ),
            default=None,
        )

    def _fire(self, run: Run, time_ns: int, number: int) -> Run:
        """Return the key after a timer."""
        has_room = run.fired + 1 < TIMERS_MAX
        off = {self._timers[number]} if has_room else self._timers
        state, last, why = _without(run.state, off), run.last, None if has_room else TOO_MANY
        if has_room:
            try:
                state, result = self._calls[number](state, (time_ns,))
                last = last if result is None else result
            except Exception as error:  # any error of a user's function
                why = f"timer {self._names[number]!r}: {reason_of(error)}"
        failed = run.failed if why is None else (*run.failed, (time_ns - 1, why))
        return Run(state, run.row_ns, time_ns - 1, run.fired + 1, last, failed)


def _without(state: Stored, off: Container[int]) -> Stored:
    """Return a state with None in some places: the timers there are off."""
    return tuple(None if at in off else value for at, value in enumerate(state))
