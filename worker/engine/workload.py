"""The work on one partition: assembles its tasks, and its hot standbys.

Partitions differ in their intake: inputs that can be read again, or a subscription that cannot.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ripple.connectors.commit_group import SinkGroup
from ripple.core import cut as cuts
from ripple.core.tracing import TracedInputs
from ripple.engine.machine import Engine
from ripple.engine.machine.follower import Follower
from ripple.engine.machine.router import Router
from ripple.engine.machine.source_router import SourceRouter
from ripple.model.pipeline.input_names import of_sources
from ripple.model.pipeline.stages import EdgeKind
from ripple.model.pipeline.topology import outputs_of, stages_of
from ripple.storage.checkpoint import Checkpoints
from ripple.task.durable_task import DurableTask
from ripple.task.lifecycle import PartitionTask, TaskState
from ripple.task.spec import TaskContext, TaskSpec
from ripple.task.stage_spec import StageSpec
from ripple.task.standby import Standby
from ripple.task.subscribed_state import SubscribedState
from ripple.task.tracing import Traces
from worker.settings import CHECKPOINT_INTERVAL_MS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
    from contextlib import AbstractAsyncContextManager

    from ripple.connectors.commit_group import CommitGroup, ReadableGroup
    from ripple.connectors.contract import Commit
    from ripple.connectors.inputs import Inputs
    from ripple.engine.operators.division import Division
    from ripple.exchange.publications import Publications
    from ripple.model.pipeline.plan import Plan
    from ripple.task.edges import Upstream
    from ripple.task.lanes import Lanes
    from ripple.task.owned_state import Ownership
    from ripple.task.settings import Settings
    from ripple.task.spec import IntakeGate
    from ripple.task.standby import Look
    from ripple.world.ports import Executor
    from worker.engine.context import ProcessContext


FINALS_INTERVAL_NS = 10_000_000_000
"""By default, the time between checkpoints of a stage whose senders keep final rows for it."""


# How long the outputs may take to come as far as a state, and how often that is asked: commits come
# every second by default.
NEAR_NS, NEAR_LOOK_S = 2_000_000_000, 0.02


class Workload(Protocol):
    """Assembles the tasks of one partition."""

    @property
    def writes(self) -> bool:
        """Whether the partition has outputs."""
        ...

    def follows(self, task: PartitionTask[Any] | None, epoch: int) -> bool:
        """Return whether all senders of a task that have outputs have this epoch, or a later one.

        A task that has restored nothing needs none.
        """
        ...

    def standby(self) -> DurableTask | None:
        """Return a task that can follow the owner; None if the next owner restores without one."""
        ...

    def owner(
        self, ownership: Ownership, last: PartitionTask[Any] | None, context: TaskContext
    ) -> AbstractAsyncContextManager[PartitionTask[Any]]:
        """Return a task to run; on exit, the process no longer connects it with others.

        last: the previous task in this process; a standby is promoted. context: its
        listener of events, and whether to stop it.
        """
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

    @property
    def writes(self) -> bool:
        """Whether the partition has outputs."""
        return bool(self.shows)

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

    def _whole(
        self, context: TaskContext, outputs: object, gate: IntakeGate | None = None
    ) -> TaskContext:
        """Return the context with the parts common to all partitions of this process."""
        tracer, traces = self.context.tracer, None
        if tracer is not None:
            traces = Traces(tracer, stage=self.stage, partition=self.number, group=outputs)
        common = self.context
        return replace(
            context, settings=self.settings, intake=gate, traces=traces, debts=common.debts
        )

    @property
    def settings(self) -> Settings:
        """The settings of its tasks."""
        return self.context.settings


@dataclass(frozen=True, slots=True, kw_only=True)
class InputWork(_Work):
    """A partition that reads inputs: of the first stage, or one that repartitions the source.

    plan: to compute. inputs: to read. outputs: to write, for the owner of an epoch. engine:
    factory; staged: the first stage alone. reached: reads the cut that the outputs have committed;
    None if a standby cannot catch up before the owner has gone. lanes: through which the next stage
    reads the results, given the commit group; None without. divisions: the known partitioners of
    the sources. received: the sources that other tasks repartition.
    """

    plan: Plan
    inputs: Callable[[], Inputs]
    outputs: Callable[[int], CommitGroup]
    engine: type[Engine] = Engine
    staged: bool = False
    reached: Callable[[], Look | None] = lambda: None
    lanes: Callable[[CommitGroup], Lanes] | None = None
    divisions: Callable[[], tuple[Division, ...]] = tuple
    received: Collection[str] = ()

    def follows(self, task: PartitionTask[Any] | None, epoch: int) -> bool:
        """Return True: it has no senders."""
        del task, epoch
        return True

    def standby(self) -> DurableTask | None:
        """Return a task that follows the committed cut of the outputs."""
        context, reached = self.context, self.reached()
        if reached is None:
            return None
        spec, turns = self._spec(self._new_inputs()), context.turns
        standby = Standby(
            spec,
            self._checkpoints(turns.for_standbys(context.world.executor)),
            partial(_own, reached, {*of_sources(spec.inputs.names)}),
            context.world,
            settings=context.settings,
            turn=turns.followers,
        )
        return self._task(spec, standby)

    @asynccontextmanager
    async def owner(
        self, ownership: Ownership, last: PartitionTask[Any] | None, context: TaskContext
    ) -> AsyncIterator[DurableTask]:
        """Return a task over the inputs, or promote the last one."""
        task, spec = self._promoted(last)
        del last  # its engine may be large, and this task has it or nothing needs it
        intake, epoch = self.context.intake, ownership.epoch
        assert epoch is not None
        async with AsyncExitStack() as closing:
            sending = self._sending(epoch, spec.inputs.wake, closing)
            outputs, gate = self.outputs(epoch), None
            if intake is not None:
                gate = intake.gate(lambda: _held_by(task))
                closing.callback(gate.close)
            spec = replace(
                spec,
                outputs=outputs,
                sends=sending,
                lanes=None if self.lanes is None else self.lanes(outputs),
                divisions=self.divisions(),
            )
            if ownership.is_handed_over and task.kept.left is not None:
                ownership = replace(ownership, ready=partial(self._near, task, ownership.ready))
            task.promote(spec, self._whole(context, outputs, gate), ownership)
            yield task

    async def _near(self, task: DurableTask, ready: Callable[[], Awaitable[None]]) -> None:
        """Wait a while until the outputs have come as far as the state that the task has.

        Their owner, of another generation, goes on meanwhile; a state ahead of an output is of no
        use.
        """
        look, clock = self.reached(), self.context.world.clock
        ends_ns = clock.monotonic_ns() + NEAR_NS
        while look is not None and task.kept.left is not None and clock.monotonic_ns() < ends_ns:
            here = task.kept.left.engine.cut
            if all(one and cuts.is_within(here, one.cut) for one in (await look()).values()):
                break
            await clock.sleep(NEAR_LOOK_S)
        await ready()

    def _promoted(self, last: PartitionTask[Any] | None) -> tuple[DurableTask, TaskSpec]:
        """Return the last task, or a new one after a closed one, and its specification."""
        assert last is None or isinstance(last, DurableTask)
        standby = None if last is None else last.kept.standby
        spec = self._spec(self._new_inputs() if standby is None else standby.inputs)
        if last is not None and last.state is not TaskState.CLOSED:
            return last, spec
        task = self._task(spec)
        task.kept.has_noted = last is not None and last.kept.has_noted
        return task, spec

    def _spec(self, inputs: Inputs) -> TaskSpec:
        """Return the specification of a task that owns nothing yet, and so writes nothing."""
        nothing = SinkGroup({})
        return TaskSpec(
            self.plan,
            inputs,
            nothing,
            staged=self.staged,
            engine=self.engine,
            received=self.received,
        )

    def _task(self, spec: TaskSpec, standby: Standby | None = None) -> DurableTask:
        world = self.context.world
        checkpoints = self._checkpoints(world.executor)
        return DurableTask(spec, checkpoints, world, TaskContext(), standby=standby)

    def _new_inputs(self) -> Inputs:
        inputs = self.inputs()
        if self.context.tracer is not None and isinstance(inputs, TracedInputs):
            inputs.trace()
        return inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork(_Work):
    """A partition of a downstream stage.

    It needs no hot standby: a new owner reads a checkpoint, and its senders send the newer rows.

    senders: number of partitions of the upstream stage. outputs: to write, for the owner of an
    epoch. upstream: follows the senders, given a wake-up callback.
    """

    senders: int
    outputs: Callable[[int], ReadableGroup]
    upstream: Callable[[Callable[[], None]], AbstractAsyncContextManager[Upstream[Any]]]

    def follows(self, task: PartitionTask[Any] | None, epoch: int) -> bool:
        """Return whether all senders, if they have outputs, have this epoch or a later one."""
        plan = self.context.plan
        live = None if task is None else task.live
        if live is None or not outputs_of(plan, stages_of(plan)[self.stage].before or 0):
            return True
        assert isinstance(live.engine, Follower)
        known = (live.engine.followed(str(sender)).epoch for sender in range(self.senders))
        return all(one is not None and one >= epoch for one in known)

    def standby(self) -> None:
        """Return None."""

    @property
    def settings(self) -> Settings:
        """The settings of its tasks: senders keep final rows until a checkpoint has them.

        Another interval than the default is one that was asked for, and kept to.
        """
        settings, edge = self.context.settings, stages_of(self.context.plan)[self.stage].edge
        is_asked = settings.checkpoint_interval_ns != CHECKPOINT_INTERVAL_MS * 1_000_000
        if is_asked or edge is None or edge.kind is not EdgeKind.ROW:
            return settings
        return replace(settings, checkpoint_interval_ns=FINALS_INTERVAL_NS)

    @asynccontextmanager
    async def owner(
        self, ownership: Ownership, last: PartitionTask[Any] | None, context: TaskContext
    ) -> AsyncIterator[PartitionTask[StageSpec]]:
        """Return a task over the changes of the upstream stage."""
        del last  # it was no standby
        epoch, world, wake = ownership.epoch, self.context.world, asyncio.Event()
        assert epoch is not None
        async with AsyncExitStack() as closing:
            upstream = await closing.enter_async_context(self.upstream(wake.set))
            sending = self._sending(epoch, wake.set, closing)
            outputs = self.outputs(epoch)
            spec = StageSpec(
                self.context.plan,
                self.stage,
                self.number,
                self.senders,
                upstream,
                outputs,
                sends=sending,
                wake=wake,
            )
            state = SubscribedState(self._checkpoints(world.executor), world, ownership)
            yield PartitionTask(spec, state, self._whole(context, outputs))


async def _own(look: Look, names: Collection[str]) -> Mapping[str, Commit | None]:
    """Return the commits of outputs, without those of a generation with other partitions.

    names: the inputs that the partition reads.
    """
    return {
        output: one if one is not None and {*of_sources(one.cut)} == names else None
        for output, one in (await look()).items()
    }


def _held_by(task: DurableTask) -> dict[str, int]:
    """Return a task's share of its process's queues."""
    live = task.live
    if live is None:
        return {}
    divided = live.engine.held_bytes if isinstance(live.engine, Router | SourceRouter) else 0
    return {"uncommitted": live.uncommitted_rows, "divided": divided}
