"""The topology of a plan: a tree of stages that one partition computes alone, and its edges.

Reading :mod:`ripple.model.pipeline.plan` only. The rules and rejected designs: ``docs/stages.md``.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.pipeline.copartition import unlike_why

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ripple.model.pipeline.plan import Fold, Plan

PARTITIONS_DEFAULT = 8


class Transport(Enum):
    """How changes get from a stage to one that follows it."""

    EXCHANGE = "exchange"
    """Over connections: the receiver has a copy, which the sender's table can replace."""
    LOG = "log"
    """Through a durable log, which is read again."""


class EdgeKind(Enum):
    """Kinds of edges between stages; ``ripple.engine.edges.kinds`` has their ends."""

    PARTIAL = "partial"
    ROW = "row"
    EVENT = "event"

    @property
    def transport(self) -> Transport:
        """How changes get to the stage that follows."""
        return Transport.LOG if self is EdgeKind.EVENT else Transport.EXCHANGE


@frozen
class Edge:
    """How rows of fold ``of`` come to fold ``to``, which begins a stage. why: for people."""

    of: str
    to: str
    kind: EdgeKind
    why: str

    def as_values(self) -> dict[str, str]:
        """Return it as JSON values, for people."""
        return {"of": self.of, "to": self.to, "kind": self.kind.value, "why": self.why}


@frozen
class Stage:
    """Folds that one partition computes from its own rows alone.

    number: from 0. key: the names of the fields that choose the partition by their hash, () for one
    total. partitions: how many there are; None for the first stage, which has as many as are
    configured. edge: the incoming one; None for the first stage, which reads the source. before:
    the number of the stage that sends over it. Several stages may have the same one before them.
    """

    number: int
    key: tuple[str, ...]
    folds: tuple[str, ...]
    partitions: int | None
    edge: Edge | None
    before: int | None = None


# A process works on one plan, and its parts ask for the stages again and again.
_newest: tuple[Plan, tuple[Stage, ...]] | None = None


def stages_of(plan: Plan) -> tuple[Stage, ...]:
    """Cut ``plan`` wherever rows must change partition."""
    global _newest  # noqa: PLW0603 - remembered whole, so that threads see all of it or nothing
    known = _newest
    if known is None or known[0] is not plan:
        known = _newest = plan, tuple(_stages(plan))
    return known[1]


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


def divided_into(plan: Plan) -> int:
    """Return among how many partitions of the first stage records are divided anew, where so."""
    return plan.folds[0].partitions or PARTITIONS_DEFAULT


def divided_why(plan: Plan, keyed_by: tuple[str, ...] | None = None) -> str | None:
    """Return why the records of the source must be divided anew; None where they need not be.

    keyed_by: the fields by which the input that there is was divided, () for nothing, None where
    nothing is known of it. What the pipeline says counts before.
    """
    if not plan.is_chain:
        return None  # its records are divided as they must be, or it is refused
    first, source = plan.folds[0], plan.source
    key = ", ".join(_key_of(first))
    if first.via_log:
        return "asked for by via='log'"
    known = source.key or keyed_by
    if known is None or (known and set(known) <= set(_key_of(first))):
        return None
    by = f"by {', '.join(known)}" if known else "by nothing"
    return f"records of {source.name} are divided {by}, and {first.name} needs all of one {key}"


def undivided_why(
    plan: Plan, keyed_by: Mapping[str, tuple[str, ...] | None] | None = None
) -> str | None:
    """Return why the partitions of the sources do not fit all branches, None where they do.

    keyed_by: of each source, by its name, as for ``divided_why``, which says the same of a chain;
    None before the inputs are known.
    """
    if plan.is_chain:
        return None
    if len(plan.sources) > 1:
        return waiting_why(plan) or unlike_why(plan, keyed_by)
    alone = waiting_why(plan) or _event_edge_why(plan)
    if alone is not None or not plan.folds:
        return alone
    source, by = plan.source, {fold.name: _key_of(fold) for fold in _first_folds(plan)}
    known = source.key or (keyed_by or {}).get(source.name)
    if known is not None:
        for name, key in by.items():
            if not known or not set(known) <= set(key):
                why = (
                    f"records of {source.name} are divided by {', '.join(known) or 'nothing'}, and "
                    f"{name} needs all of one {', '.join(key) or 'total'}"
                )
                if known and plan.fold(name) not in plan.event_folds:
                    why += f", for which .source(..., key={list(known)!r}) makes a stage"
                return why
    if not _shared(by.values()):
        keys = ", ".join(f"{name} is by {', '.join(key) or '()'}" for name, key in by.items())
        return f"its folds have no field of their keys in common: {keys}"
    return None


def waiting_why(plan: Plan) -> str | None:
    """Return why a plan needs one process, None where no node waits for the watermark."""
    names = [node.name for node in plan.waiting]
    if names:
        return f"the rows of {names[0]} are a stream of one process"
    ending = [fold.name for fold in plan.folds if fold.expiry is not None]
    return f"the keys of {ending[0]} end by ttl= in one process" if ending else None


def _event_edge_why(plan: Plan) -> str | None:
    """Return which fold of a plan with branches needs an event edge, None where none does."""
    through = [fold.name for fold in plan.folds if fold.via_log]
    if through:
        return f"{through[0]} asks for via='log', and there is no log between branches"
    for edge in (stage.edge for stage in _tree(plan)):
        if edge is not None and edge.kind.transport is Transport.LOG:
            return (
                f"{edge.to} needs an event edge from {edge.of} ({edge.why}), and there is no log "
                "between branches"
            )
    return None


def need_one_division(
    plan: Plan, where: str, keyed_by: Mapping[str, tuple[str, ...] | None] | None = None
) -> None:
    """Raise PlanError for branches that ``where`` cannot compute in partitions of the sources.

    keyed_by: as for ``undivided_why``.
    """
    need_no_idle(plan, where)
    why = undivided_why(plan, keyed_by)
    if why is not None and len(plan.sources) > 1:
        raise PlanError(
            f"pipeline {plan.name!r} has the sources {plan.source_names}, which {where} reads in "
            f"partitions divided alike, and {why}; or run it in one process, with ripple run or "
            "rp.run"
        )
    if why is not None:
        raise PlanError(
            f"pipeline {plan.name!r} has branches, which {where} computes in the partitions of its "
            f"source, and {why}: run it in one process, with ripple run or rp.run, or make a "
            "pipeline of each branch"
        )
    table = next((one.name for one in plan.sources if one.table is not None), None)
    divided = None if table is None else divided_why(plan, (keyed_by or {}).get(table))
    if divided is not None:
        raise PlanError(
            f"pipeline {plan.name!r}: {where} leaves the records of the table {table!r} in the "
            f"partitions of their topic, where offsets tell the newest of a key, and {divided}: "
            "let the topic be written by that key, or run it in one process"
        )


def need_no_table(plan: Plan, where: str) -> None:
    """Raise PlanError for tables from topics: ``where`` reads events alone."""
    for source in plan.sources:
        if source.table is not None:
            raise PlanError(
                f"pipeline {plan.name!r} reads the table {source.name!r}, and {where} takes "
                "pipelines over events alone: run it in one process, with ripple run or rp.run, "
                "or on a cluster"
            )


def need_no_idle(plan: Plan, where: str) -> None:
    """Raise PlanError for a source with ``idle``: ``where`` reads no markers of idle inputs."""
    for source in plan.sources:
        if source.idle_ns is not None:
            raise PlanError(
                f"source {source.name!r} has idle=, and {where} reads no markers of idle inputs: "
                "run it in one process, with ripple run or rp.run, or leave idle= out"
            )


def several_stages_why(plan: Plan) -> str | None:
    """Return why a plan with branches has several stages, None where it has one."""
    for stage in () if plan.is_chain else stages_of(plan):
        if stage.edge is not None:
            edge = stage.edge
            return f"its branches are of several stages: {edge.to} divides rows of {edge.of} anew"
    return None


def need_chain(plan: Plan, where: str) -> None:
    """Raise PlanError unless ``plan`` is a chain: ``where`` computes no other."""
    plan.need_one_source(where)
    if not plan.is_chain:
        raise PlanError(
            f"pipeline {plan.name!r} has branches, a flat_map or a sink of events, and {where} "
            "computes chains of folds alone: run it in one process, with ripple run or rp.run"
        )


def _stages(plan: Plan) -> Iterator[Stage]:
    if undivided_why(plan) is None and len(plan.sources) == 1:
        yield from _tree(plan)
    else:
        names = tuple(fold.name for fold in plan.folds)
        yield Stage(0, _dividing(plan, plan.folds), names, None, None)


def _tree(plan: Plan) -> Iterator[Stage]:
    """Yield the stages of a plan whose first folds are divided in one way."""
    first = _first_folds(plan)
    folds, senders, at = [first], [0], {fold.name: 0 for fold in first}
    for fold in plan.folds:
        if fold.name in at:
            continue
        before = at[fold.input]
        key = _key_of(folds[before][0])
        if before and key and set(key) <= set(_key_of(fold)):
            folds[before].append(fold)
        else:
            folds.append([fold])
            senders.append(before)
            before = len(folds) - 1
        at[fold.name] = before
    yield Stage(0, _dividing(plan, first), tuple(fold.name for fold in first), None, None)
    for number, (here, before) in enumerate(zip(folds, senders, strict=True)):
        if number:
            head, names = here[0], tuple(fold.name for fold in here)
            count = head.partitions or (PARTITIONS_DEFAULT if head.key else 1)
            yield Stage(number, _key_of(head), names, count, _edge(plan, head), before)


def _first_folds(plan: Plan) -> list[Fold]:
    """Return the folds of the first stage: of events, and those over them with the same division.

    Of a chain the key of its first fold divides them. Otherwise it is what the source says, or the
    fields that all folds have in common, or, where there are none, those that all folds of events
    have.
    """
    if plan.is_chain:
        by = _key_of(plan.folds[0])
    else:
        by = plan.source.key or _shared(map(_key_of, plan.folds))
        by = by or _shared(map(_key_of, plan.event_folds))
    found = {fold.name: fold for fold in plan.event_folds}
    for fold in plan.folds:
        if fold.input in found and by and set(by) <= set(_key_of(fold)):
            found[fold.name] = fold
    return [fold for fold in plan.folds if fold.name in found]


def _dividing(plan: Plan, folds: Sequence[Fold]) -> tuple[str, ...]:
    """Return the fields in the keys of all folds; without folds, the source's dividing fields."""
    if not folds:
        return plan.source.key if len(plan.sources) == 1 else ()
    return _shared(map(_key_of, folds))


def _shared(keys: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the fields that all keys have, in the order of the first one."""
    first, *others = list(keys) or [()]
    return tuple(name for name in first if all(name in other for other in others))


def _key_of(fold: Fold) -> tuple[str, ...]:
    return tuple(member.name for member in fold.key)


def _edge(plan: Plan, fold: Fold) -> Edge:
    """Return the first kind of edge that is possible, and why it is that one."""
    above = plan.fold(fold.input)

    def edge(kind: EdgeKind, why: str) -> Edge:
        return Edge(above.name, fold.name, kind, why)

    if fold.via_log:
        return edge(EdgeKind.EVENT, "asked for by via='log'")
    whole = [one.name for one in fold.aggregates if not one.aggregate.decomposes]
    if not whole:
        return edge(EdgeKind.PARTIAL, "every aggregate decomposes into exact accumulators")
    needs = f"{', '.join(whole)} {'needs' if len(whole) == 1 else 'need'} the rows themselves"
    if not plan.frees(above):
        return edge(EdgeKind.ROW, f"{needs}, and {above.name} keeps them all")
    if plan.frees(fold):
        return edge(EdgeKind.ROW, f"{needs}, and groups end with the window of {above.name}")
    return edge(EdgeKind.EVENT, f"{needs}, and groups outlive the windows of {above.name}")
