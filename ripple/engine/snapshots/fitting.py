"""Whether the state in a snapshot is that of a plan, though the plans may differ in their sinks."""

from __future__ import annotations

import json
from collections.abc import Set
from typing import TYPE_CHECKING

from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.model.canonical import digest_of
from ripple.model.pipeline.nodes import Output
from ripple.model.pipeline.topology import stage_folds

if TYPE_CHECKING:
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan


def digests_to_make(plan: Plan, snapshot: Snapshot) -> dict[str, int]:
    """Return the folds that need a new digest, with the digest of their freed rows: 0.

    State belongs to folds, which are found by node key: a fold and the steps on its results must
    be those of the snapshot, and records must be refused for the same reasons. Raises
    SnapshotError that names the node which is missing or has changed.
    """
    if snapshot.topology_hash == plan.topology_hash:
        return {}
    owner = f"the snapshot of pipeline {snapshot.pipeline!r} "
    if not snapshot.nodes:
        raise SnapshotError(
            f"{owner}has topology {snapshot.topology_hash} and does not name its nodes, but this "
            f"pipeline has {plan.topology_hash}"
        )
    if not reads_alike(plan, snapshot):
        raise SnapshotError(
            f"{owner}is of events with another schema than source {plan.source_names!r} declares, "
            "so that other records may have been refused"
        )
    afresh = {}
    here = plan.folds if snapshot.stage is None else stage_folds(plan, snapshot.stage)
    folds = snapshot.tables.keys() | {fold.node_key for fold in plan.folds}
    # A later stage may have a new branch of the first one beside it, and is of its own folds.
    first = stage_folds(plan, 0) if snapshot.stage else ()
    for fold in plan.folds:
        if fold in first:
            continue
        _check_fold(fold, snapshot, folds, owner)
        if fold in here and any(output.of == fold.name for output in plan.outputs):
            if fold.name not in snapshot.digests and plan.frees(fold):
                raise SnapshotError(
                    f"{owner}has no digest of {fold.name!r}, which was no output then, and its "
                    "rows that were freed since cannot be added to one any more"
                )
            if fold.name not in snapshot.digests:
                afresh[fold.name] = 0
    # A later stage reads no records.
    if not snapshot.stage and (not plan.is_chain or "reads" in snapshot.notes):
        _check_branches(plan, snapshot, owner)
    return afresh


def reads_alike(plan: Plan, snapshot: Snapshot) -> bool:
    """Return whether the snapshot is of events with the schemas that the sources declare."""
    was, now = snapshot.notes, plan.notes
    return all(was.get(name) == now.get(name) for name in ("source", "sources"))


def check_sources(plan: Plan, snapshot: Snapshot) -> None:
    """Raise SnapshotError unless the snapshot is of inputs of all sources, and of no others."""
    was = json.loads(snapshot.notes.get("sources", "[]"))
    now = [source.name for source in plan.sources]
    if len(now) > 1 or was:
        if not was:
            was = sorted({name.partition("/")[0] for name in snapshot.cut})
        if list(was) != now:
            raise SnapshotError(
                f"the snapshot of pipeline {snapshot.pipeline!r} has read the sources "
                f"{', '.join(was)}, and this pipeline reads {plan.source_names}: after sources "
                "are added, removed or reordered, begin anew"
            )


def _check_stream(plan: Plan, output: Output, snapshot: Snapshot, owner: str) -> None:
    """Raise SnapshotError unless the snapshot has the digest of a stream that is shown."""
    key = next(node.of.node_key for node in plan.computed if node.of.name == output.of)
    if key not in snapshot.nodes or output.of not in snapshot.digests:
        raise SnapshotError(
            f"{owner}has not shown the rows of {output.of!r}, and earlier ones are in the log alone"
        )


def _check_branches(plan: Plan, snapshot: Snapshot, owner: str) -> None:
    """Raise SnapshotError where records may have been refused that count now, or were not shown."""
    for output in plan.outputs:
        if output.is_stream:
            _check_stream(plan, output, snapshot, owner)
    keys = {node.of.node_key for node in plan.computed}
    gone = [key for key in snapshot.nodes if "/" in key and key not in keys]
    if snapshot.rejected is not None:
        gone = [key for key in gone if digest_of(key) in snapshot.rejected]
    if gone and snapshot.counters.get("dead_lettered"):
        raise SnapshotError(
            f"{owner}has rejected records, perhaps by {gone[0]}, which this pipeline has not"
        )


def _check_fold(fold: Fold, snapshot: Snapshot, folds: Set[str], owner: str) -> None:
    chain = [fold.node_key, *(step.node_key for step in fold.steps)]
    for key in chain:
        if key not in snapshot.nodes:
            path = key.rpartition("#")[0]
            was = [old for old in snapshot.nodes if old.rpartition("#")[0] == path]
            found = f"has {was[0]} instead: it, or a step before it, changed" if was else "has not"
            raise SnapshotError(f"{owner}lacks the node {key}; it {found}")
    at = snapshot.nodes.index(chain[0])
    after = next((key for key in snapshot.nodes[at + 1 :] if key in folds or "/" not in key), None)
    end = len(snapshot.nodes) if after is None else snapshot.nodes.index(after)
    written = list(snapshot.nodes[at:end])
    if written != chain:
        gone = next(key for key in written if key not in chain)
        raise SnapshotError(f"{owner}has the step {gone} on results, which this pipeline has not")
