"""The cut of a durable run or of a cluster, up to which a replay reads."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.core.errors import InputError
from ripple.model.pipeline.input_names import of_sources
from ripple.spark.answers import up_to
from ripple.spark.checkpoint_check import checkpoints_at
from ripple.spark.markers import check_same_run
from ripple.spark.marks import counted
from ripple.spark.options import BATCH_ROWS
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.fenced.errors import DamagedError
from ripple.storage.store.opening import store_to_read
from ripple.task.one_shot import at_once

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.model.pipeline.plan import Plan
    from ripple.spark.portions import Sources
    from ripple.spark.shares import Share
    from ripple.storage.checkpoint.format import Checkpoint


def at_cut(sources: Sources, place: str, plan: Plan) -> Sources:
    """Return the sources up to the newest checkpoint of each partition at ``place``.

    place: the folder of checkpoints, or ``s3://BUCKET/PREFIX``; of a run, or of a cluster. Raises
    InputError where it has read other inputs or markers that are not given, and StoreError.
    """
    store, numbers = checkpoints_at(place, plan)
    found: dict[str, Share] = {}
    newest = asyncio.run(_newest(store, plan.name, numbers))
    if not newest:
        raise InputError(
            f"{place} has no readable checkpoint of pipeline {plan.name!r}: name the folder of a "
            "run that has stored one, and check it with ripple checkpoint verify"
        )
    for one in newest:
        read = of_sources(one.cut)
        sources.check_inputs(read, f"the run of {place} has read")
        own = (share for share in sources.shares if share.name in read)
        for share in counted(own, one.cut):
            found[share.name] = _until(share, one, plan)
    for share in sources.shares:
        if share.name not in found:
            raise InputError(
                f"{place} has no cut of input {share.name!r}: name the source as the run did"
            )
    check_same_run(found.values(), place, plan)
    answers = sources.answers
    if answers is not None:
        answers = up_to(answers, [one.cut for one in newest], place)
    return replace(sources.with_shares(lambda share: found[share.name]), answers=answers)


def _until(share: Share, read: Checkpoint, plan: Plan) -> Share:
    """Return a share up to a checkpoint. Raises InputError unless its records are those read."""
    end = read.cut[share.name]
    if share.first > end:
        raise InputError(
            f"{share.place} was read up to offset {end}, and is to be read from {share.first} on"
        )
    if share.end is not None and share.end < end:
        raise InputError(
            f"{share.place} ends at offset {share.end}, and the run has read it up to {end}: name "
            "the source as the run did"
        )
    if share.partition is not None or share.is_clock:
        identity = read.notes.get(f"log/{share.name}", "")
        at_once(share.inputs(plan, BATCH_ROWS).check({share.name: end}, {share.name: identity}))
    return replace(share, end=end)


async def _newest(place: str, pipeline: str, numbers: Iterable[int]) -> list[Checkpoint]:
    """Return the newest checkpoint of each partition that reads sources."""
    async with store_to_read(place, "--cut") as store:
        try:
            listed = [await Checkpoints(store, pipeline, number).list() for number in numbers]
        except DamagedError as error:
            raise DamagedError(
                f"{error}: ripple checkpoint verify says what can be read; restore the rest, "
                "or end the replay with --to instead of --cut"
            ) from error
    return [present[0] for present in listed if present and not present[0].stage]
