"""Which kind of partition each stage has, and how many."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ripple.checkpoint import Checkpoints
from ripple.connectors.connector import Part
from ripple.engine import Engine
from ripple.engine.division import Division
from ripple.engine.outgoing import edge_schema
from ripple.engine.router import Router
from ripple.errors import PlanError
from ripple.partition.group import SinkGroup
from ripple.pipeline.stages import divided_into, stages_of
from ripple.repartition.follows import FollowedLanes
from ripple.repartition.inputs import DividedInputs
from ripple.repartition.lanes import SentLanes
from ripple.repartition.topics import lanes_into, lanes_of_records
from ripple.window import OnCount, OnInterval
from worker.input_partition import Duty, InputPartition
from worker.routes import DIVIDING
from worker.stage_partition import StagePartition, StageSite

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.assignment import Assignment
    from ripple.connectors.inputs import Inputs
    from ripple.cut import Cut
    from ripple.pipeline.plan import Plan
    from worker.hosted import Hosted
    from worker.input_partition import Site

FIRST = "main"


def is_spread(plan: Plan) -> bool:
    """Return whether each stage has partitions of its own, or one engine computes all of them.

    A stage that follows others cannot write a log: it does not come through the same cuts again.
    """
    edges = [stage.edge for stage in stages_of(plan) if stage.edge is not None]
    return bool(edges) and all(edge.kind.is_state for edge in edges[1:])


def has_state_edge(plan: Plan) -> bool:
    """Return whether partitions of different stages follow each other over TCP."""
    return is_spread(plan) and any(_follows(plan, stage.number) for stage in stages_of(plan))


def stage_counts(plan: Plan, *, divides: bool = False) -> tuple[tuple[str, int], ...]:
    """Return the stages of a plan by name, with how many partitions each has.

    0: as many as the cluster says. One engine computes all stages, if there is one partition.
    divides: whether the source's records are divided anew, by a stage in front.
    """
    first, *later = stages_of(plan)
    if later and not is_spread(plan):
        return ((FIRST, 1),)
    counts = [(_name(stage.number), stage.partitions or 1) for stage in later]
    if divides:
        return ((DIVIDING, 0), (FIRST, divided_into(plan)), *counts)
    return ((_name(first.number), 0), *counts)


def check_stages(plan: Plan, assignment: Assignment) -> None:
    """Raise PlanError where a plan cannot be computed with so many partitions."""
    window, divides = plan.folds[0].window, assignment.stages[0].name == DIVIDING
    if divides and window is not None and isinstance(window.trigger, OnCount | OnInterval):
        raise PlanError(
            f"{plan.name} shows partial results by {window.trigger!r}, and its records are divided "
            "anew on their way: what would be shown depends on the order of reading"
        )
    if is_spread(plan) or len(stages_of(plan)) == 1 or len(assignment.shares) == 1:
        return
    raise PlanError(
        f"{plan.name} has an event edge behind a stage that follows others, which cannot write the "
        f"log that it needs: it runs with one partition, not with {len(assignment.shares)}"
    )


def sinks_of(plan: Plan, stage: int) -> frozenset[str]:
    """Return the outputs that a partition of a stage writes."""
    if not is_spread(plan):
        return frozenset(output.name for output in plan.outputs)
    folds = stages_of(plan)[stage].folds
    return frozenset(output.name for output in plan.outputs if output.of in folds)


def hosted_of(site: Site, assignment: Assignment, partition: int) -> Hosted:
    """Return what hosts a partition of the assignment."""
    return _Hosting(site, assignment).of(partition)


class _Hosting:
    """What hosts the partitions of an assignment."""

    def __init__(self, site: Site, assignment: Assignment) -> None:
        self._site, self._assignment = site, assignment
        self._counts = {stage.name: stage.partitions for stage in assignment.stages}
        self._divides = DIVIDING in self._counts

    def of(self, partition: int) -> Hosted:
        name, number = self._assignment.place_of(partition)
        if name == DIVIDING:
            return InputPartition(self._site, partition, self._dividing(number))
        if name == FIRST:
            return InputPartition(self._site, partition, self._first(number))
        return self._later(list(self._counts).index(name) - self._divides, number, partition)

    def _dividing(self, number: int) -> Duty:
        site, part = self._site, Part(number, self._counts[DIVIDING])
        return Duty(
            number,
            site.plan,
            inputs=partial(site.ends.inputs, part),
            outputs=lambda _: SinkGroup({}),
            engine=Router,
            staged=True,
            lanes=lambda: self._lanes_of_records(part),
        )

    def _lanes_of_records(self, part: Part) -> SentLanes:
        site, receivers = self._site, self._counts[FIRST]
        names = self._input_names()
        lanes = lanes_of_records(site.plan, len(names), receivers)
        own = [names.index(name) for name in site.ends.inputs(part).names]
        numbers = {
            at * receivers + receiver: lanes.lane(sender, receiver)
            for at, sender in enumerate(own)
            for receiver in range(receivers)
        }
        return SentLanes(
            partial(lanes.open, site.world.disk),
            numbers,
            site.world,
            lambda target: self._needed(FIRST, target % receivers),
        )

    def _first(self, number: int) -> Duty:
        site, plan, part = self._site, self._site.plan, Part(number, self._counts[FIRST])
        is_logged = is_spread(plan) and not _follows(plan, 1)

        def inputs() -> Inputs:
            return self._divided(number) if self._divides else site.ends.inputs(part)

        return Duty(
            number,
            _judged(plan) if self._divides else plan,
            inputs=inputs,
            outputs=lambda epoch: site.ends.outputs(part, epoch),
            engine=Engine,
            staged=is_spread(plan),
            reached=None if is_logged else lambda: site.ends.reached(part),
            lanes=partial(self._lanes_of_changes, number) if is_logged else None,
            division=None if self._divides or part.of == 1 else self._division(),
        )

    def _division(self) -> Division | None:
        """Return how the input is divided, if it says so."""
        whole = self._site.ends.inputs(Part(0, 1))
        key: tuple[str, ...] | None = getattr(whole, "keyed_by", None)
        if not key:
            return None
        return Division(key, {name: at for at, name in enumerate(whole.names)}, len(whole.names))

    def _divided(self, number: int) -> DividedInputs:
        site, names = self._site, self._input_names()
        lanes = lanes_of_records(site.plan, len(names), self._counts[FIRST])
        return DividedInputs(
            partial(lanes.open, site.world.disk),
            {name: lanes.lane(sender, number) for sender, name in enumerate(names)},
            [field.name for field in site.plan.source.fields],
            site.settings.batch_rows,
        )

    def _lanes_of_changes(self, number: int) -> SentLanes:
        site, name = self._site, _name(1)
        lanes = lanes_into(site.plan, 1, self._counts[FIRST])

        async def needed(target: int) -> Cut | None:
            cut, prefix = await self._needed(name, target), f"{number}/"
            if cut is None:
                return None
            return {of.removeprefix(prefix): at for of, at in cut.items() if of.startswith(prefix)}

        return SentLanes(
            partial(lanes.open, site.world.disk),
            {target: lanes.lane(number, target) for target in range(lanes.receivers)},
            site.world,
            needed,
        )

    async def _needed(self, stage: str, number: int) -> Cut | None:
        """Return the cut of the oldest checkpoint that a partition may go on from."""
        site = self._site
        partition = self._first_of(stage) + number
        listed = await Checkpoints(site.store, site.plan.name, partition).list()
        return listed[-1].cut if listed else None

    def _first_of(self, stage: str) -> int:
        """Return the number of a stage's first partition among all."""
        names = list(self._counts)
        return sum(self._counts[name] for name in names[: names.index(stage)])

    def _input_names(self) -> tuple[str, ...]:
        return self._site.ends.inputs(Part(0, 1)).names

    def _later(self, stage: int, number: int, partition: int) -> Hosted:
        site, part = self._site, Part(number, self._counts[_name(stage)])
        senders = self._counts[_name(stage - 1)]
        return StagePartition(
            StageSite(
                site.world,
                site.plan,
                site.store,
                site.exchange,
                lambda epoch: site.ends.outputs(part, epoch, stage),
                partition,
                stage,
                number,
                senders,
                site.settings,
                partial(site.tell, partition),
                None if _follows(site.plan, stage) else partial(self._followed, stage, number),
            )
        )

    def _followed(self, stage: int, number: int, wake: Callable[[], None]) -> FollowedLanes:
        plan = self._site.plan
        lanes = lanes_into(plan, stage, self._counts[_name(stage - 1)])
        return FollowedLanes(
            partial(lanes.open, self._site.world.disk),
            [lanes.lane(sender, number) for sender in range(lanes.senders)],
            edge_schema(plan, stages_of(plan)[stage]),
            wake,
        )


def _judged(plan: Plan) -> Plan:
    """Return the plan for records that were judged by who divides them.

    Whoever has a part of an input is behind its watermark: what is too far ahead of that is not.
    """
    return replace(plan, source=replace(plan.source, reject_future_ns=None))


def _follows(plan: Plan, stage: int) -> bool:
    """Return whether partitions of a stage follow those before over TCP."""
    stages = stages_of(plan)
    edge = stages[stage].edge if stage < len(stages) else None
    return edge is not None and edge.kind.is_state


def _name(stage: int) -> str:
    return FIRST if stage == 0 else f"stage-{stage}"
