"""State of one stage's partition, where the code of its pipeline has changed.

A partition's rows were sent to other stages, and their results were written. So a partition can
resume from its state only where all partitions of all stages would have come to the same: where
every record, fold and step is unchanged. Names may differ, and outputs may come and go.
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
from ripple.model.pipeline.topology import stages_of

if TYPE_CHECKING:
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan


def staying(plan: Plan, snapshot: Snapshot) -> tuple[Snapshot, tuple[str, ...]]:
    """Return the snapshot of a stage's partition in the plan's names, and why it does not fit.

    Without reasons the engine of that stage takes it.
    """
    if snapshot.topology_hash == plan.topology_hash:
        return snapshot, tuple(_edge_changed(plan, snapshot))
    if not snapshot.nodes:
        return snapshot, ("the checkpoint does not say of what it is",)
    written = _written(plan, snapshot)
    # An output's key follows from that of its fold.
    reasons = _records_changed(plan, snapshot, written) or _outputs_changed(plan, written)
    if reasons:
        return snapshot, tuple(reasons)
    named = _in_present_names(plan, snapshot, written)
    return named, (*_edge_changed(plan, named), *_newly_shown(plan, named))


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


def _records_changed(plan: Plan, snapshot: Snapshot, written: Lineage) -> list[str]:
    now, before = lineage_of(plan), written
    if now.source.name != before.source.name:
        return [f"source {now.source.name!r} was called {before.source.name!r}"]
    why = source_change(plan, snapshot)
    if why is not None:
        return [why]
    pairs = list(zip(now.chain, before.chain, strict=False))
    differs = next((new for new, old in pairs if new.digest != old.digest), None)
    if differs is not None:
        if {node.digest for node in now.chain} == {node.digest for node in before.chain}:
            return ["its branches stand in another order, and stages are numbered in theirs"]
        at = now.chain.index(differs)
        why, _ = first_change(now.chain[: at + 1], before.chain[: at + 1], plan)
        return [f"{differs.kind} {differs.name!r}: {why}"]
    added, gone = now.chain[len(pairs) :], before.chain[len(pairs) :]
    return [f"{node.kind} {node.name!r} is new" for node in added] + [
        f"{node.kind} {node.name!r} is gone" for node in gone
    ]


def _outputs_changed(plan: Plan, written: Lineage) -> list[str]:
    before = {node.name: node for node in written.sinks}
    return [
        f"output {node.name!r} has another topic, or shows another fold: call it something else"
        for node in lineage_of(plan).sinks
        if node.name in before and node.digest != before[node.name].digest
    ]


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
    now = {old.key: new.key for new, old in zip(lineage_of(plan).chain, written.chain, strict=True)}
    names = {old.name: Node(old.kind, now[old.key]).name for old in written.chain}
    counters = {uncomputable_counter(was): uncomputable_counter(is_) for was, is_ in names.items()}
    return replace(
        snapshot,
        counters={counters.get(name, name): n for name, n in snapshot.counters.items()},
        digests={names[node]: digests for node, digests in snapshot.digests.items()},
        tables={now[key]: table for key, table in snapshot.tables.items()},
        nodes=tuple(now.get(key, key) for key in snapshot.nodes),
    )
