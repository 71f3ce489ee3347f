"""The topology of a plan: its stages, and the nodes, outputs and senders of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.model.pipeline.division import undivided_why
from ripple.model.pipeline.stages import Stage, Transport, dividing, staying_why, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan

# A process works on few plans, and its parts ask for the stages again and again.
PLANS_KNOWN = 4
_known: tuple[tuple[Plan, tuple[Stage, ...]], ...] = ()


def stages_of(plan: Plan) -> tuple[Stage, ...]:
    """Cut ``plan`` wherever rows must change partition."""
    global _known  # noqa: PLW0603 - remembered whole, so that threads see all of it or nothing
    known = _known
    for one, stages in known:
        if one is plan:
            return stages
    stages = tuple(_stages(plan))
    _known = ((plan, stages), *known[: PLANS_KNOWN - 1])
    return stages


def stage_folds(plan: Plan, number: int) -> tuple[Fold, ...]:
    """Return the folds of one stage."""
    return tuple(plan.fold(name) for name in stages_of(plan)[number].folds)


def stages_after(plan: Plan, number: int) -> tuple[Stage, ...]:
    """Return the stages that follow a stage."""
    return tuple(stage for stage in stages_of(plan) if stage.before == number)


def is_spread(plan: Plan) -> bool:
    """Return whether each stage has partitions of its own, or one engine computes all of them.

    A stage that follows others cannot write a log: it does not come through the same cuts again.
    """
    later = stages_of(plan)[1:]
    return bool(later) and all(
        stage.before == 0 or transport_into(plan, stage.number) is Transport.EXCHANGE
        for stage in later
    )


def stage_of_output(plan: Plan, name: str) -> int:
    """Return the stage of an output: the first one of an output of events."""
    if not is_spread(plan):
        return 0
    of = plan.output(name).of
    return next((stage.number for stage in stages_of(plan) if of in stage.folds), 0)


def outputs_of(plan: Plan, stage: int) -> frozenset[str]:
    """Return the outputs that a stage's partitions write."""
    return frozenset(one.name for one in plan.outputs if stage_of_output(plan, one.name) == stage)


def transport_into(plan: Plan, stage: int) -> Transport | None:
    """Return how changes get to a stage's partitions; None if no stage is before it."""
    edge = stages_of(plan)[stage].edge
    return None if edge is None else edge.kind.transport


def several_stages_why(plan: Plan) -> str | None:
    """Return why a plan with branches has several stages, None where it has one."""
    for stage in () if plan.is_chain else stages_of(plan):
        if stage.edge is not None:
            edge = stage.edge
            return f"its branches are of several stages: {edge.to} divides rows of {edge.of} anew"
    return None


def _stages(plan: Plan) -> Iterator[Stage]:
    if undivided_why(plan) is None and not staying_why(plan):
        yield from tree_of(plan)
    else:
        names = tuple(fold.name for fold in plan.folds)
        yield Stage(0, dividing(plan, plan.keyed), names, None, None)
