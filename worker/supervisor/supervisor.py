"""The supervisor of a worker: membership, probes, processes. It computes nothing.

    version of the chain -> sent to each process -> their reports -> the worker's heartbeat

When told to stop: Draining, not ready, while its partitions move to other workers, as long as there
is time; then Stopping, which completes the rest with final checkpoints; then the worker leaves. If
any of this fails, the next owners recover.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.control.assignment import Report
from worker import messages
from worker.supervisor.slot import Slot
from worker.supervisor.state import STOP_PATHS, Lifecycle, State
from worker.supervisor.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.control.assignment import Assignment, Line
    from ripple.world.ports import Clock
    from worker.supervisor.membership import Membership
    from worker.supervisor.slot import Spawn

LEAVE_S = 2.0
NS = 1_000_000_000


class Supervisor:
    """One worker."""

    def __init__(
        self,
        worker_id: str,
        processes: int,
        spawn: Spawn,
        clock: Clock,
        *,
        hung_after_s: float,
        say: Callable[[str], None],
        warn: Callable[[str], None] | None = None,
        inputs: tuple[tuple[str, int], ...] = (),
        watch: Watch | None = None,
        lines: Callable[[], tuple[Line, ...]] = tuple,
    ) -> None:
        """Start nothing yet.

        inputs: how many partitions each has, until the processes report it. watch: reports its
        alerts; the caller runs it. lines: returns the recent warnings and errors of its log.
        """
        self.watch = watch or Watch(clock)
        self.lifecycle = Lifecycle(worker_id)
        self.assignment: Assignment | None = None
        self.incarnation: int | None = None
        self.membership: Membership | None = None
        self._clock = clock
        self._say = say
        self._inputs = inputs
        self._lines = lines
        self._changed = asyncio.Event()
        self._is_vain = asyncio.Event()
        self._is_stopping = False
        self._warn = warn or say
        self._stored: dict[tuple[int, int, int], int] = {}  # what was last reported to others
        self.slots = [
            Slot(
                number,
                spawn,
                clock,
                hung_after_s=hung_after_s,
                changed=self._look,
                exited=self._exited,
                say=say,
            )
            for number in range(processes)
        ]
        for slot in self.slots:
            slot.greeting = lambda slot=slot: self._greeting(slot)  # type: ignore[misc]

    # Callbacks of the membership.

    def report(self) -> Report:
        """Return the merged report of all processes."""
        reports = {slot.number: slot.report for slot in self.slots if slot.report is not None}
        starts = tuple(slot.start for slot in self.slots)
        if not reports:
            return Report(
                starts=starts,
                inputs=self._inputs,
                alerts=self.watch.firing,
                lines=messages.newest(self._lines()),
            )
        return messages.together(reports, starts, self.watch.firing, self._lines())

    def heard(self, assignment: Assignment, incarnation: int | None) -> None:
        """Take a version of the assignment; None: the worker is no member of it."""
        self.assignment, self.incarnation = assignment, incarnation
        for slot in self.slots:
            slot.send(self._assigned(slot, assignment))
        self._look()

    def store(self) -> None:
        """Let all processes store checkpoints."""
        for slot in self.slots:
            slot.send(messages.Store())

    async def inspected(self) -> list[dict[str, object]]:
        """Return the live graph of each partition, as its process reports it."""
        found = await asyncio.gather(*(slot.inspected() for slot in self.slots))
        return [
            {"partition": partition, "process": f"{self.lifecycle.worker_id}/{slot.number}"} | graph
            for slot, graphs in zip(self.slots, found, strict=True)
            for partition, graph in graphs
        ]

    # Lifecycle.

    async def run(self, membership: Membership, stopping: asyncio.Event) -> None:
        """Run processes as a member until told to stop, or until ``why_vain`` gives a reason."""
        self.membership = membership
        running = [asyncio.ensure_future(slot.run()) for slot in self.slots]
        member = asyncio.ensure_future(membership.run())
        signalled = asyncio.ensure_future(stopping.wait())
        vain = asyncio.ensure_future(self._is_vain.wait())
        try:
            await asyncio.wait(
                [member, signalled, vain, *running], return_when=asyncio.FIRST_COMPLETED
            )
            for task in (member, *running):
                if task.done():
                    task.result()  # a bug of ours: it does not end by itself
        finally:
            signalled.cancel()
            vain.cancel()
            if not (stopping.is_set() or self._is_vain.is_set()):
                for slot in self.slots:
                    slot.kill()
        self._running, self._member = running, member

    async def stop(self, *, move_away_s: float, stop_s: float, reason: str) -> bool:
        """Stop gracefully within so much time; return whether everything was completed."""
        began_ns = self._clock.monotonic_ns()
        self._is_stopping = True
        if self.lifecycle.state is State.ACTIVE and self._is_anything_left():
            self._go(State.DRAINING)
        elif self.lifecycle.state is not State.DRAINING:
            self._go_down()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(move_away_s, stop_s)):
                await self._move_away(reason)
        if self.lifecycle.state is State.DRAINING:
            self._go_down()
        for slot in self.slots:
            slot.stop()
        left_s = stop_s - LEAVE_S - (self._clock.monotonic_ns() - began_ns) / NS
        _, late = await asyncio.wait(self._running, timeout=max(left_s, 0.1))
        for slot in self.slots:
            slot.kill()
        if late:
            self._say(f"{len(late)} processes had to be killed: others recover their partitions")
            await asyncio.wait(late, timeout=LEAVE_S)
        if self.membership is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LEAVE_S):
                    await self.membership.leave()
        self._member.cancel()
        await asyncio.wait([self._member])
        self._go_down()
        return not late

    async def _move_away(self, reason: str) -> None:
        """Ask that all partitions move away, and wait until they have, if others can have them."""
        if self.membership is None or self.incarnation is None:
            return
        draining = asyncio.ensure_future(self.membership.drain(reason))
        abandoned = asyncio.ensure_future(self.membership.abandoned())
        abandoned.add_done_callback(lambda _: self._changed.set())
        try:
            while self._is_anything_left() and not abandoned.done():
                self._changed.clear()
                await self._changed.wait()
            if abandoned.done():
                self._say("no coordinator answers: its partitions are completed here")
        finally:
            draining.cancel()
            abandoned.cancel()
            await asyncio.wait([draining, abandoned])

    def _is_anything_left(self) -> bool:
        """Return whether a partition remains that another worker may get."""
        now = self.assignment
        if now is None or self.incarnation is None:
            return False
        others = [
            one for one in now.members if not one.is_leaving and one.id != self.lifecycle.worker_id
        ]
        is_ours = bool(now.owned_by(self.lifecycle.worker_id))
        return bool(others) and (is_ours or any(slot.standings for slot in self.slots))

    def _go(self, to: State) -> None:
        """Change to a state, and log it."""
        self.lifecycle.go(to)
        self._say(f"is {to.value} now")

    def _go_down(self) -> None:
        """Go one state towards the end."""
        path = STOP_PATHS[self.lifecycle.state]
        if path:
            self._go(path[0])

    def _look(self) -> None:
        """Note a change, and go to the state that follows."""
        self._changed.set()
        self._look_at_checkpoints()
        if self._is_stopping:
            return
        now, state, worker = self.assignment, self.lifecycle.state, self.lifecycle.worker_id
        is_working = any(slot.is_alive for slot in self.slots)
        if state in (State.ACTIVE, State.DRAINING):
            self._look_at_leaving(now, state, is_working=is_working)
        if state not in (State.STARTING, State.RECOVERING):
            return
        if now is None or self.incarnation is None or not is_working:
            return
        live = self.report().live
        owned = now.owned_by(worker)
        if all((partition, now.shares[partition].since) in live for partition in owned):
            self._go(State.ACTIVE)
        elif state is State.STARTING:
            self._go(State.RECOVERING)

    def _look_at_leaving(self, now: Assignment | None, state: State, *, is_working: bool) -> None:
        """Handle the end of being active: its partitions may move away, or be lost."""
        if self.incarnation is None or not is_working:
            self._go(State.FAILED)
            self._go(State.RECOVERING)
        elif now is not None:
            is_leaving = any(
                one.is_leaving for one in now.members if one.id == self.lifecycle.worker_id
            )
            if is_leaving is (state is State.ACTIVE):
                self._go(State.DRAINING if is_leaving else State.ACTIVE)

    def _look_at_checkpoints(self) -> None:
        """Report when each partition has stored a checkpoint since the last such report."""
        stored = {
            (slot.number, slot.start, partition): one.checkpoints
            for slot in self.slots
            for partition, one in slot.standings.items()
            if one.is_live
        }
        if self.membership is None or not stored:
            return
        if all(count > self._stored.get(which, 0) for which, count in stored.items()):
            self._stored = stored
            self.membership.checkpointed()

    def _greeting(self, slot: Slot) -> list[messages.ToEngine]:
        return [] if self.assignment is None else [self._assigned(slot, self.assignment)]

    def _assigned(self, slot: Slot, assignment: Assignment) -> messages.Assign:
        start = None if self.incarnation is None else (self.incarnation, slot.start)
        return messages.Assign(assignment, start)

    @property
    def why_vain(self) -> str:
        """Why other workers should take over its partitions; "" if they should not.

        The only worker of a cluster continues to try.
        """
        now, worker = self.assignment, self.lifecycle.worker_id
        if now is None or all(one.is_leaving or one.id == worker for one in now.members):
            return ""
        return self.watch.deaths.too_many

    def _exited(self, number: int, start: int, how: str, is_unable: bool) -> None:
        self._warn(f"process {number} has ended: {how}; it is restarted")
        self.watch.deaths.died(number, how, is_unable=is_unable)
        if self.membership is not None:
            self.membership.exited(number, start)
        if self.why_vain:
            self._is_vain.set()
