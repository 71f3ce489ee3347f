"""Which kind of partition each stage has, and how many."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ripple.connectors.connector import Part
from ripple.errors import PlanError
from ripple.pipeline.stages import stages_of
from worker.input_partition import InputPartition
from worker.stage_partition import StagePartition, StageSite

if TYPE_CHECKING:
    from ripple.assignment import Assignment
    from ripple.pipeline.plan import Plan
    from worker.hosted import Hosted
    from worker.input_partition import Site

FIRST = "main"


def is_spread(plan: Plan) -> bool:
    """Return whether each stage has partitions of its own, or one engine computes all of them.

    An event edge cannot be followed: it is a log, which nobody here writes yet.
    """
    edges = [stage.edge for stage in stages_of(plan) if stage.edge is not None]
    return bool(edges) and all(edge.kind.is_state for edge in edges)


def stage_counts(plan: Plan) -> tuple[tuple[str, int], ...]:
    """Return the stages of a plan by name, with how many partitions each has.

    0: as many as the cluster says. One engine computes all stages, if there is one partition.
    """
    first, *later = stages_of(plan)
    if later and not is_spread(plan):
        return ((FIRST, 1),)
    counts = [(_name(stage.number), stage.partitions or 1) for stage in later]
    return ((_name(first.number), 0), *counts)


def check_stages(plan: Plan, assignment: Assignment) -> None:
    """Raise PlanError where a plan cannot be computed with so many partitions."""
    if is_spread(plan) or len(stages_of(plan)) == 1 or len(assignment.shares) == 1:
        return
    raise PlanError(
        f"{plan.name} has an event edge between its stages, which needs a log in between: for now "
        f"it runs with one partition, not with {len(assignment.shares)}"
    )


def sinks_of(plan: Plan, stage: int) -> frozenset[str]:
    """Return the outputs that a partition of a stage writes."""
    if not is_spread(plan):
        return frozenset(output.name for output in plan.outputs)
    folds = stages_of(plan)[stage].folds
    return frozenset(output.name for output in plan.outputs if output.of in folds)


def hosted_of(site: Site, assignment: Assignment, partition: int) -> Hosted:
    """Return what hosts a partition of the assignment."""
    name, number = assignment.place_of(partition)
    counts = {stage.name: stage.partitions for stage in assignment.stages}
    stage = list(counts).index(name)
    if stage == 0:
        return InputPartition(site, number)
    assert site.exchange is not None
    part = Part(number, counts[name])
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
            counts[_name(stage - 1)],
            site.settings,
            partial(site.tell, partition),
        )
    )


def _name(stage: int) -> str:
    return FIRST if stage == 0 else f"stage-{stage}"
