"""True time, and turns: one timeline for all processes of a simulated world."""

from __future__ import annotations

import heapq
import sys
from asyncio import events
from typing import TYPE_CHECKING

from ripple.testing.sim.effects import Crash

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ripple.testing.sim.chance import Chance
    from ripple.testing.sim.loop import SimHandle, SimLoop

STEPS_MAX = 1_000_000
TIME_NS_MAX = 24 * 3600 * 1_000_000_000
NEVER_NS = 1 << 62


class SimulationStuckError(AssertionError):
    """The code under test waits for an event that never comes, or never ends."""


class Timeline:
    """The loops that take turns, in the order in which they were made.

    ``chance`` decides which loop runs where several can. When none can, time jumps to the
    next timer of any: computing takes no time.
    """

    def __init__(self, chance: Chance) -> None:
        self.now_ns = 0
        self.is_running = False
        self.current: SimLoop | None = None
        self.announced: asyncio.AbstractEventLoop | None = (
            None  # the loop that asyncio takes for running
        )
        self._chance = chance
        self._loops: list[SimLoop] = []
        # By true time; then by when each is due on the clock of its loop, and in order.
        self._timers: list[tuple[int, int, int, SimLoop, SimHandle]] = []
        self._timers_made = 0

    def add(self, loop: SimLoop) -> None:
        """Let a loop take turns."""
        self._loops.append(loop)

    def remove(self, loop: SimLoop) -> None:
        """Let it take no more."""
        self._loops.remove(loop)
        self._timers = [timer for timer in self._timers if timer[3] is not loop]
        heapq.heapify(self._timers)

    def call_at(self, due_ns: int, when_ns: int, loop: SimLoop, handle: SimHandle) -> None:
        """Give it to its loop at a true time, which is ``when_ns`` on the clock of that."""
        self._timers_made += 1
        heapq.heappush(self._timers, (due_ns, when_ns, self._timers_made, loop, handle))

    def run(self, done: Callable[[], bool]) -> None:
        """Take steps until ``done``. Errors of ``after_step`` pass through."""
        self.is_running = True
        before = self.announced = events._get_running_loop()
        # Where a test runs in a loop itself, that one would wait for the generators of this world.
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)
        try:
            steps = 0
            while not done():
                steps += 1
                if steps > STEPS_MAX:
                    raise SimulationStuckError(f"not finished after {STEPS_MAX} steps")
                self._step()
        finally:
            self.is_running = False
            self.announce(before)
            sys.set_asyncgen_hooks(*hooks)

    def announce(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Say which loop runs, if it is another one: asyncio asks the system each time."""
        if self.announced is not loop:
            events._set_running_loop(loop)
            self.announced = loop

    def _step(self) -> None:
        while True:
            now_ns = self.now_ns
            ready = [
                loop
                for loop in self._loops
                if loop.ready and not loop.paused and loop.free_ns <= now_ns
            ]
            if ready:
                break
            self._wait()
        loop = ready[0] if len(ready) == 1 else self._chance.pick(ready)
        self.current = loop
        try:
            loop.step()
        except Crash:
            pass  # the loop's owner knows, and says so below
        finally:
            self.current = None
        loop.after_step()

    def _wait(self) -> None:
        """Jump to the next timer, or to when a slow loop is free; take all timers due then."""
        timers = self._timers
        while timers and timers[0][4]._cancelled:
            heapq.heappop(timers)
        due_ns = timers[0][0] if timers else NEVER_NS
        for loop in self._loops:
            if loop.ready and not loop.paused and loop.free_ns < due_ns:
                due_ns = loop.free_ns
        if due_ns == NEVER_NS:
            waiting = [text for loop in self._loops for text in loop.waiting()]
            raise SimulationStuckError(f"nothing will ever happen; waiting: {', '.join(waiting)}")
        now_ns = self.now_ns = max(self.now_ns, due_ns)
        if now_ns > TIME_NS_MAX:
            raise SimulationStuckError(
                f"not finished after {TIME_NS_MAX / 1e9:.0f} simulated seconds"
            )
        while timers and timers[0][0] <= now_ns:
            _, _, _, loop, handle = heapq.heappop(timers)
            if not handle._cancelled:
                loop.due(handle)
