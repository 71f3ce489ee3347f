"""The work on each partition of an assignment: its inputs, its outputs, and its edges."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.connector import Part
from ripple.control.assignment import stage_names
from ripple.control.assignment.stage_names import DIVIDING
from ripple.engine.edges.kinds import edge_into
from ripple.engine.machine import Engine
from ripple.engine.machine.receiver import receiver
from ripple.engine.machine.router import Router
from ripple.engine.machine.source_router import source_router
from ripple.engine.machine.targets import Targets
from ripple.model.pipeline.input_names import source_of
from ripple.model.pipeline.stages import Transport
from ripple.model.pipeline.topology import is_spread, outputs_of, stages_of, transport_into
from ripple.storage.checkpoint import Checkpoints
from ripple.task.repartition.edge import LaneEdge
from ripple.task.repartition.inputs import DividedInputs
from ripple.task.repartition.topics import lanes_into, lanes_of_records
from worker.engine.routes import dividing_stages
from worker.engine.runner import Runner
from worker.engine.stages import FIRST, name_of
from worker.engine.workload import InputWork, StageWork

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Container

    from ripple.connectors.commit_group import CommitGroup
    from ripple.connectors.inputs import Inputs
    from ripple.control.assignment import Assignment
    from ripple.core.cut import Cut
    from ripple.exchange.exchange import Exchange
    from ripple.model.pipeline.plan import Plan
    from ripple.task.edges import Upstream
    from ripple.task.lanes import Lanes
    from ripple.task.repartition.topics import LaneTopic
    from worker.engine.context import ProcessContext
    from worker.engine.workload import Workload


def runner_of(context: ProcessContext, assignment: Assignment, partition: int) -> Runner:
    """Return the runner of a partition of the assignment."""
    emit, work = partial(context.emit, partition), _Workloads(context, assignment).of(partition)
    return Runner(
        context.world.clock, partition, emit, work, context.turns, generation=context.generation
    )


class _Workloads:
    """The work on each partition of an assignment."""

    def __init__(self, context: ProcessContext, assignment: Assignment) -> None:
        self._context, self._assignment = context, assignment
        self._counts = {stage.name: stage.partitions for stage in assignment.stages}
        self._divides = DIVIDING in self._counts
        self._repartitioned = {
            source: stage
            for stage in self._counts
            if (source := stage_names.divided_in(stage)) is not None
        }

    def of(self, partition: int) -> Workload:
        name, number = self._assignment.place_of(partition)
        if name == DIVIDING:
            return self._dividing(partition, number)
        source = stage_names.divided_in(name)
        if source is not None:
            return self._dividing(partition, number, source)
        if name == FIRST:
            return self._first(partition, number)
        stage = list(self._counts).index(name) - dividing_stages(self._counts)
        return self._later(partition, stage, number)

    # --- the partitions of each stage ---

    def _dividing(self, partition: int, number: int, source: str | None = None) -> InputWork:
        """Repartition the records of some inputs. source: theirs, None for that of a chain."""
        context, stage = self._context, DIVIDING if source is None else stage_names.dividing(source)
        part = Part(number, self._counts[stage])

        def inputs() -> Inputs:
            ends = context.ends
            return ends.inputs(part) if source is None else ends.inputs_of(source, part)

        def edge_and_lanes() -> tuple[LaneEdge, dict[int, int]]:
            edge = self._records(source)
            receivers = edge.topic.receivers
            return edge, {
                at * receivers + receiver: edge.topic.lane(sender, receiver)
                for at, sender in enumerate(range(number, edge.topic.senders, part.of))
                for receiver in range(receivers)
            }

        def outputs(epoch: int) -> CommitGroup:
            edge, lanes = edge_and_lanes()
            carried = edge.carried(lanes)
            if carried is None:
                return SinkGroup({})
            return context.ends.outputs(part, epoch, source, carried=carried)

        def sent(outputs: CommitGroup) -> Lanes:
            edge, lanes = edge_and_lanes()
            return edge.sent(lanes, outputs)

        return InputWork(
            context=context,
            partition=partition,
            number=number,
            shows=None,
            plan=context.plan,
            inputs=inputs,
            outputs=outputs,
            engine=Router if source is None else source_router(self._targets(source)),
            staged=True,
            lanes=sent,
        )

    def _first(self, partition: int, number: int) -> InputWork:
        """Compute the first stage, from the source or from its repartitioned records."""
        context, plan, part = self._context, self._context.plan, Part(number, self._counts[FIRST])
        is_moved = self._divides or bool(self._repartitioned)
        is_noted = is_moved and context.home is not None  # how far the source was read
        outputs = partial(context.ends.outputs, part, reads=not is_noted)
        engine: type[Engine] = Engine
        received = [
            one.name for one in plan.sources if self._divides or one.name in self._repartitioned
        ]
        inputs: Callable[[], Inputs] = partial(context.ends.inputs, part)
        if self._divides:
            plan, inputs = judged(plan, plan.source_names), partial(self._divided, number)
        elif self._repartitioned:
            plan, inputs = judged(plan, self._repartitioned), partial(self._partly_divided, part)
            if context.world.guards("own_rows"):
                engine = receiver({one: self._targets(one) for one in self._repartitioned}, number)
        work = InputWork(
            context=context,
            partition=partition,
            number=number,
            shows=outputs_of(plan, 0),
            plan=plan,
            inputs=inputs,
            outputs=outputs,
            engine=engine,
            staged=is_spread(plan) or bool(self._repartitioned),
            reached=lambda: context.ends.reached(part),
            divisions=lambda: () if self._divides or part.of == 1 else context.ends.divisions(),
            received=received,
        )
        if not is_spread(plan) or transport_into(plan, 1) is not Transport.LOG:
            return work
        edge = self._changes(1)
        lanes = {target: edge.topic.lane(number, target) for target in range(edge.topic.receivers)}
        return replace(
            work,
            outputs=lambda epoch: outputs(epoch, carried=edge.carried(lanes)),
            reached=lambda: None,
            lanes=partial(edge.sent, lanes),
        )

    def _later(self, partition: int, stage: int, number: int) -> StageWork:
        """Compute a stage from the changes of the stage before."""
        context, part = self._context, Part(number, self._counts[name_of(stage)])
        edge = edge_into(context.plan, stage)
        assert edge is not None
        if edge.transport is Transport.LOG:
            upstream = partial(self._changes(stage).followed, edge.schema, number)
        else:
            assert context.exchange is not None
            upstream = partial(subscribed, context.exchange, stage, number)
        return StageWork(
            context=context,
            partition=partition,
            stage=stage,
            number=number,
            shows=outputs_of(context.plan, stage),
            senders=self._senders(stage),
            outputs=lambda epoch: context.ends.outputs(part, epoch, stage),
            upstream=upstream,
        )

    def _senders(self, stage: int) -> int:
        """Return how many partitions the stage before a stage has."""
        return self._counts[name_of(stages_of(self._context.plan)[stage].before or 0)]

    # --- edges through logs ---

    def _records(self, source: str | None = None) -> LaneEdge:
        """Return the edge from a repartitioning stage to the first one."""
        plan, inputs = self._context.plan, len(self._input_names(source))
        of = next((one for one in plan.sources if one.name == source), None)
        topic = lanes_of_records(plan, inputs, self._counts[FIRST], of)
        return self._lane_edge(topic, FIRST, has_parts=False)

    def _changes(self, stage: int) -> LaneEdge:
        """Return the event edge into a stage."""
        topic = lanes_into(self._context.plan, stage, self._senders(stage))
        return self._lane_edge(topic, name_of(stage), has_parts=True)

    def _lane_edge(self, topic: LaneTopic, receivers: str, *, has_parts: bool) -> LaneEdge:
        context = self._context

        async def resumes(number: int) -> Cut | None:
            """Return the cut of the oldest checkpoint that a receiver may resume from."""
            partition = self._assignment.partition_of(receivers, number)
            listed = await Checkpoints(context.store, context.plan.name, partition).list()
            return listed[-1].cut if listed else None

        return LaneEdge(
            topic=topic,
            world=context.world,
            home=context.home,
            resumes=resumes,
            has_parts=has_parts,
        )

    def _divided(self, number: int, source: str | None = None) -> DividedInputs:
        context, edge = self._context, self._records(source)
        names = self._input_names(source)
        lanes = dict(zip(names, edge.topic.lanes_to(number), strict=True))
        fields = [field.name for field in source_of(context.plan, names[0]).fields]
        rows, guards = context.settings.batch_rows, context.world.guards
        return DividedInputs(edge.reading(number), lanes, fields, rows, guards)

    def _partly_divided(self, part: Part) -> Inputs:
        """Return the inputs of a partition: sources read directly, and repartitioned ones."""
        divided = {source: self._divided(part.number, source) for source in self._repartitioned}
        return self._context.ends.inputs(part, divided)

    def _input_names(self, source: str | None) -> tuple[str, ...]:
        names = self._context.ends.names()
        return names[self._context.plan.source.name if source is None else source]

    def _targets(self, source: str) -> Targets:
        """Return the target partitions of a repartitioned source."""
        return Targets(self._context.ends.repartitioned[source], self._counts[FIRST])


@asynccontextmanager
async def subscribed(
    exchange: Exchange, stage: int, number: int, wake: Callable[[], None]
) -> AsyncIterator[Upstream[Any]]:
    """Subscribe to the stage before over the exchange; see ``Exchange.follow``."""
    subscription = exchange.follow(stage, number, wake)
    try:
        yield subscription
    finally:
        exchange.stop_following(subscription)


def judged(plan: Plan, sources: Container[str]) -> Plan:
    """Return the plan for records of some sources that repartitioning tasks have already checked.

    A downstream task sees only part of an input and so lags its watermark: an event far ahead of
    that part is not ahead of the input.
    """
    if not any(one.reject_future_ns is not None for one in plan.sources if one.name in sources):
        return plan  # the same object: caches by plan stay valid
    checked = (
        replace(one, reject_future_ns=None) if one.name in sources else one for one in plan.sources
    )
    return replace(plan, sources=tuple(checked))
