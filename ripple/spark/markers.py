"""The markers that a durable run recorded of idle inputs, for a replay of what it has read."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.core.errors import InputError
from ripple.spark.marks import Mark
from ripple.spark.portions import Sources
from ripple.storage.store.opening import store_to_read
from ripple.task.marker_log import MarkerLog

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan


def marked(sources: Sources, place: str, plan: Plan) -> Sources:
    """Return the sources with the markers in the checkpoints at ``place``: a folder, or S3.

    Raises InputError where none are there, or some are of another input, and StoreError.
    """
    found = asyncio.run(_read(place, plan.name))
    names = {share.name for share in sources.shares}
    for name in found:
        if name not in names:
            raise InputError(
                f"{place} holds markers of input {name!r}, and this replay reads "
                f"{', '.join(sorted(names))}: name the source as the run did"
            )
    each = tuple(
        replace(
            one,
            shares=tuple(
                replace(share, marks=tuple(found.get(share.name, ()))) for share in one.shares
            ),
        )
        for one in sources.each
    )
    return Sources(each)


async def _read(place: str, pipeline: str) -> dict[str, list[Mark]]:
    async with store_to_read(place, "--markers") as store:
        log = MarkerLog(store, pipeline)
        await log.read()
    if log.first or not log.is_there:
        what = f"the oldest {log.first} are gone" if log.first else "there are none"
        raise InputError(
            f"{place}: no markers of pipeline {pipeline!r} can be replayed, since {what}: name the "
            "folder of checkpoints of the run that has read the source"
        )
    found: defaultdict[str, list[Mark]] = defaultdict(list)
    at = 0
    while (marker := log.after(at)) is not None:
        found[marker.input].append(Mark(marker.offset, marker.watermark_ns))
        at = marker.next_offset
    return found
