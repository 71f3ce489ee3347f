"""Partitions per stage, checks of their numbers, and the outputs of each stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import PlanError
from ripple.model.pipeline.topology import divided_into, is_spread, stage_of_output, stages_of
from ripple.model.window import OnCount, OnInterval
from worker.engine.routes import DIVIDING

if TYPE_CHECKING:
    from ripple.control.assignment import Assignment
    from ripple.model.pipeline.plan import Plan

FIRST = "main"


def has_state_edge(plan: Plan) -> bool:
    """Return whether partitions of different stages subscribe to each other over TCP."""
    return is_spread(plan) and any(follows(plan, stage.number) for stage in stages_of(plan))


def has_lanes(plan: Plan, *, divides: bool) -> bool:
    """Return whether stages hand records to each other in logs on the world's disk."""
    return divides or (is_spread(plan) and not follows(plan, 1))


def stage_counts(plan: Plan, *, divides: bool = False) -> tuple[tuple[str, int], ...]:
    """Return the stages of a plan by name, with their numbers of partitions.

    0: as configured for the cluster. With one partition, one engine computes all stages. divides:
    whether a stage in front repartitions the source.
    """
    first, *later = stages_of(plan)
    if later and not is_spread(plan):
        return ((FIRST, 1),)
    counts = [(name_of(stage.number), stage.partitions or 1) for stage in later]
    if divides:
        return ((DIVIDING, 0), (FIRST, divided_into(plan)), *counts)
    return ((name_of(first.number), 0), *counts)


def check_stages(plan: Plan, assignment: Assignment) -> None:
    """Raise PlanError if a plan cannot be computed with so many partitions."""
    window, divides = plan.folds[0].window, assignment.stages[0].name == DIVIDING
    if divides and window is not None and isinstance(window.trigger, OnCount | OnInterval):
        raise PlanError(
            f"{plan.name} shows partial results by {window.trigger!r}, and its records are "
            "repartitioned: partial results would depend on the order of reading"
        )
    if is_spread(plan) or len(stages_of(plan)) == 1 or len(assignment.shares) == 1:
        return
    raise PlanError(
        f"{plan.name} has an event edge after a downstream stage, which cannot write the log that "
        f"it needs: it runs with one partition, not with {len(assignment.shares)}"
    )


def sinks_of(plan: Plan, stage: int) -> frozenset[str]:
    """Return the outputs that a stage's partition writes."""
    names = (output.name for output in plan.outputs)
    return frozenset(name for name in names if stage_of_output(plan, name) == stage)


def follows(plan: Plan, stage: int) -> bool:
    """Return whether a stage's partitions subscribe to the stage before over TCP."""
    stages = stages_of(plan)
    edge = stages[stage].edge if stage < len(stages) else None
    return edge is not None and edge.kind.is_state


def name_of(stage: int) -> str:
    """Return the name of a plan's stage, by its number."""
    return FIRST if stage == 0 else f"stage-{stage}"
