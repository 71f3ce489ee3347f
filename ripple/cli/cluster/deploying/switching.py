"""The switch: another generation serves, if all of its partitions take the outputs over in time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from ripple.cli.cluster.deploying.counts import mates
from ripple.cli.cluster.deploying.standing import commits_at, previews, topic_at
from ripple.connectors.log.sink import newest_committer
from ripple.control.assignment import ATTEMPTS_MAX
from ripple.control.assignment.generations import (
    Serving,
    ServingChain,
    newest_version,
    store_of,
)
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.storage.store.opening import open_store, store_to_read
from ripple.world.live import LiveRandom

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.cli.cluster.deploying.standing import Generations
    from ripple.connectors.contract import Commit
    from ripple.model.pipeline.plan import Plan

LOOK_S = 0.05


def wait_level(
    plan: Plan, outputs: Mapping[str, str], there: Generations, candidate: int, within_s: float
) -> None:
    """Wait until a preview has come as far as the outputs were at the call.

    Raises InputError where it has not in time.
    """
    shown = previews(there.store, candidate, outputs)
    wanted = {name: commits_at(plan, name, place) for name, place in outputs.items()}
    until_s = time.monotonic() + within_s
    while True:
        behind = [
            f"{name}/{number}"
            for name, commits in wanted.items()
            for number in _behind(plan, name, (outputs[name], shown[name]), commits)
        ]
        if not behind:
            return
        if time.monotonic() > until_s:
            raise InputError(
                f"generation {candidate} has not come as far as the outputs within {within_s:g} s: "
                f"{', '.join(behind[:5])}{' and more' if len(behind) > 5 else ''}; nothing has "
                "changed: wait for it, or give a longer --timeout"
            )
        time.sleep(LOOK_S)


def _behind(
    plan: Plan, output: str, places: tuple[str, str], wanted: Mapping[int, Commit]
) -> Iterator[int]:
    """Yield the partitions of an output that are ahead of its preview.

    places: of both. The preview may have another number of partitions.
    """
    topics, now = [topic_at(place) for place in places], commits_at(plan, output, places[1])
    count, other = (0 if topic is None else topic.partitions for topic in topics)
    for number, commit in wanted.items():
        there = [now.get(one) for one in mates(number, count, other)] if other else []
        here: dict[str, int] = {}
        for one in there:
            for name, offset in ({} if one is None else one.cut).items():
                here[name] = min(offset, here.get(name, offset))
        if None in there or not there or not cuts.has_reached(here, commit.cut):
            yield number


def serve(store: str, before: Serving, generation: int) -> Serving:
    """Let another generation serve; return the entry.

    Raises InputError where another command was faster, AssignmentError and StoreError.
    """

    async def put() -> Serving | None:
        nonce = LiveRandom().bytes(8).hex()
        async with store_to_read(store_of(store, before.generation)) as own:
            after = before.next(generation, await newest_version(own))
        async with open_store(store) as opened:
            return after if await ServingChain(opened, nonce).put(before, after) else None

    after = asyncio.run(put())
    if after is None:
        raise InputError(
            f"another command has changed which generation serves in {store}: nothing was done; "
            "look again with --dry-run"
        )
    return after


def taken_over(outputs: Mapping[str, str], entry: Serving, within_s: float) -> list[str]:
    """Wait until partitions with the epochs of an entry have committed; return those that have not.

    outputs: URIs by name.
    """
    least = entry.above * ATTEMPTS_MAX
    until_s = time.monotonic() + within_s
    while True:
        left = [
            f"{name}/{number}"
            for name, place in outputs.items()
            if (topic := topic_at(place)) is not None
            for number in range(topic.partitions)
            if newest_committer(topic, number) <= least
        ]
        if not left or time.monotonic() > until_s:
            return left
        time.sleep(LOOK_S)
