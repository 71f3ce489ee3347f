"""Location of each partition, by the newest version of the assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.assignment import epoch_of, stage_names, worker_of
from ripple.exchange.exchange import Route

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.control.assignment import Assignment, Stage


class Routes:
    """Routes for an exchange; empty before the first version."""

    def __init__(self) -> None:
        self._assignment: Assignment | None = None

    def update(self, assignment: Assignment) -> None:
        """Use this version from now on."""
        self._assignment = assignment

    def partitions(self, stage: int) -> int:
        """Return how many partitions a stage has."""
        now = self._assignment
        return 0 if now is None else _stage(now, stage).partitions

    def route(self, stage: int, number: int) -> Route | None:
        """Return the location of a stage's partition; None while it has no owner."""
        now = self._assignment
        if now is None:
            return None
        share = now.shares[now.partition_of(_stage(now, stage).name, number)]
        if share.owner is None:
            return None
        slot = share.owner.partition("/")[2]
        addresses = dict(now.by_id[worker_of(share.owner)].addresses)
        return Route(share.owner, addresses[f"deltas/{slot}"], epoch_of(share.since, 0))


def _stage(now: Assignment, stage: int) -> Stage:
    """Return a plan's stage as the assignment numbers it: repartitioning stages come first."""
    return now.stages[stage + dividing_stages(stage.name for stage in now.stages)]


def dividing_stages(names: Iterable[str]) -> int:
    """Return how many of the stages of an assignment repartition records, before all others."""
    return sum(map(stage_names.divides, names))
