"""The partition state machine of a later stage: other partitions' changes in, changes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ripple.core.arguments import need_whole, shown
from ripple.core.errors import InputError
from ripple.engine.edges.edge_changes import check_rows
from ripple.engine.edges.kinds import edge_into
from ripple.engine.edges.senders import Sender
from ripple.engine.graph.node import Graph
from ripple.engine.machine.partition import Partition, Position
from ripple.engine.snapshots.fitting import digests_to_make
from ripple.engine.snapshots.snapshot import Snapshot, SnapshotError
from ripple.model.pipeline.topology import stage_folds, stages_of

if TYPE_CHECKING:
    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.model.pipeline.plan import Plan


class Follower(Partition):
    """One partition of a downstream stage; the partitions of the stage before are its senders.

    Its cut is the vector of theirs, and its tables are those of a fresh evaluation with each sender
    at its entry, in any order of arrival.
    """

    def __init__(
        self,
        plan: Plan,
        stage: int,
        senders: Sequence[str],
        partition: int = 0,
        *,
        retractions: bool = False,
        finals: bool = False,
    ) -> None:
        """Make a partition that has seen nothing of its senders, the previous stage's partitions.

        stage: its number, from 1. The rest as for an engine.
        """
        stages = stages_of(plan)
        if not 0 < need_whole("Follower: stage", stage, 1, InputError) < len(stages):
            raise InputError(
                f"pipeline {plan.name!r} has {len(stages)} stages: none with the number {stage} "
                "follows another"
            )
        names = tuple(senders)
        if not names or len(set(names)) < len(names):
            raise InputError(f"a stage follows distinct senders, not {names!r}")
        edge = edge_into(plan, stage)
        assert edge is not None
        graph = Graph()
        self._senders = {name: Sender(name) for name in names}
        # Sorted: a snapshot has numbers of senders, and a checkpoint their names in this order.
        self._rank = {name: rank for rank, name in enumerate(sorted(names))}
        self._schema = edge.schema
        self._copy = edge.receiver(graph, names)
        above = [fold for fold in stage_folds(plan, stage) if fold is not self._copy.fold]
        super().__init__(
            plan,
            partition,
            graph,
            (self._copy,),
            above,
            stage=stage,
            retractions=retractions,
            finals=finals,
            in_order=False,
        )

    @classmethod
    def restore(
        cls, plan: Plan, snapshot: Snapshot, *, retractions: bool = False, finals: bool = False
    ) -> Follower:
        """Return the partition as it was at the snapshot's cut.

        The plan may have other sinks than the snapshot's. Raises SnapshotError as
        ``Engine.restore`` does.
        """
        if not snapshot.stage:
            raise SnapshotError(f"the snapshot is of stage {snapshot.stage}: an Engine restores it")
        afresh = digests_to_make(plan, snapshot)
        follower = cls(
            plan,
            snapshot.stage,
            tuple(snapshot.epochs),
            snapshot.partition,
            retractions=retractions,
            finals=finals,
        )
        follower._load(snapshot, afresh)
        return follower

    def follow(self, sender: str, epoch: int, changes: EdgeChanges) -> bool:
        """Take changes from a partition of the stage before; return whether they were new.

        epoch: of the sender's owner. Raises SupersededError for an owner that another one has
        followed, GapError where the sender must be asked for its table, BehindError for a table
        that is older than the copy here, and InputError for rows that do not fit; nothing is
        changed then. After any other error the partition takes no more.
        """
        if self._broken:
            self._refuse()
        followed = self._senders.get(sender) if isinstance(sender, str) else None
        if followed is None:
            raise InputError(f"no sender {shown(sender)} was declared: {list(self._senders)}")
        if not followed.is_news(epoch, changes):
            return False
        check_rows(changes.rows, self._schema, f"sender {sender!r}")
        self._broken = True
        try:
            self._copy.take_in(self._rank[sender], changes.rows, whole=changes.since is None)
        except InputError:
            self._broken = False
            raise
        followed.advance(epoch, changes)
        self._reported = False
        self._broken = False
        return True

    def followed(self, sender: str) -> Sender:
        """Return the position up to which a sender was followed."""
        return self._senders[sender]

    @property
    def cut(self) -> dict[str, int]:
        """Per sender and input of it, as in ``sender/input``, the next offset to read."""
        return {
            f"{name}/{of}": offset
            for name, sender in self._senders.items()
            for of, offset in (sender.cut or {}).items()
        }

    @property
    def watermark_ns(self) -> int:
        """The merged watermark: the minimum over all senders."""
        return min(sender.watermark_ns for sender in self._senders.values())

    def _position(self) -> Position:
        senders = self._senders.items()
        return {
            "cut": self.cut,
            "watermarks_ns": {name: sender.watermark_ns for name, sender in senders},
            "epochs": {name: sender.epoch for name, sender in senders},
        }

    def _resume(self, snapshot: Snapshot) -> None:
        for name, sender in self._senders.items():
            prefix = f"{name}/"
            cut = {
                of.removeprefix(prefix): offset
                for of, offset in snapshot.cut.items()
                if of.startswith(prefix)
            }
            sender.resume(snapshot.epochs[name], cut, snapshot.watermarks_ns[name])
