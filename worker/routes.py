"""Where partitions are, as the newest version of the assignment has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.assignment import epoch_of, worker_of
from ripple.exchange.exchange import Route

if TYPE_CHECKING:
    from ripple.assignment import Assignment


DIVIDING = "repartition"


class Routes:
    """Answers what an exchange asks; before the first version nobody is anywhere."""

    def __init__(self) -> None:
        self._assignment: Assignment | None = None

    def update(self, assignment: Assignment) -> None:
        """Answer by this version from now on."""
        self._assignment = assignment

    def partitions(self, stage: int) -> int:
        """Return how many partitions a stage has."""
        now = self._assignment
        return 0 if now is None else now.stages[_place(now, stage)].partitions

    def route(self, stage: int, number: int) -> Route | None:
        """Return where a partition of a stage is; None while nobody has it."""
        now = self._assignment
        if now is None:
            return None
        before = now.stages[: _place(now, stage)]
        share = now.shares[sum(one.partitions for one in before) + number]
        if share.owner is None:
            return None
        slot = share.owner.partition("/")[2]
        addresses = dict(now.by_id[worker_of(share.owner)].addresses)
        return Route(share.owner, addresses[f"deltas/{slot}"], epoch_of(share.since, 0))


def _place(now: Assignment, stage: int) -> int:
    """Return where a plan's stage is among the assignment's: one that divides records is before."""
    return stage + (now.stages[0].name == DIVIDING)
