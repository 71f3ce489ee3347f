"""Stages, which one partition computes alone, and the edges between them: where a plan is cut.

The rules and rejected designs: ``docs/stages.md``.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from ripple.core.frozen import frozen
from ripple.model.pipeline.nodes import TableJoin
from ripple.model.pipeline.waiting_nodes import Ask

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import Holding

N = TypeVar("N", bound="Fold | Holding")

PARTITIONS_DEFAULT = 8


class Transport(Enum):
    """How changes get from a stage to a later one."""

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


def tree_of(plan: Plan) -> Iterator[Stage]:
    """Yield the stages of a plan whose first folds fit the partitions of their sources."""
    first = first_folds(plan)
    folds, senders, at = [first], [0], {fold.name: 0 for fold in first}
    for fold in plan.folds:
        if fold.name in at:
            continue
        before = at[fold.input]
        key = key_of(folds[before][0])
        if before and key and set(key) <= set(key_of(fold)):
            folds[before].append(fold)
        else:
            folds.append([fold])
            senders.append(before)
            before = len(folds) - 1
        at[fold.name] = before
    yield Stage(0, dividing(plan, first), tuple(fold.name for fold in first), None, None)
    for number, (here, before) in enumerate(zip(folds, senders, strict=True)):
        if number:
            head, names = here[0], tuple(fold.name for fold in here)
            count = head.partitions or (PARTITIONS_DEFAULT if head.key else 1)
            yield Stage(number, key_of(head), names, count, _edge(plan, head), before)


def first_folds(plan: Plan) -> list[Fold]:
    """Return the folds of the first stage: of events, and those over them with the same division.

    The key of its first fold divides a chain. Other plans are divided by the ``keyed_by`` of the
    sources; one source without it, by the common fields of all folds, or else of all folds of
    events. With several sources without it, all folds stay.
    """
    found = {fold.name: fold for fold in plan.event_folds}
    for sources, folds in meeting(plan, plan.folds):
        by = _divided_by(plan, sources, folds)
        for fold in folds:
            stays = by is None or (by and set(by) <= set(key_of(fold)))
            if fold.input in found and stays:
                found[fold.name] = fold
    return [fold for fold in plan.folds if fold.name in found]


def meeting(plan: Plan, nodes: Iterable[N]) -> list[tuple[set[str], list[N]]]:
    """Return sources and nodes in groups, so that a source's records stay in one of them."""
    groups: list[tuple[set[str], list[N]]] = []
    for node in nodes:
        sources = {source.name for source in plan.sources_of(node.name)}
        own = [group for group in groups if group[0] & sources]
        groups = [group for group in groups if group not in own]
        sources = sources.union(*(names for names, _ in own))
        groups.append((sources, [*(one for _, others in own for one in others), node]))
    return groups


def _divided_by(
    plan: Plan, sources: Collection[str], folds: Sequence[Fold]
) -> tuple[str, ...] | None:
    """Return the fields by which the records of a group are taken to be divided.

    None if only the inputs tell.
    """
    if plan.is_chain:
        return key_of(plan.folds[0])
    said = next((one.key for one in plan.sources if one.key and one.name in sources), ())
    if said or len(plan.sources) > 1:
        return said or None
    events = [fold for fold in folds if fold in plan.event_folds]
    return shared_fields(map(key_of, folds)) or shared_fields(map(key_of, events))


def staying_why(plan: Plan) -> str | None:
    """Return why all folds are in one stage, None where they may have several.

    Rows that follow by the watermark of a partition are a stream inside it. The tables of a join
    have no edge to it.
    """
    for node in plan.waiting:
        if not isinstance(node, Ask):
            return f"the rows of {node.name} stay in their partition"
    ending = [fold.name for fold in plan.folds if fold.expiry is not None]
    if ending:
        return f"the keys of {ending[0]} end in their partition"
    joins = [join.name for join in plan.table_joins]
    return f"the rows that {joins[0]} joins meet in their partition" if joins else None


def dividing(plan: Plan, keyed: Sequence[Fold | Holding]) -> tuple[str, ...]:
    """Return the fields in the keys of all nodes; without any, the source's dividing fields."""
    if not keyed:
        return plan.source.key if len(plan.sources) == 1 else ()
    return shared_fields(map(key_of, keyed))


def shared_fields(keys: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the fields that all keys have, in the order of the first one."""
    first, *others = list(keys) or [()]
    return tuple(name for name in first if all(name in other for other in others))


def key_of(node: Fold | Holding) -> tuple[str, ...]:
    """Return the names of the fields of a node's key by which its rows may be divided.

    Of a join of tables those that both sides call alike, so that rows which meet are together: none
    where a row of the right alone has nothing there.
    """
    if isinstance(node, TableJoin):
        if node.is_many and node.how in ("right", "full"):
            return ()
        alike = {left for left, right in node.pairs if left == right}
        return tuple(member.name for member in node.key if member.name in alike)
    return tuple(member.name for member in node.key)


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
