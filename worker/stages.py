"""Which kind of partition each stage has, and how many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.errors import PlanError
from ripple.pipeline.stages import stages_of
from worker.input_partition import InputPartition

if TYPE_CHECKING:
    from ripple.assignment import Assignment
    from ripple.pipeline.plan import Plan
    from worker.hosted import Hosted
    from worker.input_partition import Site

FIRST = "main"


def stage_counts(plan: Plan) -> tuple[tuple[str, int], ...]:
    """Return the stages of a plan by name, with how many partitions each has.

    0: as many as the cluster says. One engine computes all stages, if there is one partition.
    """
    return ((FIRST, 0 if len(stages_of(plan)) == 1 else 1),)


def check_stages(plan: Plan, assignment: Assignment) -> None:
    """Raise PlanError where a plan cannot be computed with so many partitions."""
    if len(stages_of(plan)) > 1 and len(assignment.shares) > 1:
        raise PlanError(
            f"{plan.name} has {len(stages_of(plan))} stages, and later stages need the exchange: "
            f"for now it runs with one partition, not with {len(assignment.shares)}"
        )


def hosted_of(site: Site, stage: str, number: int) -> Hosted:
    """Return what hosts partition ``number`` of a stage."""
    assert stage == FIRST, f"there is no stage {stage}"
    return InputPartition(site, number)
