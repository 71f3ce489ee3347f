"""The state of one engine, divided among the partitions of all stages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.edges.edge_changes import targets_of
from ripple.engine.machine import Engine
from ripple.engine.machine.follower import Follower
from ripple.engine.migration.homes import (
    ANEW,
    DIGEST_END,
    HomeError,
    Moved,
    catch_up,
    changes_of,
    check_code,
    check_plan,
    digests_of,
    outlives,
)
from ripple.engine.snapshots.snapshot import HELD, REJECTED, uncomputable_counter
from ripple.model.pipeline.topology import stage_folds, stages_after, stages_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.stages import Stage

    Ints = npt.NDArray[np.int64]


def apart(
    plan: Plan,
    whole: Snapshot,
    inputs: Sequence[Sequence[str]],
    partition_of: Callable[[pa.Table], Ints] | None = None,
) -> Moved:
    """Return the state of each partition of each stage, at the cut of ``whole``.

    inputs: of each partition of the first stage. partition_of: which of them has rows with the
    key of a fold; None only of one partition. Raises HomeError.
    """
    check_plan(plan, len(inputs))
    _check_whole(plan, whole, len(inputs))
    held = min(whole.watermarks_ns.values())
    alike = replace(whole, watermarks_ns=dict.fromkeys(whole.watermarks_ns, held))
    engines: list[Sequence[Engine | Follower]] = [_first_stage(plan, alike, inputs, partition_of)]
    for stage in stages_of(plan)[1:]:
        engines.append(_later_stage(plan, whole, stage, engines[stage.before or 0]))
    _compare(plan, whole.digests, digests_of(one.snapshot() for made in engines for one in made))
    lacking: dict[tuple[int, int, str], pa.RecordBatch] = {}
    for one in engines[0]:
        assert isinstance(one, Engine)
        for name, offset in one.cut.items():
            one.advance(name, whole.watermarks_ns[name], offset)
    for stage in stages_of(plan):
        for number, one in enumerate(engines[stage.number]):
            if isinstance(one, Follower):
                catch_up(one, stage, number, engines[stage.before or 0])
            lacking |= changes_of(one, stage.number, number)
    return Moved(tuple(map(tuple, engines)), lacking)


def _check_whole(plan: Plan, whole: Snapshot, partitions: int) -> None:
    check_code(plan, whole)
    if whole.stage is not None:
        raise HomeError(f"the state of {plan.name!r} is that of a cluster already")
    if any(name.startswith(HELD) for name in whole.tables):
        raise HomeError(f"a node of {plan.name!r} holds rows, which are not divided{ANEW}")
    for stage in stages_of(plan)[1:]:
        senders = partitions if stage.before == 0 else stages_of(plan)[stage.before or 0].partitions
        if senders != 1 and outlives(plan, stage):
            edge = stage.edge
            assert edge is not None
            way_out = "" if stage.before else ": let that stage have one partition (--partitions 1)"
            raise HomeError(
                f"fold {edge.to!r} of {plan.name!r} has parts of windows of {edge.of!r} that are "
                f"over, and nothing tells which partition of that stage they belong to{way_out}"
                f"{ANEW}"
            )


def _first_stage(
    plan: Plan,
    whole: Snapshot,
    inputs: Sequence[Sequence[str]],
    partition_of: Callable[[pa.Table], Ints] | None,
) -> list[Engine]:
    folds = stage_folds(plan, 0)
    numbers = {
        fold.node_key: _numbers(whole.tables[fold.node_key], partition_of)
        for fold in folds
        if fold.node_key in whole.tables
    }
    made = []
    for number, names in enumerate(inputs):
        tables = {
            key: whole.tables[key].filter(pa.array(at == number)) for key, at in numbers.items()
        }
        for stage in stages_after(plan, 0):
            if stage.edge is not None and outlives(plan, stage):
                key = plan.fold(stage.edge.to).node_key
                tables[key] = whole.tables[key]
        own = replace(
            whole,
            partition=number,
            stage=0,
            cut={name: whole.cut[name] for name in names},
            watermarks_ns={name: whole.watermarks_ns[name] for name in names},
            counters=_counters_of(plan, whole, stage=0, number=number),
            tables=tables,
        )
        made.append(Engine.adopt(plan, own, _final_of(whole, number)))
    return made


def _numbers(table: pa.Table, partition_of: Callable[[pa.Table], Ints] | None) -> Ints:
    if partition_of is None:
        return np.zeros(table.num_rows, np.int64)
    return partition_of(table)


def _later_stage(
    plan: Plan, whole: Snapshot, stage: Stage, senders: Sequence[Engine | Follower]
) -> list[Follower]:
    names = [str(number) for number in range(len(senders))]
    assert stage.partitions is not None
    made = []
    for number in range(stage.partitions):
        receiver = Follower(plan, stage.number, names, number)
        catch_up(receiver, stage, number, senders)
        receiver.stabilize()
        fresh = receiver.snapshot()
        final = _final_of(whole, number)
        counters = _counters_of(plan, whole, stage=stage.number, number=number)
        own = replace(
            fresh,
            counters={**fresh.counters, **counters},
            digests={
                name: ((live + final[name]) % DIGEST_END, final[name])
                for name, (live, _) in fresh.digests.items()
            },
            tables={**fresh.tables, **_kept(plan, whole, stage, number)},
        )
        made.append(Follower.restore(plan, own, finals=True))
    return made


def _kept(plan: Plan, whole: Snapshot, stage: Stage, number: int) -> dict[str, pa.Table]:
    """Return the tables of a later stage's partition that its senders' rows do not tell."""
    found = {}
    for fold in stage_folds(plan, stage.number)[1:]:
        table = whole.tables.get(fold.node_key)
        if table is not None and plan.frees(plan.fold(fold.input)):
            rows = table.select([field.name for field in fold.key]).combine_chunks()
            batches = rows.to_batches()
            at = np.empty(0, np.int64)
            if batches:
                at = targets_of(batches[0], stage.key, stage.partitions or 1)
            found[fold.node_key] = table.filter(pa.array(at == number))
    for after in stages_after(plan, stage.number):
        if after.edge is not None and outlives(plan, after):
            key = plan.fold(after.edge.to).node_key
            found[key] = whole.tables[key]
    return found


def _final_of(whole: Snapshot, number: int) -> dict[str, int]:
    """Return the digests of freed rows: the first partition has those of all."""
    return {name: final if number == 0 else 0 for name, (_, final) in whole.digests.items()}


def _counters_of(plan: Plan, whole: Snapshot, *, stage: int, number: int) -> dict[str, int]:
    """Return the counts of a partition: the first one of a stage has those of all."""
    own = {uncomputable_counter(name) for name in stages_of(plan)[stage].folds}
    of_folds = {uncomputable_counter(fold.name) for fold in plan.folds}
    if stage:
        return {n: count for n, count in whole.counters.items() if n in own and number == 0}
    counters = {n: count for n, count in whole.counters.items() if n not in of_folds - own}
    if number == 0:
        return counters
    return {n: 0 for n in counters if n not in of_folds and not n.startswith(REJECTED)}


def _compare(
    plan: Plan, was: Mapping[str, tuple[int, int]], now: Mapping[str, tuple[int, int]]
) -> None:
    for name, digests in was.items():
        if now.get(name) != digests:
            raise HomeError(
                f"the divided rows of {name!r} do not have the digest of the whole: the state of "
                f"{plan.name!r} stays where it is{ANEW}"
            )
