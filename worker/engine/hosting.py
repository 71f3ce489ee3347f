"""Chooses and builds the runner of each partition: its inputs, outputs, and edges."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.connector import Carried, Part
from ripple.connectors.inputs import keyed_by
from ripple.core.cut import of_sender
from ripple.engine.edges.outgoing import edge_schema
from ripple.engine.machine.router import Router
from ripple.engine.operators.division import Division
from ripple.model.pipeline.topology import is_spread, stages_of
from ripple.storage.checkpoint import Checkpoints
from ripple.task.lanes import lane_name
from ripple.task.repartition.broker_reading import BrokerReading
from ripple.task.repartition.carried import CarriedLanes
from ripple.task.repartition.follows import FollowedLanes
from ripple.task.repartition.inputs import DividedInputs
from ripple.task.repartition.lanes import SentLanes
from ripple.task.repartition.reading import LogReading
from ripple.task.repartition.topics import lanes_into, lanes_of_records
from worker.engine.routes import DIVIDING
from worker.engine.runner import Runner
from worker.engine.stages import FIRST, follows, name_of, sinks_of
from worker.engine.workload import InputWork, StageWork

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from ripple.connectors.commit_group import CommitGroup
    from ripple.connectors.inputs import Inputs
    from ripple.control.assignment import Assignment
    from ripple.core.cut import Cut
    from ripple.exchange.exchange import Exchange
    from ripple.model.pipeline.plan import Plan
    from ripple.task.edges import Upstream
    from ripple.task.lanes import Lanes
    from ripple.task.repartition.reading import LaneReading
    from ripple.task.repartition.topics import LaneTopic
    from worker.engine.context import TaskContext
    from worker.engine.workload import Workload


def runner_of(site: TaskContext, assignment: Assignment, partition: int) -> Runner:
    """Return the runner of a partition of the assignment."""
    emit, work = partial(site.emit, partition), _Workloads(site, assignment).of(partition)
    return Runner(site.world.clock, partition, emit, work, site.turns)


class _Workloads:
    """The work of each partition of an assignment."""

    def __init__(self, site: TaskContext, assignment: Assignment) -> None:
        self._site, self._assignment = site, assignment
        self._counts = {stage.name: stage.partitions for stage in assignment.stages}
        self._divides = DIVIDING in self._counts

    def of(self, partition: int) -> Workload:
        name, number = self._assignment.place_of(partition)
        if name == DIVIDING:
            return self._dividing(partition, number)
        if name == FIRST:
            return self._first(partition, number)
        return self._later(partition, list(self._counts).index(name) - self._divides, number)

    def _dividing(self, partition: int, number: int) -> InputWork:
        site, part = self._site, Part(number, self._counts[DIVIDING])
        return InputWork(
            context=site,
            partition=partition,
            number=number,
            shows=None,
            plan=site.plan,
            inputs=partial(site.ends.inputs, part),
            outputs=partial(self._dividing_outputs, part),
            engine=Router,
            staged=True,
            lanes=partial(self._sent_records, part),
        )

    def _dividing_outputs(self, part: Part, epoch: int) -> CommitGroup:
        carried = self._carried(*self._lanes_of_records(part))
        if carried is None:
            return SinkGroup({})
        return self._site.ends.outputs(part, epoch, None, carried=carried)

    def _sent_records(self, part: Part, outputs: CommitGroup) -> Lanes:
        receivers = self._counts[FIRST]
        return self._sent(
            *self._lanes_of_records(part),
            outputs,
            lambda target: self._needed(FIRST, target % receivers),
        )

    def _lanes_of_records(self, part: Part) -> tuple[LaneTopic, dict[int, int]]:
        """Return the repartition topic, and the lanes that lead to a partition's targets."""
        site, receivers = self._site, self._counts[FIRST]
        names = self._input_names()
        lanes = lanes_of_records(site.plan, len(names), receivers)
        own = [names.index(name) for name in site.ends.inputs(part).names]
        return lanes, {
            at * receivers + receiver: lanes.lane(sender, receiver)
            for at, sender in enumerate(own)
            for receiver in range(receivers)
        }

    def _sent(
        self,
        lanes: LaneTopic,
        numbers: dict[int, int],
        outputs: CommitGroup,
        needed: Callable[[int], Awaitable[Cut | None]],
    ) -> Lanes:
        """Return a sender's outgoing lanes. needed: the cut from which a target may read again."""
        site = self._site
        if site.home is not None:
            return CarriedLanes(lanes.schema, numbers, outputs, site.world.guards)
        return SentLanes(partial(lanes.open, site.world.disk), numbers, site.world, needed)

    def _carried(self, lanes: LaneTopic, numbers: dict[int, int]) -> Carried | None:
        if self._site.home is None:
            return None
        named = {lane_name(target): number for target, number in numbers.items()}
        place = self._site.home.place(lanes.topic)
        return Carried(place, lanes.senders * lanes.receivers, named)

    def _reading(
        self,
        topic: LaneTopic,
        lanes: Sequence[int],
        needed: Callable[[], Awaitable[Mapping[int, Cut]]],
    ) -> LaneReading:
        """Return the reader of lanes. needed: the cut from which each may be read again."""
        world, home = self._site.world, self._site.home
        if home is None:
            return LogReading(partial(topic.open, world.disk), lanes, world.executor)
        return BrokerReading(
            home.broker, topic, lanes, world.clock, needed=needed, executor=world.executor
        )

    def _first(self, partition: int, number: int) -> InputWork:
        site, plan, part = self._site, self._site.plan, Part(number, self._counts[FIRST])
        is_logged = is_spread(plan) and not follows(plan, 1)

        def inputs() -> Inputs:
            return self._divided(number) if self._divides else site.ends.inputs(part)

        return InputWork(
            context=site,
            partition=partition,
            number=number,
            shows=sinks_of(plan, 0),
            plan=judged(plan) if self._divides else plan,
            inputs=inputs,
            outputs=partial(self._first_outputs, part, is_logged=is_logged),
            staged=is_spread(plan),
            reached=lambda: None if is_logged else site.ends.reached(part),
            lanes=partial(self._sent_changes, number) if is_logged else None,
            division=lambda: None if self._divides or part.of == 1 else self._division(),
        )

    def _first_outputs(self, part: Part, epoch: int, *, is_logged: bool) -> CommitGroup:
        carried = self._carried(*self._lanes_of_changes(part.number)) if is_logged else None
        reads = not self._divides or self._site.home is None  # else they are noted already
        return self._site.ends.outputs(part, epoch, carried=carried, reads=reads)

    def _division(self) -> Division | None:
        """Return the partitioner of the input, if it declares one."""
        whole = self._site.ends.inputs(Part(0, 1))
        key = keyed_by(whole)
        if not key:
            return None
        return Division(key, {name: at for at, name in enumerate(whole.names)}, len(whole.names))

    def _divided(self, number: int) -> DividedInputs:
        site, names = self._site, self._input_names()
        topic = lanes_of_records(site.plan, len(names), self._counts[FIRST])
        lanes = {name: topic.lane(sender, number) for sender, name in enumerate(names)}

        async def needed() -> dict[int, Cut]:
            cut = await self._needed(FIRST, number)
            return {} if cut is None else dict.fromkeys(lanes.values(), cut)

        return DividedInputs(
            self._reading(topic, list(lanes.values()), needed),
            lanes,
            [field.name for field in site.plan.source.fields],
            site.settings.batch_rows,
        )

    def _lanes_of_changes(self, number: int) -> tuple[LaneTopic, dict[int, int]]:
        lanes = lanes_into(self._site.plan, 1, self._counts[FIRST])
        return lanes, {target: lanes.lane(number, target) for target in range(lanes.receivers)}

    def _sent_changes(self, number: int, outputs: CommitGroup) -> Lanes:
        async def needed(target: int) -> Cut | None:
            cut = await self._needed(name_of(1), target)
            return None if cut is None else of_sender(cut, str(number))

        return self._sent(*self._lanes_of_changes(number), outputs, needed)

    async def _needed(self, stage: str, number: int) -> Cut | None:
        """Return the cut of the oldest checkpoint that a partition may resume from."""
        site = self._site
        partition = self._assignment.partition_of(stage, number)
        listed = await Checkpoints(site.store, site.plan.name, partition).list()
        return listed[-1].cut if listed else None

    def _input_names(self) -> tuple[str, ...]:
        return self._site.ends.inputs(Part(0, 1)).names

    def _later(self, partition: int, stage: int, number: int) -> StageWork:
        site, part = self._site, Part(number, self._counts[name_of(stage)])
        upstream = partial(self._followed, stage, number)
        if follows(site.plan, stage):
            assert site.exchange is not None
            upstream = partial(subscribed, site.exchange, stage, number)
        return StageWork(
            context=site,
            partition=partition,
            stage=stage,
            number=number,
            shows=sinks_of(site.plan, stage),
            senders=self._counts[name_of(stage - 1)],
            outputs=lambda epoch: site.ends.outputs(part, epoch, stage),
            upstream=upstream,
        )

    @asynccontextmanager
    async def _followed(
        self, stage: int, number: int, wake: Callable[[], None]
    ) -> AsyncIterator[Upstream[Any]]:
        plan = self._site.plan
        topic = lanes_into(plan, stage, self._counts[name_of(stage - 1)])
        lanes = [topic.lane(sender, number) for sender in range(topic.senders)]

        async def needed() -> dict[int, Cut]:
            cut = await self._needed(name_of(stage), number) or {}
            found = {lane: of_sender(cut, str(sender)) for sender, lane in enumerate(lanes)}
            return {lane: one for lane, one in found.items() if one is not None}

        edge = edge_schema(plan, stages_of(plan)[stage])
        followed = FollowedLanes(self._reading(topic, lanes, needed), lanes, edge, wake)
        try:
            yield followed
        finally:
            await followed.stop()


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


def judged(plan: Plan) -> Plan:
    """Return the plan for records that the repartitioning tasks have already checked.

    A downstream task sees only part of an input and so lags its watermark: an event far ahead of
    that part is not ahead of the input.
    """
    return replace(plan, source=replace(plan.source, reject_future_ns=None))
