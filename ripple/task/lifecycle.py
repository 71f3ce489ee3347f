"""The states of a task, and the loop that takes every kind of task through them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from ripple.connectors.endings import Endings
from ripple.task.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager


class TaskState(Enum):
    """Where a task is between its construction and its end."""

    CREATED = "created"
    RESTORING = "restoring"
    RUNNING = "running"
    CLOSING = "closing"
    CLOSED = "closed"


TRANSITIONS: dict[TaskState, frozenset[TaskState]] = {
    # Nothing is touched.
    TaskState.CREATED: frozenset({TaskState.RESTORING}),
    # Claims, opens, restores, catches up. CLOSED: it was stopped, or has failed.
    TaskState.RESTORING: frozenset({TaskState.RUNNING, TaskState.CLOSED}),
    # Takes in, stabilizes, writes; commits and stores checkpoints when due. CLOSED: it has failed.
    TaskState.RUNNING: frozenset({TaskState.CLOSING, TaskState.CLOSED}),
    # The input has ended, or stop was asked for: the last commit and checkpoint.
    TaskState.CLOSING: frozenset({TaskState.CLOSED}),
    # Everything is released.
    TaskState.CLOSED: frozenset(),
}
"""What may follow each state; anything else is a bug."""


class Run(Protocol):
    """The part of a task that differs by kind, while it owns its partition."""

    async def catch_up(self) -> bool:
        """Reach the cut where new input begins; return False if stopped before."""
        ...

    async def step(self) -> bool:
        """Take in input, or wait for some, and do due work; False where the input ends."""
        ...

    async def finish(self) -> None:
        """Leave everything in good order: the input has ended, or stop was asked for."""
        ...


class PartitionTask(ABC):
    """One run over a partition, in the states of ``TRANSITIONS``. ``run`` is called once."""

    def __init__(self, stop: Callable[[], bool]) -> None:
        """stop: asked between two steps whether to end in good order."""
        self.report = Report()
        self._stop = stop
        self._state = TaskState.CREATED

    @property
    def state(self) -> TaskState:
        """Where the task is."""
        return self._state

    @abstractmethod
    def _restored(self, endings: Endings) -> AbstractAsyncContextManager[Run]:
        """Claim the partition, open what it reads and writes, restore; give up if the run fails.

        endings: released after the run, in any case.
        """

    async def run(self) -> Report:
        """Restore, catch up, and run until the input ends or ``stop`` says so.

        Raises DiskLockedError, FencedError and StaleEpochError where another owner has the
        partition, ChangedPlanError for checkpoints of other code, InputError, OutputError,
        SnapshotError, CheckpointError and OSError. After any of them, committed output stays, and
        the next task resumes there; uncommitted rows of an output without a cut record are dropped.
        """
        self._enter(TaskState.RESTORING)
        try:
            async with Endings() as endings, self._restored(endings) as run:
                if await run.catch_up():
                    self._enter(TaskState.RUNNING)
                    while not self._stop() and await run.step():
                        pass
                    self._enter(TaskState.CLOSING)
                    await run.finish()
        finally:
            self._enter(TaskState.CLOSED)
        return self.report

    def _enter(self, state: TaskState) -> None:
        assert state in TRANSITIONS[self._state], f"{state} after {self._state}"
        self._state = state
