"""The first version of a new assignment chain, chosen above all epochs that are known elsewhere.

Epochs follow from versions. Outputs, checkpoints and repartition topics may outlive a store: they
know the epochs of a lost chain and refuse lower ones. So the first version of a new chain is one
with higher epochs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.connectors.locate import newest_owner_at
from ripple.control.assignment import since_of
from ripple.core.errors import RippleError
from ripple.storage.checkpoint.checkpoints import newest_epoch
from ripple.task.dead_letters.hint_store import newest_keeper
from ripple.task.repartition.topics import newest_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.connectors.connector import LaneHome
    from ripple.control.assignment import AssignmentChain
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import ObjectStore, World

PAUSE_S = 2.0


async def begin_above(
    chain: AssignmentChain,
    plan: Plan,
    places: Mapping[str, str],
    *,
    store: ObjectStore,
    world: World,
    home: LaneHome | None,
    stopping: asyncio.Event,
    say: Callable[[str], object],
) -> None:
    """Let an empty chain begin above the epochs that outputs, store and repartition topics know.

    places: URIs of outputs. home: repartition topics at brokers. A system that does not answer is
    retried, until ``stopping`` is set.
    """
    problem = ""
    while not stopping.is_set():
        try:
            if (await chain.newest()).newest_number:
                return
            known = await asyncio.to_thread(_known, plan, places, world, home)
            known = max(known, await newest_epoch(store, plan.name))
            known = max(known, await newest_keeper(store, plan.name))
            first = since_of(known) + 1
            # The first version may have come meanwhile, perhaps from another worker that looked.
            if first > 1 and not (await chain.newest()).newest_number:
                await chain.begin_at(first)
                say(f"outputs know an owner of epoch {known}: the first version is {first}")
            return
        except (RippleError, OSError) as error:
            if str(error) != problem:
                problem = str(error)
                say(f"cannot read the previous owners of the outputs, tries again: {problem}")
        await world.clock.sleep(PAUSE_S)


def _known(plan: Plan, places: Mapping[str, str], world: World, home: LaneHome | None) -> int:
    """Return the highest epoch that outputs and repartition topics know."""
    known = [newest_owner_at(place, plan, name) for name, place in places.items()]
    if home is None:
        known.append(newest_owner(world.disk, plan))
    elif places:
        known.append(newest_owner_at(home.place(plan.name), plan, next(iter(places))))
    return max(known, default=0)
