"""The states of a task, and the loop that takes every task through them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ripple.connectors.endings import Endings
from ripple.connectors.inputs import Signal

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from ripple.engine.machine.partition import Partition
    from ripple.task.live import Intake, LivePartition
    from ripple.task.report import Report
    from ripple.task.spec import TaskContext


class TaskState(Enum):
    """The state of a task between its construction and its end."""

    CREATED = "created"
    RESTORING = "restoring"
    STANDBY = "standby"
    RUNNING = "running"
    CLOSING = "closing"
    CLOSED = "closed"


TRANSITIONS: dict[TaskState, frozenset[TaskState]] = {
    # Nothing is touched.
    TaskState.CREATED: frozenset({TaskState.RESTORING}),
    # Claims, opens, restores, catches up. A standby only restores. CLOSED: it was stopped, or has
    # failed.
    TaskState.RESTORING: frozenset({TaskState.STANDBY, TaskState.RUNNING, TaskState.CLOSED}),
    # Owns nothing, and has the state to succeed the owner. RUNNING: it was promoted: it claims,
    # opens and catches up from there.
    TaskState.STANDBY: frozenset({TaskState.RUNNING, TaskState.CLOSED}),
    # Takes in, stabilizes, writes; commits and stores checkpoints when due. CLOSED: it has failed.
    # STANDBY: another owner has fenced it off, and it may succeed that one.
    TaskState.RUNNING: frozenset({TaskState.CLOSING, TaskState.STANDBY, TaskState.CLOSED}),
    # The input has ended, or stop was asked for: the last commit and checkpoint.
    TaskState.CLOSING: frozenset({TaskState.STANDBY, TaskState.CLOSED}),
    # Everything is released.
    TaskState.CLOSED: frozenset(),
}
"""The transitions of each state; any other is a bug."""


class Run(Protocol):
    """A restored partition, and the background work of its state manager."""

    @property
    def live(self) -> LivePartition:
        """The partition and its outputs."""
        ...

    @property
    def intake(self) -> Intake:
        """Its intake."""
        ...

    async def catch_up(self) -> bool:
        """Reach the cut where new input begins; return False if stopped before."""
        ...

    async def keep(self) -> None:
        """Commit and store checkpoints when they are due, between two batches."""
        ...

    async def wait(self) -> None:
        """Wait until there may be more to take in, or something is due."""
        ...

    async def finish(self) -> None:
        """Leave everything in good order: the input has ended, or stop was asked for."""
        ...


S_contra = TypeVar("S_contra", contravariant=True)
S = TypeVar("S")


class StateManager(Protocol[S_contra]):
    """Restores the state of a partition, and keeps it."""

    def running_state(
        self, spec: S_contra, context: TaskContext, endings: Endings
    ) -> AbstractAsyncContextManager[Run]:
        """Claim the partition, open its inputs and outputs, restore; give up if the run fails.

        endings: released after the run, in any case.
        """
        ...

    def ask_for_checkpoint(self) -> None:
        """Request a checkpoint after the next batch."""
        ...


class PartitionTask(Generic[S]):
    """A partition in the states of ``TRANSITIONS``. ``run`` is called once, unless it was demoted.

    spec: its computation. state: restores the partition and keeps its state, which outlives the
    task, unless it is an EphemeralState. context: where it runs.
    """

    def __init__(self, spec: S, state: StateManager[S], context: TaskContext) -> None:
        """Connect the parts; nothing is touched before ``run``."""
        self._spec = spec
        self._manager = state
        self._context = context
        self._state = TaskState.CREATED
        self._run: Run | None = None
        self.is_at_end = False
        """Whether it has taken in all of its input, for now."""
        self.ends = 0
        """How often it has come there."""

    @property
    def state(self) -> TaskState:
        """The state of the task."""
        return self._state

    @property
    def report(self) -> Report:
        """The report of the task until now."""
        return self._context.report

    @property
    def behind(self) -> int | None:
        """How many of its owner's commits a standby lacks; None if unknown."""
        return None

    @property
    def live(self) -> LivePartition | None:
        """The partition at work, once it was restored."""
        return None if self._run is None else self._run.live

    @property
    def engine(self) -> Partition:
        """The partition; there is one once ``run`` has restored it."""
        assert self._run is not None, "nothing was restored yet"
        return self._run.live.engine

    async def run(self) -> Report:
        """Restore, catch up, and run until the input ends or ``stop`` says so.

        Raises DiskLockedError, FencedError and StaleEpochError where another owner has the
        partition, ChangedPlanError for checkpoints of other code, InputError, OutputError,
        SnapshotError, CheckpointError and OSError. After any of them, committed output stays, and
        the next task resumes there; uncommitted rows of an output without a cut record are dropped.
        """
        self._begin()
        try:
            async with (
                Endings() as endings,
                self._manager.running_state(self._spec, self._context, endings) as run,
            ):
                self._run = run
                if await run.catch_up():
                    self._enter(TaskState.RUNNING)
                    await self._work(run)
                    self._enter(TaskState.CLOSING)
                    await run.finish()
                    run.live.end()
        finally:
            self._end()
        return self.report

    def wake(self) -> None:
        """End a wait for input, so that it sees that it shall stop or store a checkpoint."""
        if self._run is not None:
            self._run.intake.wake()

    def ask_for_checkpoint(self) -> None:
        """Let it store a checkpoint soon."""
        self._manager.ask_for_checkpoint()
        self.wake()

    def _begin(self) -> None:
        self._enter(TaskState.RESTORING)

    def _end(self) -> None:
        self._enter(TaskState.CLOSED)

    async def _work(self, run: Run) -> None:
        """Take in batches, wait for them, and do due work, until the end or a stop."""
        stop, gate, take, keep = self._context.stop, self._context.intake, run.intake.take, run.keep
        while not stop():
            if gate is None or await gate.admits():
                found = await take()
                if found is Signal.ENDED:
                    return
                self.is_at_end = found is Signal.WAITING
                if found is not None:
                    self.ends += 1
                    await run.wait()
            await keep()

    def _enter(self, state: TaskState) -> None:
        assert state in TRANSITIONS[self._state], f"{state} after {self._state}"
        self._state = state
