"""The states of the partitions of all stages, put together as that of one engine."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.machine import Engine
from ripple.engine.machine.follower import Follower
from ripple.engine.migration.homes import (
    HomeError,
    Moved,
    catch_up,
    changes_of,
    check_code,
    check_plan,
    digests_of,
)
from ripple.engine.operators.groups import merged
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.model.pipeline.stages import EdgeKind
from ripple.model.pipeline.topology import stage_folds, stages_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.stages import Stage


def together(plan: Plan, stages: Sequence[Sequence[Snapshot]]) -> Moved:
    """Return the state of one engine at the cut of the first stage's partitions.

    stages: the partitions' state, by stage; a later one may be of an earlier cut. Raises HomeError.
    """
    check_plan(plan, len(stages[0]))
    for one in (each for made in stages for each in made):
        check_code(plan, one)
    engines: list[Sequence[Engine | Follower]] = [
        [Engine.restore(plan, one, finals=True) for one in stages[0]]
    ]
    lacking: dict[tuple[int, int, str], pa.RecordBatch] = {}
    present = [list(stages[0])]
    for stage in stages_of(plan)[1:]:
        assert stage.before is not None
        receivers = [Follower.restore(plan, one, finals=True) for one in stages[stage.number]]
        for number, receiver in enumerate(receivers):
            catch_up(receiver, stage, number, engines[stage.before])
            lacking |= changes_of(receiver, stage.number, number)
        engines.append([*receivers])
        present.append([one.snapshot() for one in receivers])
    snapshot = _united(plan, present)
    try:
        whole = Engine.restore(plan, snapshot)
    except SnapshotError as error:
        raise HomeError(
            f"the rows of {plan.name!r} that its partitions show are not those of one engine at "
            "this cut: windows are shown in some and not yet in others. Let the cluster go on "
            "until its inputs are equally far in event time, and end it with SIGTERM"
        ) from error
    return Moved(((whole,),), lacking)


def _united(plan: Plan, stages: Sequence[Sequence[Snapshot]]) -> Snapshot:
    first = stages[0][0]
    counters: Counter[str] = Counter()
    for one in (each for made in stages for each in made):
        counters.update(one.counters)
    tables: dict[str, pa.Table] = {}
    for stage, parts in zip(stages_of(plan), stages, strict=True):
        for fold in stage_folds(plan, stage.number):
            found = _table_of(plan, fold, stage, parts, stages)
            if found is not None:
                tables[fold.node_key] = found
    return replace(
        first,
        stage=None,
        partition=0,
        cut={name: offset for one in stages[0] for name, offset in one.cut.items()},
        watermarks_ns={n: at for one in stages[0] for n, at in one.watermarks_ns.items()},
        ends_ns={n: at for one in stages[0] for n, at in one.ends_ns.items()},
        counters=dict(counters),
        digests=digests_of(each for made in stages for each in made),
        tables=tables,
        notes=plan.notes,
        epochs={},
        retained={},
    )


def _table_of(
    plan: Plan,
    fold: Fold,
    stage: Stage,
    parts: Sequence[Snapshot],
    stages: Sequence[Sequence[Snapshot]],
) -> pa.Table | None:
    """Return the state of a fold over all partitions; None if it follows from the rows below."""
    if stage.edge is None or fold.name != stage.edge.to:
        tables = [one.tables[fold.node_key] for one in parts if fold.node_key in one.tables]
        return pa.concat_tables(tables)
    if not plan.frees(plan.fold(stage.edge.of)):
        return None
    if stage.edge.kind is not EdgeKind.PARTIAL:
        return pa.concat_tables([one.tables[fold.node_key] for one in parts])
    senders = stages[stage.before or 0]
    _check_retained(fold, stage, parts, senders)
    return merged(fold, [one.tables[fold.node_key] for one in senders])


def _check_retained(
    fold: Fold, stage: Stage, parts: Sequence[Snapshot], senders: Sequence[Snapshot]
) -> None:
    """Raise HomeError where a sender has freed rows of open groups: another's time is behind."""
    if not fold.ends_with_window:
        return
    known = pa.concat_tables([one.tables[fold.node_key] for one in parts])
    known = np.unique(np.asarray(known.column("window_start_ns")))
    for one in senders:
        rows = one.retained.get(stage.number)
        if rows is None or not rows.num_rows:
            continue
        if np.isin(np.asarray(rows.column("window_start_ns")), known).any():
            raise HomeError(
                f"fold {fold.name!r}: windows are over in some partitions and open in others: let "
                "the cluster go on until its inputs are equally far in event time, and end it "
                "with SIGTERM"
            )
