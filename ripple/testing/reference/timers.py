"""The timers of a scan, one call after the other, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.model.pipeline.timers import TIMERS_MAX
from ripple.testing.reference.interpreter import END_NS
from ripple.testing.reference.scans import States, applied, called, is_over
from ripple.testing.reference.steps import RefusedRow

if TYPE_CHECKING:
    from ripple.model.pipeline.waiting_nodes import StepScan
    from ripple.testing.reference.held import Held
    from ripple.testing.reference.steps import Row

    Result: TypeAlias = tuple[Held, Row | RefusedRow | None]
    Key: TypeAlias = tuple[Any, ...]


@dataclass
class _Position:
    """How far a key has come: its last row, the time of that or of a timer since, their number."""

    row: Held
    now_ns: int
    fired: int = 0


class Timers:
    """The keys of a scan with timers."""

    def __init__(self, node: StepScan) -> None:
        self._node = node
        self._names = [name for name, _ in node.timers]
        self._states: States = {}
        self._positions: dict[Key, _Position] = {}

    def take(
        self, due: Iterable[tuple[Held, Row]], mark_ns: int, open_ns: int | None
    ) -> list[Result]:
        """Return the results of final rows and timers up to a mark, in the order of time and place.

        due: the rows, each with the values that count. open_ns: the mark, for which the end of
        inputs is no time.
        """
        found = self.before(due)
        for key in self._positions:
            if open_ns is not None:
                found += self._fired(key, open_ns)
            if mark_ns == END_NS:
                found += self._ended(key)
        return sorted(found, key=lambda one: (one[0].time_ns, one[0].place))

    def before(
        self, due: Iterable[tuple[Held, Row]], *, without_ended: bool = False
    ) -> list[Result]:
        """Return the results of rows, and of the timers before each of its key.

        without_ended: without those of states that have ended.
        """
        found: list[Result] = []
        for row, values in due:
            fired = list(self._fired(row.key, row.time_ns))
            if without_ended and self._is_over(row.key, row.time_ns):
                fired = []
            found += fired
            found.append((row, applied(self._node, self._states, row.key, row.time_ns, values)))
            self._positions[row.key] = _Position(row, row.time_ns)
        return found

    def _is_over(self, key: Key, time_ns: int) -> bool:
        return key in self._states and is_over(self._node, self._states[key][0], time_ns)

    def ended(self, until_ns: int | None, mark_ns: int | None) -> list[Result]:
        """Return the results of timers up to a time, and of those set then, for the end.

        mark_ns: up to where states have ended.
        """
        if mark_ns is not None:
            each = self._positions.items()
            self._positions = {key: of for key, of in each if not self._is_over(key, mark_ns)}
        return self.take([], END_NS, until_ns)

    def _fired(self, key: Key, until_ns: int) -> Iterator[Result]:
        """Yield the results of the timers of a key up to a time."""
        while (due := self._next(key, self._names)) is not None and due[0] <= until_ns:
            yield self._called(key, *due)

    def _ended(self, key: Key) -> Iterator[Result]:
        """Yield the result of each timer that is set at the end of inputs; none is set any more."""
        state = self._states[key][1] or {}
        left = [name for name in self._names if state.get(name) is not None]
        while (due := self._next(key, left)) is not None:
            left.remove(self._names[due[1]])
            yield self._called(key, *due)
        last_ns, state = self._states[key]
        self._states[key] = last_ns, (state or {}) | dict.fromkeys(self._names)

    def _next(self, key: Key, names: list[str]) -> tuple[int, int] | None:
        """Return when the next of some timers is due, and its number."""
        if key not in self._positions:
            return None
        last_ns, state = self._states[key]
        times = {number: (state or {}).get(name) for number, name in enumerate(self._names)}
        after_ns = self._positions[key].now_ns + 1
        due = min(
            (
                (max(time_ns, after_ns), number)
                for number, time_ns in times.items()
                if time_ns is not None and self._names[number] in names
            ),
            default=None,
        )
        return None if due is None or is_over(self._node, last_ns, due[0]) else due

    def _called(self, key: Key, time_ns: int, number: int) -> Result:
        """Call a timer; return its result, with its place."""
        of = self._positions[key]
        of.now_ns, of.fired = time_ns - 1, of.fired + 1
        *record, index = of.row.place
        shown = replace(of.row, time_ns=of.now_ns, place=(*record, index + of.fired))
        last_ns, state = self._states[key]
        name, function = self._node.timers[number]
        if of.fired >= TIMERS_MAX:
            self._states[key] = last_ns, state | dict.fromkeys(self._names)
            return shown, RefusedRow(self._node.name, "too many timers since the last row")
        after = before = state | {name: None}
        made: Row | RefusedRow | None
        try:
            after, made = called(self._node, function, before, time_ns, of.row.row)
        except RefusedRow as refused:
            made = refused
        self._states[key] = last_ns, after
        return shown, made
