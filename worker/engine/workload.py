"""The work on one partition: assembles its tasks, and its hot standbys.

Partitions differ in their intake: inputs that can be read again, or a subscription that cannot.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ripple.control.assignment import since_of
from ripple.core.tracing import TracedInputs
from ripple.engine.machine import Engine
from ripple.engine.machine.router import Router
from ripple.storage.checkpoint import Checkpoints
from ripple.task.durable_task import DurableTask
from ripple.task.lifecycle import PartitionTask
from ripple.task.spec import TaskContext, TaskSpec
from ripple.task.stage_spec import StageSpec
from ripple.task.standby import Standby
from ripple.task.subscribed_state import SubscribedState
from ripple.task.tracing import Traces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection
    from contextlib import AbstractAsyncContextManager

    from ripple.connectors.commit_group import CommitGroup, ReadableGroup
    from ripple.connectors.inputs import Inputs
    from ripple.core.events import EventListener
    from ripple.engine.operators.division import Division
    from ripple.exchange.publications import Publications
    from ripple.model.pipeline.plan import Plan
    from ripple.task.durable_state import DurableState
    from ripple.task.edges import Upstream
    from ripple.task.lanes import Lanes
    from ripple.task.spec import IntakeGate
    from ripple.task.standby import Look, StandbyState
    from ripple.world.ports import Executor
    from worker.engine.context import ProcessContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt to own a partition.

    epoch: its own. is_handed_over: whether the previous owner continues until this one is ready.
    has_noted: whether the last notes of records in flight are of the task before, in this process.
    inputs: of the standby, if there is one. ready: returns the state of a standby, or the one that
    the task before retained. emit: listener of events. stop: whether to stop gracefully. parks:
    whether the next task takes the retained state, without a checkpoint.
    """

    epoch: int
    is_handed_over: bool
    has_noted: bool
    inputs: Inputs | None
    ready: Callable[[], Awaitable[StandbyState | None]]
    emit: EventListener
    stop: Callable[[], bool]
    parks: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Assembled:
    """A task, and the handles on it in this process.

    wake: lets it see that it shall stop or store a checkpoint. ask_for_checkpoint: for when it is
    awake. state: of a task that notes the records in flight and retains its state.
    """

    task: PartitionTask[Any]
    wake: Callable[[], None]
    ask_for_checkpoint: Callable[[], None]
    state: DurableState | None = None


class Workload(Protocol):
    """Assembles the tasks of one partition."""

    def standby(self) -> Standby | None:
        """Return a new standby; None if the next owner restores without one."""
        ...

    def assembled(self, attempt: Attempt) -> AbstractAsyncContextManager[Assembled]:
        """Assemble a task; on exit, the process no longer connects it with others."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """A partition of a stage.

    partition: its number in the assignment; stage, number: its stage, and its number there. shows:
    outputs that external clients may subscribe to; None if no other process subscribes to anything
    of this partition.
    """

    context: ProcessContext
    partition: int
    stage: int = 0
    number: int
    shows: Collection[str] | None

    def _checkpoints(self, executor: Executor) -> Checkpoints:
        context = self.context
        return Checkpoints(
            context.store,
            context.plan.name,
            self.partition,
            executor=executor,
            guards=context.world.guards,
        )

    def _sending(
        self, epoch: int, wake: Callable[[], None], closing: AsyncExitStack
    ) -> Publications | None:
        exchange = self.context.exchange
        if exchange is None or self.shows is None:
            return None
        sending = exchange.send(self.stage, self.number, epoch, wake, self.shows)
        if sending is not None:
            closing.callback(exchange.stop_sending, sending)
        return sending

    def _context_of(
        self, attempt: Attempt, outputs: object, gate: IntakeGate | None = None
    ) -> TaskContext:
        """Return the context of an attempt's task."""
        context, traces = self.context, None
        if context.tracer is not None:
            traces = Traces(context.tracer, stage=self.stage, partition=self.number, group=outputs)
        return TaskContext(
            settings=context.settings,
            emit=attempt.emit,
            stop=attempt.stop,
            intake=gate,
            traces=traces,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InputWork(_Work):
    """A partition that reads inputs: of the first stage, or one that repartitions the source.

    plan: to compute. inputs: to read. outputs: to write, for the owner of an epoch. engine:
    factory; staged: the first stage alone. reached: reads the cut that the outputs have committed;
    None if a standby cannot catch up before the owner has gone. lanes: through which the next stage
    reads the results, given the commit group; None without. division: partitioner of the input, if
    known.
    """

    plan: Plan
    inputs: Callable[[], Inputs]
    outputs: Callable[[int], CommitGroup]
    engine: type[Engine] = Engine
    staged: bool = False
    reached: Callable[[], Look | None] = lambda: None
    lanes: Callable[[CommitGroup], Lanes] | None = None
    division: Callable[[], Division | None] = lambda: None

    def standby(self) -> Standby | None:
        """Return a standby with the state at the cut that the outputs have committed."""
        context, reached = self.context, self.reached()
        if reached is None:
            return None
        executor = context.turns.for_standbys(context.world.executor)
        return Standby(
            self.plan,
            self._new_inputs(),
            self._checkpoints(executor),
            reached,
            context.world,
            settings=context.settings,
            staged=self.staged,
            executor=executor,
            turn=context.turns.followers,
        )

    @asynccontextmanager
    async def assembled(self, attempt: Attempt) -> AsyncIterator[Assembled]:
        """Assemble a task over the inputs."""
        context, epoch = self.context, attempt.epoch
        inputs = attempt.inputs or self._new_inputs()
        async with AsyncExitStack() as closing:
            sending = self._sending(epoch, inputs.wake, closing)
            outputs, task = self.outputs(epoch), None
            gate = None
            if context.intake is not None:
                gate = context.intake.gate(lambda: _held_by(task))
                closing.callback(gate.close)
            spec = TaskSpec(
                self.plan,
                inputs,
                outputs,
                staged=self.staged,
                sends=sending,
                lanes=None if self.lanes is None else self.lanes(outputs),
                engine=self.engine,
                division=self.division(),
            )
            task = DurableTask(
                spec,
                context.store,
                context.world,
                self._context_of(attempt, outputs, gate),
                partition=self.partition,
                epoch=epoch,
                is_next=lambda other: since_of(other) > since_of(epoch),
                holder=context.holder,
                ready=attempt.ready,
                is_handed_over=attempt.is_handed_over,
                has_survived=attempt.has_noted,
                parks=attempt.parks,
            )
            yield Assembled(task, task.wake, task.ask_for_checkpoint, task.kept)

    def _new_inputs(self) -> Inputs:
        inputs = self.inputs()
        if self.context.tracer is not None and isinstance(inputs, TracedInputs):
            inputs.trace()
        return inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork(_Work):
    """A partition of a downstream stage.

    It needs no hot standby: a new owner reads a checkpoint, and its senders send what is newer.

    senders: number of partitions of the upstream stage. outputs: to write, for the owner of an
    epoch. upstream: follows the senders, given a wake-up callback.
    """

    senders: int
    outputs: Callable[[int], ReadableGroup]
    upstream: Callable[[Callable[[], None]], AbstractAsyncContextManager[Upstream[Any]]]

    def standby(self) -> None:
        """Return None."""

    @asynccontextmanager
    async def assembled(self, attempt: Attempt) -> AsyncIterator[Assembled]:
        """Assemble a task over the changes of the upstream stage."""
        context, epoch, wake = self.context, attempt.epoch, asyncio.Event()
        async with AsyncExitStack() as closing:
            upstream = await closing.enter_async_context(self.upstream(wake.set))
            sending = self._sending(epoch, wake.set, closing)
            outputs = self.outputs(epoch)
            spec = StageSpec(
                context.plan,
                self.stage,
                self.number,
                self.senders,
                upstream,
                outputs,
                sends=sending,
                wake=wake,
            )
            checkpoints = self._checkpoints(context.world.executor)
            state = SubscribedState(checkpoints, context.world, epoch=epoch)
            task = PartitionTask(spec, state, self._context_of(attempt, outputs))
            yield Assembled(task, wake.set, state.ask_for_checkpoint)


def _held_by(task: DurableTask | None) -> dict[str, int]:
    """Return a task's share of its process's queues."""
    live = None if task is None else task.live
    if live is None:
        return {}
    divided = live.engine.held_bytes if isinstance(live.engine, Router) else 0
    return {"uncommitted": live.uncommitted_rows, "divided": divided}
