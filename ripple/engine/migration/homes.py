"""What moves state of several stages between homes: one engine with all, or partitions for each.

``apart`` and ``together`` are each other's inverse. Both compare the digests of all outputs, so
that state which they would change is refused.

- Rows of events are in the partition that has the inputs of their key.
- A later stage is what its senders' tables make of it: partitions that have seen nothing take them.
- Accumulators of rows that were freed are in no table below: of a fold that outlives windows they
  stay as they are, with the only partition that sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import RippleError
from ripple.core.frozen import frozen
from ripple.engine.edges.senders import BehindError
from ripple.model.pipeline.stages import Transport
from ripple.model.pipeline.topology import is_spread, stages_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from ripple.engine.machine import Engine
    from ripple.engine.machine.follower import Follower
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.stages import Stage

    Lacking = Mapping[tuple[int, int, str], pa.RecordBatch]

DIGEST_END = 1 << 64  # digests are sums modulo this
_EPOCH = 0  # of senders that nobody owns yet: those of owners are higher
ANEW = "; or name another store and other outputs, to compute everything from the first record"


class HomeError(RippleError):
    """State cannot move between one engine with all stages and partitions for each."""


@frozen
class Moved:
    """State in its other home.

    stages: its partitions, by stage; one of one stage where all are in it. lacking: by stage,
    number in it and output, of the home with several, the changes that its output does not have.
    """

    stages: tuple[tuple[Engine | Follower, ...], ...]
    lacking: Lacking


def check_plan(plan: Plan, partitions: int) -> None:
    """Raise HomeError if state of a plan never moves. partitions: of the first stage."""
    name = plan.name
    if not is_spread(plan):
        raise HomeError(
            f"the state of {name!r} is of one stage, and moves as it is: give the same store"
        )
    if plan.asks or plan.is_idle:
        what = ".ask" if plan.asks else "idle="
        raise HomeError(f"{name!r} has recorded inputs of {what}, which do not move{ANEW}")
    for stage in stages_of(plan):
        if stage.edge is not None and stage.edge.kind.transport is Transport.LOG:
            raise HomeError(
                f"fold {stage.edge.to!r} of {name!r} takes its rows from a log, in which its "
                f"position is that of a cluster: the state stays where it is{ANEW}"
            )
    if partitions == 1:
        return
    one = f"let the first stage have one partition (--partitions 1){ANEW}"
    for fold in plan.folds:
        if (
            any(each.aggregate.ordered for each in fold.aggregates)
            and fold.name in stages_of(plan)[0].folds
        ):
            raise HomeError(
                f"fold {fold.name!r} of {name!r} orders records of equal times by their input's "
                f"number, which differs with {partitions} partitions: {one}"
            )
    if any(source.table is not None for source in plan.sources):
        raise HomeError(
            f"{name!r} has a table of newest records, in the order of all inputs: {one}"
        )


def outlives(plan: Plan, stage: Stage) -> bool:
    """Whether groups of a stage have parts of rows that are not there any more."""
    edge = stage.edge
    if edge is None:
        return False
    return plan.frees(plan.fold(edge.of)) and not plan.fold(edge.to).ends_with_window


def check_code(plan: Plan, snapshot: Snapshot) -> None:
    """Raise HomeError for state of other code."""
    if snapshot.topology_hash != plan.topology_hash:
        raise HomeError(
            f"the state of {plan.name!r} is that of other code: move it with the code that wrote "
            "it, and change the code afterwards"
        )


def digests_of(snapshots: Iterable[Snapshot]) -> dict[str, tuple[int, int]]:
    """Return by fold the digests of all partitions: of all rows, and of those that were freed."""
    found: dict[str, tuple[int, int]] = {}
    for one in snapshots:
        for name, (digest, final) in one.digests.items():
            was, was_final = found.get(name, (0, 0))
            found[name] = (was + digest) % DIGEST_END, (was_final + final) % DIGEST_END
    return found


def catch_up(
    receiver: Follower, stage: Stage, number: int, senders: Sequence[Engine | Follower]
) -> None:
    """Let a receiver take the whole tables of its senders."""
    for name, sender in enumerate(senders):
        table = sender.sending(stage.number).table_for(number)
        epoch = max(_EPOCH, receiver.followed(str(name)).epoch)
        try:
            receiver.follow(str(name), epoch, table)
        except BehindError as error:
            raise HomeError(
                f"partition {number} of stage {stage.number} is ahead of partition {name} of stage "
                f"{stage.before}: let the cluster go on, and end it with SIGTERM, so that each "
                "partition stores its state"
            ) from error


def changes_of(
    one: Engine | Follower, stage: int, number: int
) -> dict[tuple[int, int, str], pa.RecordBatch]:
    """Stabilize a partition; return the changes of its outputs, by stage, number and output."""
    return {(stage, number, output): rows for output, rows in one.stabilize().outputs.items()}
