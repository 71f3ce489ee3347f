"""The markers that a durable run or a cluster recorded, for a replay or a validation."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.core.errors import InputError
from ripple.spark.marks import Mark
from ripple.storage.store.opening import store_to_read
from ripple.task.marker_log import MarkerLog, partitions_in

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.portions import Sources


def marked(sources: Sources, place: str, plan: Plan) -> Sources:
    """Return the sources with the markers in the checkpoints at ``place``: a folder, or S3.

    It may be the store of a cluster, which has those of all partitions.

    Raises InputError where none are there, or some are of another input, and StoreError.
    """
    found, partitions = asyncio.run(_read(place, plan.name))
    sources.check_inputs(found, f"{place} holds markers of input")
    known = sources.with_shares(
        lambda share: replace(share, marks=tuple(found.get(share.name, ())))
    )
    return replace(known, are_apart=partitions > 1)


async def _read(place: str, pipeline: str) -> tuple[dict[str, list[Mark]], int]:
    """Return the markers of all partitions by input, and how many partitions have logs of them."""
    async with store_to_read(place, "--markers") as store:
        logs = [MarkerLog(store, pipeline, at) for at in await partitions_in(store, pipeline)]
        for log in logs:
            await log.read()
    gone = sum(log.first for log in logs)
    if gone or not any(log.is_there for log in logs):
        what = f"the oldest {gone} are gone" if gone else "there are none"
        raise InputError(
            f"{place}: no markers of pipeline {pipeline!r} can be replayed, since {what}: name the "
            "folder of checkpoints of the run that has read the source, or the store of the cluster"
        )
    found: defaultdict[str, list[Mark]] = defaultdict(list)
    for log in logs:
        at = 0
        while (marker := log.after(at)) is not None:
            mark = Mark(marker.offset, marker.watermark_ns, marker.next_offset)
            found[marker.input].append(mark)
            at = marker.next_offset
    return found, len(logs)
