"""State of one stage's partition, where the code of its pipeline has changed.

A partition's rows were sent to other stages, and their results were written. So a partition can
resume from its state only where all partitions of all stages would have the same results: where
every record, fold and step is unchanged. Names may differ, and outputs may come and go.

A new branch may stand beside them if all of it is computed by the first stage: partitions there
compute everything from the first record of the source, and get the same rows for later stages,
which resume.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.engine.edges.kinds import PartialEdge, RowEdge, edge_into
from ripple.engine.migration.lineage import (
    Lineage,
    Node,
    first_change,
    lineage_of,
    source_change,
    source_count,
)
from ripple.engine.snapshots.snapshot import uncomputable_counter
from ripple.model.canonical import digest_of
from ripple.model.pipeline.topology import outputs_of, stages_of

if TYPE_CHECKING:
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan


def staying(plan: Plan, snapshot: Snapshot) -> tuple[Snapshot, tuple[str, ...]]:
    """Return the snapshot of a stage's partition in the plan's names, and why it does not fit.

    Without reasons the engine of that stage takes it. The first stage's snapshot lacks the
    state of a new branch.
    """
    if snapshot.topology_hash == plan.topology_hash:
        return snapshot, tuple(_edge_changed(plan, snapshot))
    if not snapshot.nodes:
        return snapshot, ("the checkpoint does not say of what it is",)
    written = _written(plan, snapshot)
    if reasons := _changed(plan, snapshot, written):
        return snapshot, tuple(reasons)
    if not snapshot.stage and (new := _new(plan, written)):
        return snapshot, tuple(f"{node.kind} {node.name!r} is new" for node in new)
    named = _in_present_names(plan, snapshot, written)
    return named, (*_edge_changed(plan, named), *_newly_shown(plan, named))


def is_only_more(plan: Plan, snapshot: Snapshot) -> bool:
    """Tell whether the first stage can compute everything from the first record, beside the others.

    Its new output reveals the change. While that output is empty, the others are muted up to their
    cuts, so that no reader sees a difference.
    """
    if snapshot.stage != 0 or not snapshot.nodes:
        return False
    written = _written(plan, snapshot)
    # Of a compacted topic the first record may not be there any more.
    if _changed(plan, snapshot, written) or any(one.table is not None for one in plan.sources):
        return False
    before = {node.name for node in written.sinks}
    return any(name not in before for name in outputs_of(plan, 0))


def _written(plan: Plan, snapshot: Snapshot) -> Lineage:
    """Return the nodes of the plan that wrote it; of other stages' folds it has no tables."""
    folds = {digest_of(fold.node_key) for fold in plan.folds}
    folds |= {digest_of(key) for key in snapshot.tables}
    sources = source_count(snapshot)
    nodes = [Node("source", key) for key in snapshot.nodes[:sources]]
    for key in snapshot.nodes[sources:]:
        kind = "fold" if digest_of(key) in folds else "step" if "/" in key else "sink"
        nodes.append(Node(kind, key))
    chain = tuple(node for node in nodes if node.kind != "sink")
    return Lineage(chain, tuple(node for node in nodes if node.kind == "sink"))


def _changed(plan: Plan, snapshot: Snapshot, written: Lineage) -> list[str]:
    # An output's key follows from its fold's key.
    return (
        _records_changed(plan, snapshot, written)
        or _outputs_changed(plan, written)
        or _stages_changed(plan, snapshot)
    )


def _records_changed(plan: Plan, snapshot: Snapshot, written: Lineage) -> list[str]:
    now, before = lineage_of(plan), written
    if now.source.name != before.source.name:
        return [f"source {now.source.name!r} was called {before.source.name!r}"]
    why = source_change(plan, snapshot)
    if why is not None:
        return [why]
    _, gone = _paired(now, before)
    if not gone:
        first = stages_of(plan)[0].folds
        return [
            f"{node.kind} {node.name!r} is new, and not of the first stage alone"
            for node in _new(plan, before)
            if any(one.kind == "fold" and one.name not in first for one in now.up_to(node))
        ]
    known, kept = ({node.digest for node in one.chain} for one in (before, now))
    lost = [node for node in gone if node.digest not in kept]
    if not lost:
        return ["its branches stand in another order, and stages are numbered in theirs"]
    pairs = enumerate(zip(now.chain, before.chain, strict=False))
    at = next((i for i, (node, was) in pairs if node.digest != was.digest), None)
    if at is not None and before.chain[at] in lost and now.chain[at].digest not in known:
        differs = now.chain[at]
        if plan.is_chain or differs.name == before.chain[at].name:
            why, _ = first_change(now.chain[: at + 1], before.chain[: at + 1], plan)
            return [f"{differs.kind} {differs.name!r}: {why}"]
    new = [node for node in now.chain if node.digest not in known]
    return [f"{node.kind} {node.name!r} is new" for node in new] + [
        f"{node.kind} {node.name!r} is gone" for node in lost
    ]


def _paired(now: Lineage, before: Lineage) -> tuple[dict[Node, Node], tuple[Node, ...]]:
    """Return the earlier node of each kept one, in order, and the removed nodes."""
    pairs, left = dict[Node, Node](), list(before.chain)
    for node in now.chain:
        if left and left[0].digest == node.digest:
            pairs[node] = left.pop(0)
    return pairs, tuple(left)


def _new(plan: Plan, written: Lineage) -> tuple[Node, ...]:
    """Return a plan's new nodes, beside its earlier ones."""
    now = lineage_of(plan)
    pairs, _ = _paired(now, written)
    return tuple(node for node in now.chain if node not in pairs)


def _outputs_changed(plan: Plan, written: Lineage) -> list[str]:
    before = {node.name: node for node in written.sinks}
    return [
        f"output {node.name!r} has another topic, or shows another fold: call it something else"
        for node in lineage_of(plan).sinks
        if node.name in before and node.digest != before[node.name].digest
    ]


def _stages_changed(plan: Plan, snapshot: Snapshot) -> list[str]:
    """Return the folds that a new branch takes to another stage, as it may divide the first one."""
    stages, number = stages_of(plan), snapshot.stage or 0
    folds = {fold.name: digest_of(fold.node_key) for fold in plan.folds}
    own = {digest_of(key) for key in snapshot.tables}
    beside = {stage.folds[0] for stage in stages if stage.before == number}
    if number < len(stages) and (edge := stages[number].edge) is not None:
        beside.add(edge.of)
    here = stages[number].folds if number < len(stages) else ()
    known = {digest_of(key) for key in snapshot.nodes}
    moved = [name for name in here if folds[name] in known and folds[name] not in own]
    moved += [name for name in folds if folds[name] in own and name not in {*here, *beside}]
    return [f"fold {name!r} would be of another stage" for name in moved]


def _edge_changed(plan: Plan, snapshot: Snapshot) -> list[str]:
    """Return the changes of the incoming edge, which node keys do not show."""
    edge = edge_into(plan, snapshot.stage or 0)
    if edge is None:
        return []
    carried = RowEdge.carries if edge.above.node_key in snapshot.tables else PartialEdge.carries
    if carried == edge.carries:
        return []
    edges = f"the edge from fold {edge.above.name!r} to {edge.fold.name!r}"
    return [f"{edges} was one of {carried}, and now of {edge.carries}"]


def _newly_shown(plan: Plan, snapshot: Snapshot) -> list[str]:
    here = stages_of(plan)[snapshot.stage or 0].folds
    events = [
        f"output {output.name!r} shows the events of {output.of!r}, which no output showed before, "
        "and earlier ones are in the log alone"
        for output in plan.outputs
        if output.is_stream and not snapshot.stage and output.of not in snapshot.digests
    ]
    return events + [
        f"output {output.name!r} shows fold {output.of!r}, which no output showed before, and rows "
        "of windows that are over are not there any more"
        for output in plan.outputs
        if output.of in here
        and output.of not in snapshot.digests
        and plan.frees(plan.fold(output.of))
    ]


def _in_present_names(plan: Plan, snapshot: Snapshot, written: Lineage) -> Snapshot:
    """Return the snapshot under the names that its nodes have now."""
    pairs, _ = _paired(lineage_of(plan), written)
    now = {old.key: new.key for new, old in pairs.items()}
    names = {old.name: Node(old.kind, now[old.key]).name for old in written.chain}
    counters = {uncomputable_counter(was): uncomputable_counter(is_) for was, is_ in names.items()}
    return replace(
        snapshot,
        counters={counters.get(name, name): n for name, n in snapshot.counters.items()},
        digests={names[node]: digests for node, digests in snapshot.digests.items()},
        tables={now[key]: table for key, table in snapshot.tables.items()},
        nodes=tuple(now.get(key, key) for key in snapshot.nodes),
    )
