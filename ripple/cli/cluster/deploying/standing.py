"""Which generations of a pipeline there are in a store, and how far their outputs have come."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.cli.lib.output_forms import many
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.log.sink import committed_in
from ripple.control.assignment import AssignmentChain
from ripple.control.assignment.generations import (
    FIRST,
    Serving,
    ServingChain,
    previews_of,
    store_of,
)
from ripple.core.errors import InputError
from ripple.storage.checkpoint import newest_of_each
from ripple.storage.log import LogError, Topic
from ripple.storage.log_uri import PREFIX, LogUri
from ripple.storage.store.opening import store_to_read
from ripple.storage.store.s3_settings import is_s3
from ripple.world import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ripple.connectors.contract import Commit
    from ripple.control.assignment import Assignment
    from ripple.model.pipeline.plan import Plan

_LATER = re.compile(r"g([0-9]{1,4})")


@dataclass(frozen=True, slots=True)
class Generations:
    """The generations in a store.

    store: the one that all of them name. serving: the record. assignment: the newest version of the
    one that serves, None without a cluster. newest: the highest generation that has begun.
    """

    store: str
    serving: Serving
    assignment: Assignment | None
    newest: int

    @property
    def candidate(self) -> int | None:
        """The generation that waits to serve, None if the newest one serves, or has served."""
        return self.newest if self.newest > self.serving.newest else None


def generations_in(store: str) -> Generations:
    """Return the generations in a store. Raises InputError, StoreError and AssignmentError."""
    if is_s3(store):
        raise InputError(
            f"{store} is in S3, where a pipeline has one generation: name another store and other "
            "outputs for the new code, and let readers change over (docs/changing.md)"
        )
    return asyncio.run(_read(store))


async def _read(store: str) -> Generations:
    async with store_to_read(store) as opened:
        serving = await ServingChain(opened).newest()
    folder = f"{store}/cluster"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    numbers = [int(found[1]) for one in names if (found := _LATER.fullmatch(one))]
    async with store_to_read(store_of(store, serving.generation)) as opened:
        reading = await AssignmentChain(opened).newest()
    assignment = None if reading.entry is None else reading.entry.content
    return Generations(store, serving, assignment, max([FIRST, serving.newest, *numbers]))


def serving_in(store: str) -> int:
    """Return the generation that serves in a store, which may not be there yet."""
    return _record_in(store).generation


def has_served(store: str, generation: int) -> bool:
    """Return whether a generation serves in a store, or has served: others have a preview."""
    return generation <= _record_in(store).newest


def _record_in(store: str) -> Serving:
    if is_s3(store) or not os.path.isdir(store):
        return Serving()

    async def newest() -> Serving:
        async with store_to_read(store) as opened:
            return await ServingChain(opened).newest()

    return asyncio.run(newest())


def check_is_code(
    plan: Plan, there: Generations, generation: int, counts: Iterable[tuple[str, int]]
) -> None:
    """Raise InputError for a generation with other code, or other partitions, than a plan.

    The plan's checks would not hold for it. counts: the partitions of the plan's stages, 0 for
    any.
    """

    async def found() -> tuple[set[str], Assignment | None]:
        async with store_to_read(store_of(there.store, generation)) as opened:
            codes = {one.topology_hash async for one in newest_of_each(opened, plan.name)}
            entry = (await AssignmentChain(opened).newest()).entry
            return codes, None if entry is None else entry.content

    codes, assignment = asyncio.run(found())
    waits = generation == there.candidate
    remedy = "name the file that it was begun with, or " + (
        "remove it with --abort and deploy this one" if waits else "deploy this one"
    )
    if codes - {plan.topology_hash}:
        raise InputError(f"generation {generation} computes other code than this file: {remedy}")
    own = {} if assignment is None else {one.name: one.partitions for one in assignment.stages}
    for name, count in counts:
        if count not in (0, own.get(name, count)):
            raise InputError(
                f"generation {generation} has {many(own[name], 'partition')} of stage {name}, and "
                f"this file, or --partitions, says {count}: {remedy}"
            )


def previews(store: str, generation: int, outputs: Mapping[str, str]) -> dict[str, str]:
    """Return the URIs of the previews of a generation's outputs."""
    return previews_of(store_of(store, generation), outputs)


def topic_at(place: str) -> Topic | None:
    """Return the topic of an output, None before anything was written. Raises InputError."""
    if not place.startswith(PREFIX):
        raise InputError(f"{place} is no log: generations share outputs that are log:DIR/TOPIC")
    found = LogUri.whole(place)
    try:
        return Topic.open(LiveDisk(found.folder, make=False), found.topic)
    except (LogError, OSError):
        return None


def commits_at(plan: Plan, output: str, place: str) -> dict[int, Commit]:
    """Return what the partitions of an output have committed. Raises OutputError."""
    topic = topic_at(place)
    if topic is None:
        return {}
    owner = Owner(plan.name, output)
    found = {one: committed_in(topic, one, owner) for one in range(topic.partitions)}
    return {number: commit for number, commit in found.items() if commit is not None}
