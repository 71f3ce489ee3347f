"""Changes of the partition counts of a pipeline's stages: their limits, and the rows that move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.cluster.deploying.standing import topic_at
from ripple.cli.lib.output_forms import many
from ripple.control.assignment import stage_names
from ripple.core.errors import InputError
from ripple.model.pipeline.topology import outputs_of, stage_of_output, stages_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ripple.control.assignment import Stage as Assigned
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.stages import Stage


def problems_of(
    plan: Plan, was: Sequence[Assigned], counts: Sequence[tuple[str, int]]
) -> Iterator[str]:
    """Yield the problems of stages with other partition counts.

    was: the stages of the cluster. counts: of the plan, by the same names, 0 for any.
    """
    stages = _by_name(plan, [name for name, _ in counts])
    for before, (name, count) in zip(was, counts, strict=True):
        if count in (0, before.partitions):
            continue
        changes = f"stage {name} has {many(before.partitions, 'partition')}, and would have {count}"
        stage = stages.get(name)
        if stage is None:
            yield f"{changes}: it divides records anew; name another store and other outputs"
        elif count % before.partitions and before.partitions % count:
            more = f"a multiple, as partitions={2 * before.partitions}"
            if stage.number == stages_of(plan)[0].number:
                more = "with --partitions a multiple that divides its source's"
            yield f"{changes}: say {more}, or a number that divides it"
        else:
            yield from _of_stage(plan, stage, changes)


def _of_stage(plan: Plan, stage: Stage, changes: str) -> Iterator[str]:
    for output in plan.outputs:
        if output.name not in outputs_of(plan, stage.number):
            continue
        if output.is_stream:
            yield (
                f"{changes}: its output {output.name!r} has events, which are not taken back; name "
                "another store and other outputs"
            )
        elif plan.frees(plan.fold(output.of)):
            yield (
                f"{changes}: its output {output.name!r} has final rows, which are in no state that "
                "could be divided; name another store and other outputs"
            )


def undivided(sources: Iterable[tuple[str, int]], count: int) -> list[str]:
    """Return the problems of dividing sources' records among ``count`` partitions, 0 for any.

    sources: the partitions of each.
    """
    return [
        f"source {name!r} has {many(there, 'partition')}, which {count} does not divide: say one "
        "that does, or give the source more (of Kafka, by its broker; a log, as a new one)"
        for name, there in sources
        if count and there % count
    ]


def counts_by_output(plan: Plan, counts: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Return the partition counts of outputs, as far as the plan has them."""
    by_stage = {
        stage.number: count
        for (_, stage), (_, count) in zip(
            _by_name(plan, [name for name, _ in counts]).items(),
            [one for one in counts if not stage_names.divides(one[0])],
            strict=True,
        )
    }
    found = {one.name: by_stage.get(stage_of_output(plan, one.name), 0) for one in plan.outputs}
    return {name: count for name, count in found.items() if count}


def let_take(outputs: Mapping[str, str], previews: Mapping[str, str]) -> None:
    """Let the topics of outputs take as many writers as their previews have. URIs by output.

    Raises InputError, TopicError and OSError.
    """
    for name, place in outputs.items():
        topic, preview = topic_at(place), topic_at(previews[name])
        if topic is not None and preview is not None:
            topic.divided(preview.partitions)


def problem_of_topic(name: str, place: str, count: int | None) -> str | None:
    """Return the problem of dividing the topic of an output, None for none."""
    topic = topic_at(place)
    there = 0 if topic is None else topic.partitions
    if not there or not count or there % count == 0 or count % there == 0:
        return None
    return (
        f"output {name!r}: {place} has {many(there, 'partition')}, and {count} neither divides "
        "them nor is a multiple of them: say another number"
    )


def moving(before: int, count: int) -> str:
    """Return the share of rows that move to other partitions, as text, "" for none."""
    fewer, more = sorted((before, count))
    if not fewer or fewer == more:
        return ""
    if more % fewer:
        return f", {before} before"
    return f", {before} before: of every {more} rows of its outputs, {more - fewer} move"


def mates(number: int, count: int, other: int) -> range:
    """Return the partitions of ``other`` with rows of partition ``number`` of ``count``."""
    if count >= other:
        return range(number % other, number % other + 1)
    return range(number, other, count)


def groups(one: int, other: int) -> Iterable[tuple[range, range]]:
    """Return the groups of partitions with the same keys, of ``one`` and of ``other``.

    Raises InputError unless one number divides the other.
    """
    fewer, more = sorted((one, other))
    if more % fewer:
        raise InputError(f"{one} and {other} partitions have no keys apart")
    return [(range(at, one, fewer), range(at, other, fewer)) for at in range(fewer)]


def _by_name(plan: Plan, names: Sequence[str]) -> dict[str, Stage]:
    """Return the stages of a plan by their names in an assignment."""
    own = [name for name in names if not stage_names.divides(name)]
    return dict(zip(own, stages_of(plan), strict=False))
