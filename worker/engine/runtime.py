"""The runtime of one engine process: hosts exactly the partitions that the assignment gives it.

    assign: a version -> our partitions and roles -> update each runner that changes

Invariants: the hosted partitions are those of the newest version, or about to end; a failing
partition leaves its neighbours alone; an older version, or one for another start of this process,
assigns nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ripple.control.assignment import (
    Assignment,
    Backpressure,
    Demand,
    Follower,
    MoveFailed,
    Report,
)
from ripple.core.errors import RippleError
from worker.engine.hosting import runner_of
from worker.engine.stages import check_stages

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from worker.backpressure import Intake
    from worker.engine.context import ProcessContext
    from worker.engine.runner import Runner
    from worker.health import TaskHealth


@dataclass(frozen=True, slots=True)
class Role:
    """The role of this process for a partition.

    since: of its owner; None for a standby, or an owner that yields. is_handed_over: whether the
    previous owner continues until this one is ready.
    """

    since: int | None
    yields: bool = False
    is_handed_over: bool = field(default=False, compare=False)


@dataclass(slots=True)
class _Held:
    role: Role
    hosted: Runner
    has_begun: bool = False


class _Ending(NamedTuple):
    partition: int
    hosted: Runner


class Runtime:
    """The partitions that a process hosts, by their numbers in the assignment."""

    def __init__(
        self,
        process: str,
        context: ProcessContext,
        *,
        host: Callable[[ProcessContext, Assignment, int], Runner] = runner_of,
        moved: Callable[[Assignment], None] = lambda _: None,
        load: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Be the process of this name.

        context: of its partitions. host: makes the runner of one. moved: called with each version
        first. load: of the process, 0 to 1.
        """
        self.process = process
        self.version = 0
        self._context = context
        self._host = host
        self._moved = moved
        self._load = load
        self._held: dict[int, _Held] = {}
        self._ending: dict[asyncio.Task[None], _Ending] = {}
        self._is_stopping = False
        self._counts: tuple[tuple[str, int], ...] = ()
        self._refused: tuple[int, ...] = ()
        self.problem: str | None = None

    def assign(self, assignment: Assignment, start: tuple[int, int] | None) -> None:
        """Follow a version of the assignment.

        start: the worker's incarnation and the start number of this process; None if the worker is
        no member. A partition that moves away by plan continues until its next owner has it; a lost
        one ends before its next effect.
        """
        if assignment.version < self.version or self._is_stopping:
            return
        self.version = assignment.version
        self._moved(assignment)
        is_meant = start is not None and assignment.start_of(self.process) == start
        roles = dict(self._roles(assignment)) if is_meant else {}
        if not self._prepare(assignment):
            self._refused, roles = tuple(roles), {}
        for partition, held in list(self._held.items()):
            role = roles.get(partition)
            if role != held.role and not (role is not None and _turned(held, role)):
                self._end(partition, held.hosted, in_good_order=False)
        for partition, role in roles.items():
            if partition not in self._held and not role.yields:
                self._begin(partition, role, assignment)

    @property
    def report(self) -> Report:
        """Return the report for a heartbeat."""
        standings, intake = self.standings, self._context.intake
        load = self._load()
        return Report(
            load=load,
            live=frozenset(
                (partition, since)
                for partition, held in self._held.items()
                if (since := held.role.since) is not None and standings[partition].is_live
            ),
            followers=tuple(
                Follower(partition, self.process, behind)
                for partition, one in standings.items()
                if (behind := one.behind) is not None
            ),
            failed=(
                *(
                    MoveFailed(partition, self.process, one.failure)
                    for partition, one in standings.items()
                    if one.failure is not None
                ),
                *(
                    MoveFailed(partition, self.process, self.problem or "")
                    for partition in self._refused
                ),
            ),
            inputs=self._counts,
            backpressure=Backpressure() if intake is None else intake.look().report,
            demand=Demand(
                load,
                max((one.backlog_s for one in standings.values()), default=0.0),
                max((one.debt_s for one in standings.values()), default=0.0),
            ),
        )

    @property
    def standings(self) -> dict[int, TaskHealth]:
        """Health of each partition."""
        return {partition: held.hosted.health for partition, held in self._held.items()}

    @property
    def intake(self) -> Intake | None:
        """The intake of its partitions."""
        return self._context.intake

    def store(self) -> None:
        """Store checkpoints soon, of the hosted partitions that have none of the last half period.

        Others store by their own clocks, or did for the sake of the process' replay.
        """
        half_s = self._context.settings.checkpoint_interval_ns / 2e9
        for held in self._held.values():
            if held.hosted.health.debt_s >= half_s:
                held.hosted.store()

    def renew(self) -> None:
        """Let partitions go over to the outputs that their generation writes now."""
        for held in self._held.values():
            held.hosted.renew()

    async def stop(self) -> None:
        """Stop all partitions gracefully, with final checkpoints; take nothing in any more."""
        self._is_stopping = True
        for partition, held in list(self._held.items()):
            self._end(partition, held.hosted, in_good_order=True)
        await self.ended()

    def drop(self) -> None:
        """Stop all partitions before their next effects."""
        self._is_stopping = True
        for partition, held in list(self._held.items()):
            self._end(partition, held.hosted, in_good_order=False)
        for ending in self._ending.values():
            ending.hosted.drop()

    async def ended(self) -> None:
        """Wait until all stopping partitions have ended."""
        while self._ending:
            await asyncio.wait(list(self._ending))

    def _prepare(self, assignment: Assignment) -> bool:
        """Check an assignment, and look at the inputs; return False if that fails."""
        if self._counts:
            return True
        try:
            check_stages(self._context.plan, assignment)
            self._counts = self._context.ends.counts()
        except (RippleError, OSError) as error:
            self.problem = str(error)
            return False
        self._refused, self.problem = (), None
        return True

    def _roles(self, assignment: Assignment) -> Iterator[tuple[int, Role]]:
        for partition, share in enumerate(assignment.shares):
            if share.owner == self.process:
                yield partition, Role(share.since, is_handed_over=share.former is not None)
            elif share.former == self.process:
                yield partition, Role(None, yields=True)
            elif self.process in (share.next, share.standby):
                yield partition, Role(None)

    def _begin(self, partition: int, role: Role, assignment: Assignment) -> None:
        """Host a partition, once its previous runner in this process has ended."""
        hosted = self._host(self._context, assignment, partition)
        self._held[partition] = _Held(role, hosted)
        before = [task for task, one in self._ending.items() if one.partition == partition]

        async def begin() -> None:
            if before:
                await asyncio.wait(before)
            held = self._held.get(partition)
            if held is not None and held.hosted is hosted:
                _begun(held)

        if before:
            self._keep(begin(), partition, hosted)
        else:
            _begun(self._held[partition])

    def _end(self, partition: int, hosted: Runner, *, in_good_order: bool) -> None:
        del self._held[partition]
        if in_good_order:
            hosted.leave()
        else:
            hosted.drop()
        self._keep(hosted.ended(), partition, hosted)

    def _keep(self, work: Coroutine[None, None, None], partition: int, hosted: Runner) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._ending[task] = _Ending(partition, hosted)
        task.add_done_callback(self._ending.pop)


def _begun(held: _Held) -> None:
    """Set a new runner to its role."""
    held.has_begun, role = True, held.role
    if role.since is None:
        held.hosted.follow()
    else:
        held.hosted.own(role.since, is_handed_over=role.is_handed_over)


def _turned(held: _Held, role: Role) -> bool:
    """Change a runner's role; return False if it has to start anew."""
    was, hosted = held.role, held.hosted
    if role.yields and was.since is not None and held.has_begun:
        held.role = role
        hosted.yield_ownership()
    elif role.since is not None and was.since is None:
        held.role = role  # from the standby's state, or the state retained as its former owner
        if held.has_begun:
            hosted.own(role.since, is_handed_over=role.is_handed_over)
    else:
        return False
    return True
