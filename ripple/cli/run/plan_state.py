"""The state in a store, and whether it is that of a cluster, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ripple.cli.lib.exits import say
from ripple.cli.lib.path_options import store_below
from ripple.connectors.connector import Part
from ripple.control.assignment import AssignmentChain, stage_names
from ripple.engine.migration.adaptation import ChangedPlanError
from ripple.storage.checkpoint import Checkpoints, partitions
from ripple.storage.checkpoint.moved import moved_to
from ripple.storage.store.opening import store_to_read

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan
    from ripple.storage.checkpoint import Found


class State(NamedTuple):
    """The newest whole checkpoint of a partition, None if there is none.

    part: the partition of the first stage of the store's cluster, None for the state of ripple run.
    """

    found: Found | None
    part: Part | None

    @property
    def is_of_cluster(self) -> bool:
        """Whether workers would resume from it, not ripple run."""
        return self.part is not None

    @property
    def who(self) -> str:
        """Who would resume from it."""
        return "ripple run" if self.part is None else "workers"

    @property
    def it(self) -> str:
        """The pronoun of ``who``."""
        return "it" if self.part is None else "they"


async def state_in(plan: Plan, place: str, partition: int) -> State:
    """Return the state of a partition in a store; say on standard error if there is none.

    Raises ChangedPlanError for state that has moved to another store.
    """
    async with store_to_read(place, "--checkpoint-dir") as store:
        if (to := await moved_to(store, plan.name)) is not None:
            raise ChangedPlanError(
                f"the state of {plan.name!r} has moved to {to}: name that with --checkpoint-dir"
            )
        found = await Checkpoints(store, plan.name, partition).latest()
        present = () if found else await partitions(store)
        reading = await AssignmentChain(store).newest()
    stages = () if reading.entry is None else reading.entry.content.stages
    part = Part(partition, stage_names.asked(stages).partitions) if stages else None
    if found is None:
        others = ", ".join(f"{name}/{number}" for name, number in present)
        say(
            f"ripple plan: no checkpoint of {plan.name}/{partition} in {place}; there is state of "
            f"{others or 'nothing else'}{store_below(place)}"
        )
    return State(found, part)
