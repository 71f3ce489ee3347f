"""The task of a partition that reads inputs: it takes them in until they end.

A StateManager makes a partition outlive its tasks. A one-shot run has an EphemeralState: it claims
nothing, resumes from nothing, and its outputs commit once, at the end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ripple.connectors.endings import Endings
from ripple.connectors.inputs import Signal
from ripple.core.errors import InputError
from ripple.core.events import EventListener, no_listener
from ripple.engine.machine import Engine
from ripple.model.window import OnCount, OnInterval
from ripple.task.lifecycle import PartitionTask
from ripple.task.loop import TaskLoop, TaskSpec
from ripple.task.report import Report
from ripple.task.settings import Settings

if TYPE_CHECKING:
    from ripple.connectors.commit_group import CommitGroup
    from ripple.connectors.inputs import Inputs
    from ripple.engine.operators.division import Division
    from ripple.model.pipeline.plan import Plan
    from ripple.task.edges import Publisher
    from ripple.task.lanes import Lanes
    from ripple.task.loop import IntakeGate
    from ripple.task.tracing import Traces


@runtime_checkable
class NotifyingInputs(Protocol):
    """Inputs that emit events, to ``emit``."""

    emit: EventListener


class RunningState(Protocol):
    """A restored partition, and the background work of its state manager."""

    @property
    def live(self) -> TaskLoop:
        """The partition."""
        ...

    async def catch_up(self) -> bool:
        """Reach the cut where new input begins; return False if stopped before."""
        ...

    async def keep(self) -> None:
        """Commit and store checkpoints when they are due, between two batches."""
        ...

    async def wait(self) -> None:
        """Wait until there may be more to read, or something is due."""
        ...

    async def finish(self) -> None:
        """Leave everything in good order: the input has ended, or the task was stopped."""
        ...


class StateManager(Protocol):
    """Restores the state of a partition, and keeps it."""

    def running_state(
        self, parts: TaskSpec, endings: Endings
    ) -> AbstractAsyncContextManager[RunningState]:
        """Restore the partition; endings: everything opened, to be released after the run."""
        ...


class ActiveTask(PartitionTask):
    """A task over inputs that can be read again, or, with EphemeralState, once."""

    def __init__(
        self,
        plan: Plan,
        inputs: Inputs,
        outputs: CommitGroup,
        state: StateManager,
        *,
        settings: Settings | None = None,
        emit: EventListener = no_listener,
        stop: Callable[[], bool] = lambda: False,
        watch: Callable[[Engine, Report], None] = lambda _, __: None,
        staged: bool = False,
        sends: Publisher | None = None,
        lanes: Lanes | None = None,
        engine: type[Engine] = Engine,
        division: Division | None = None,
        intake: IntakeGate | None = None,
        traces: Traces | None = None,
    ) -> None:
        """Connect the parts; nothing is touched before ``run``.

        outputs: opened once no other owner can write. emit: is given events. stop: asked between
        two batches whether to end in good order; to interrupt a wait for input, call
        ``inputs.wake`` after setting it. watch: called after each batch. staged: whether to compute
        the plan's first stage alone. sends: publishes the state edge, None without one. lanes: the
        event edge to the next stage, None without one. engine: the class that computes. division:
        how the input is partitioned, if known. intake: asked before each new batch. traces: of
        those batches, None without tracing.
        """
        super().__init__(stop)
        if isinstance(inputs, NotifyingInputs):
            inputs.emit = emit
        self._state_manager = state
        self._running: RunningState | None = None
        self._parts = TaskSpec(
            plan,
            inputs,
            outputs,
            settings or Settings(),
            self.report,
            emit,
            stop,
            watch,
            staged,
            sends,
            lanes,
            engine,
            division,
            intake,
            traces,
        )

    @property
    def engine(self) -> Engine:
        """The partition; there is one once ``run`` has restored it."""
        assert self._running is not None, "nothing was restored yet"
        return self._running.live.engine

    @property
    def live(self) -> TaskLoop | None:
        """The partition at work, once it was restored."""
        return None if self._running is None else self._running.live

    @asynccontextmanager
    async def _restored(self, endings: Endings) -> AsyncIterator[_ActiveRun]:
        self._check_triggers()
        async with self._state_manager.running_state(self._parts, endings) as running:
            self._running = running
            yield _ActiveRun(self._parts, running)

    def _check_triggers(self) -> None:
        """Raise InputError where rows would depend on the order in which inputs were read."""
        window = self._parts.plan.folds[0].window
        is_partial = window is not None and isinstance(window.trigger, OnCount | OnInterval)
        if is_partial and len(self._parts.inputs.names) > 1:
            raise InputError(
                "a window that shows partial results by OnCount or OnInterval cannot be restored "
                "over several partitions: what it shows depends on the order of reading; read one, "
                "as in log:DIR/TOPIC/0"
            )


class _ActiveRun:
    """A run over inputs: what there is of them is taken in, one batch a step."""

    def __init__(self, parts: TaskSpec, running: RunningState) -> None:
        self._inputs, self._intake = parts.inputs, parts.intake
        self._running, self._live = running, running.live

    async def catch_up(self) -> bool:
        return await self._running.catch_up()

    async def step(self) -> bool:
        running = self._running
        if self._intake is not None and not await self._intake.admits():
            await running.keep()
            return True
        entry = self._inputs.next(self._live.cut)
        if entry is Signal.ENDED:
            return False
        if entry is Signal.WAITING:
            await running.wait()
        else:
            await self._live.take(*entry)
        await running.keep()
        return True

    async def finish(self) -> None:
        await self._running.finish()
        self._live.end()
