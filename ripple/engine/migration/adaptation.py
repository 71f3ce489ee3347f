"""From the snapshot of another plan to a snapshot for ``Engine.restore``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ripple.core.errors import RippleError
from ripple.engine.machine.counters import Counters
from ripple.engine.machine.engine import Engine
from ripple.engine.migration.evolution import Comparison, Judged, Verdict, compare
from ripple.engine.migration.lineage import Node
from ripple.engine.migration.migration import check_accepted, migrated, wrong
from ripple.engine.migration.scan_states import migrated_states
from ripple.engine.migration.staying import staying
from ripple.engine.snapshots.snapshot import (
    HELD,
    held_key,
    out_of_order_counter,
    source_counter,
    uncomputable_counter,
)
from ripple.model.canonical import digest_of
from ripple.model.pipeline.node_keys import rebuild_word
from ripple.model.pipeline.topology import stages_of
from ripple.model.pipeline.waiting_nodes import StepScan, tables_of

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import Ask, Holding


class ChangedPlanError(RippleError):
    """The state in the checkpoint does not fit the pipeline, and no flag says how to continue."""


@dataclass(frozen=True, slots=True)
class Restoration:
    """How a pipeline resumes from a checkpoint, perhaps of another plan.

    snapshot: of the plan itself, for ``Engine.restore``; None when the log must be read from its
    first record. kept_outputs: those with the same rows as before, so that their digest can be
    compared with the committed one.
    """

    comparison: Comparison
    snapshot: Snapshot | None
    kept_outputs: tuple[str, ...]


def decide(
    plan: Plan, snapshot: Snapshot, rebuild: Collection[str] = (), *, staged: bool = False
) -> Restoration:
    """Return how to resume from ``snapshot``.

    rebuild: the folds, by name, that may be computed from the log's first record. staged: whether
    the state wanted is of one stage alone, which is resumed from or refused: the state of other
    stages follows from it, and was made by the other code. Raises ChangedPlanError when it cannot
    be, with every reason and the remedy, and MigrationError.
    """
    reasons = refusals(plan, snapshot, rebuild, staged=staged)
    if reasons:
        raise ChangedPlanError("; ".join(reasons))
    if staged:
        return _of_stage(plan, snapshot)
    comparison = compare(plan, snapshot, rebuild)
    return Restoration(comparison, adapt(snapshot, plan, comparison), comparison.kept_outputs)


def migrates(plan: Plan, snapshot: Snapshot, rebuild: Collection[str] = ()) -> bool:
    """Return whether ``decide`` would have a user's function make state from ``snapshot``."""
    if snapshot.stage is not None:
        return False
    comparison = compare(plan, snapshot, rebuild)
    verdicts = {one.verdict for one in comparison.nodes}
    return not comparison.problems and not comparison.rebuilds and Verdict.MIGRATE in verdicts


def of_other_home(pipeline: str, stage: int | None, *, staged: bool) -> str:
    """Return why a run here cannot resume from state of ``stage``, None for all; "" if it can.

    staged: whether it is for a cluster, where stages have partitions of their own.
    """
    if staged == (stage is not None):
        return ""
    homes = (
        (
            "one process, with all stages in one partition",
            "ripple run, or ripple spark run, or, if a cluster wrote it, with its former pipeline "
            "of one stage",
        ),
        ("a cluster, with partitions of its own for each stage", "ripple cluster up, or workers"),
    )
    (has, how), (wants, _) = homes[:: -1 if stage is not None else 1]
    return (
        f"the state of {pipeline!r} is that of {has}, and {wants.partition(',')[0]} cannot resume "
        f"from it: resume with {how}; move it with ripple checkpoint move; or name another store "
        "and other outputs, to compute everything from the first record"
    )


def refusals(
    plan: Plan, snapshot: Snapshot, rebuild: Collection[str] = (), *, staged: bool = False
) -> tuple[str, ...]:
    """Return why ``decide`` would refuse; of the tables only their names are looked at."""
    elsewhere = of_other_home(plan.name, snapshot.stage, staged=staged)
    if elsewhere:
        return (elsewhere,)
    if not staged:
        return compare(plan, snapshot, rebuild).problems
    _, reasons = staying(plan, snapshot)
    if not reasons:
        return ()
    return (
        f"the state of {plan.name!r} is that of other code, and in a cluster of several stages "
        "or repartitioned sources nothing but names and outputs can change, and a new branch must "
        "be of the first stage alone, of records that are read as they are, with outputs that "
        "hold nothing: "
        f"{'; '.join(reasons)}. Go back to the code that wrote it; or name another store and other "
        "outputs, to compute everything from the first record",
    )


def _of_stage(plan: Plan, snapshot: Snapshot) -> Restoration:
    snapshot, _ = staying(plan, snapshot)
    new = [
        name for name in stages_of(plan)[snapshot.stage or 0].folds if name not in snapshot.digests
    ]
    kept = (output.name for output in plan.outputs if output.of not in new)
    return Restoration(Comparison(()), snapshot, tuple(kept))


def adapt(snapshot: Snapshot, plan: Plan, comparison: Comparison) -> Snapshot | None:
    """Return the snapshot as one of ``plan``, at the same cut; None if there can be none.

    Raises MigrationError for a migration that does not fit, and SnapshotError when the state
    differs from its digests.
    """
    if comparison.problems or comparison.rebuilds:
        return None
    if snapshot.topology_hash == plan.topology_hash:
        return snapshot
    layouts = Engine(plan).snapshot().tables
    taken = _taken(snapshot, plan, comparison, layouts)
    names = {judged.key: judged for judged in comparison.folds}
    digests: dict[str, tuple[int, int]] = {}
    counters = _of_records(snapshot, plan)
    freed: dict[str, int] = {}
    for fold in plan.folds:
        judged = names[fold.node_key]
        old = Node("fold", judged.old_key).name if judged.old_key else ""
        before = snapshot.digests.get(old)
        if judged.verdict in (Verdict.KEEP, Verdict.MIGRATE):
            final = snapshot.counters.get(uncomputable_counter(old), 0)
            counters[uncomputable_counter(fold.name)] = final
            if count := snapshot.counters.get(out_of_order_counter(old)):
                counters[out_of_order_counter(fold.name)] = count
        if judged.same_rows and before is not None:
            digests[fold.name] = before
        else:
            # Rows that are over stay as they were shown.
            is_migrated = judged.verdict is Verdict.MIGRATE
            freed[fold.name] = before[1] if before is not None and is_migrated else 0
    # Of nodes with other keys now, but with their state: migrated scans, and behind narrowed joins.
    moved = {one.key: one for one in comparison.nodes if one.verdict is Verdict.MIGRATE}
    shown = _of_streams(snapshot, plan, comparison)
    digests |= shown
    freed |= {one.of: 0 for one in plan.outputs if one.is_stream and one.of not in shown}
    for node, side, old in _held(snapshot, plan, moved):
        name = held_key(node, side)
        taken[name] = snapshot.tables[old]
        if (scan := moved.get(node.node_key)) is not None and scan.migration is not None:
            layout = layouts[name].schema
            taken[name] = _migrated_table(plan, node, scan, taken[name], layout, side=side)
        name = uncomputable_counter(Node("step", old).name)
        counters[uncomputable_counter(node.name)] = snapshot.counters.get(name, 0)
    given = replace(
        snapshot,
        pipeline=plan.name,
        topology_hash=plan.topology_hash,
        counters=counters,
        digests=digests,
        tables=taken,
        nodes=plan.node_keys,
    )
    return _adopted(plan, given, freed, comparison)


def _of_records(snapshot: Snapshot, plan: Plan) -> dict[str, int]:
    """Return the counts of records: of all, and of several sources also of each."""
    names = set(Counters.__slots__)
    names |= {source_counter(one.name, of) for one in plan.sources for of in Counters.__slots__}
    return {name: n for name, n in snapshot.counters.items() if name in names}


def _of_streams(
    snapshot: Snapshot, plan: Plan, comparison: Comparison
) -> dict[str, tuple[int, int]]:
    """Return the digests of streams that are shown: each is as it was, under any name.

    Or it goes on behind a narrowed join, of which the sink is the same as before.
    """
    keys = {node.of.name: node.of.node_key for node in plan.computed}
    sinks = (one for one in comparison.nodes if one.kind == "sink" and one.old_key)
    goes_on = {Node("sink", one.key).name for one in sinks}
    was = {one.key: one.old_key for one in comparison.nodes if one.old_key}
    of_sinks = {one.of for one in plan.outputs if one.name in goes_on}
    streams = {
        name: Node("step", (was.get(key) if name in of_sinks else None) or key)
        for name, key in keys.items()
    }
    nodes = (Node("step", key) for key in snapshot.nodes)
    before = {
        node.digest: snapshot.digests[node.name] for node in nodes if node.name in snapshot.digests
    }
    of = {output.of: streams[output.of].digest for output in plan.outputs if output.is_stream}
    return {name: before[digest] for name, digest in of.items() if digest in before}


def _migrated_table(
    plan: Plan,
    node: Holding | Ask,
    judged: Judged,
    old: pa.Table,
    layout: pa.Schema,
    *,
    side: int,
) -> pa.Table:
    """Return a table of a scan with a migrated state: its rows, or the states of keys."""
    assert isinstance(node, StepScan), "no other node that holds rows has a migration"
    assert judged.migration is not None, "it is migrated"
    if side:
        return migrated_states(node, judged.migration, old, layout)
    if old.schema.equals(layout):
        return old
    changed = sorted({*old.schema} ^ {*layout}, key=lambda field: field.name)
    raise wrong(
        node,
        f"rows that are not final yet have another form in the checkpoint (field {changed[0]!r}): "
        f"say --rebuild {rebuild_word(plan, node.name)}",
    )


def _held(
    snapshot: Snapshot, plan: Plan, moved: Mapping[str, Judged]
) -> Iterator[tuple[Holding | Ask, int, str]]:
    """Yield the sides of the nodes that hold rows, each with the name of its old table.

    moved: those with other keys before, by their keys.
    """
    tables = {
        (side, digest_of(name)): name
        for name in snapshot.tables
        for side, prefix in enumerate(HELD)
        if name.startswith(prefix)
    }
    for node in plan.holding:
        judged = moved.get(node.node_key)
        key = node.node_key if judged is None else judged.old_key or ""
        for side in range(tables_of(node)):
            yield node, side, tables[side, digest_of(key)]
    for ask in plan.asks:
        for side, _ in enumerate(HELD):
            # The check of the log of answers refuses a new ask, with the remedy.
            if (of := (side, digest_of(ask.node_key))) in tables:
                yield ask, side, tables[of]


def _taken(
    snapshot: Snapshot, plan: Plan, comparison: Comparison, layouts: Mapping[str, pa.Table]
) -> dict[str, pa.Table]:
    taken: dict[str, pa.Table] = {}
    for fold, judged in zip(plan.folds, comparison.folds, strict=True):
        if judged.verdict not in (Verdict.KEEP, Verdict.MIGRATE):
            continue
        assert judged.old_key is not None, "a kept or migrated node was there"
        table = snapshot.tables[judged.old_key]
        if judged.migration is not None:
            layout = layouts[fold.node_key].schema
            table = migrated(fold, judged.migration, table, layout)
        taken[fold.node_key] = table
    return taken


def _adopted(
    plan: Plan, given: Snapshot, freed: dict[str, int], comparison: Comparison
) -> Snapshot:
    """Let an engine take the state, so that its own dump is restored later."""
    made = [
        fold
        for fold, judged in zip(plan.folds, comparison.folds, strict=True)
        if judged.migration is not None
    ]
    try:
        adopted = Engine.adopt(plan, given, freed).snapshot()
    except Exception as error:  # any defect of values that a user's function made
        if not made:
            raise
        raise wrong(made[0], f"no fold can have the state that it returned: {error}") from error
    for fold in made:
        check_accepted(fold, given.tables[fold.node_key], adopted.tables[fold.node_key])
    notes = {**given.notes, **adopted.notes}
    return replace(adopted, notes=notes)
