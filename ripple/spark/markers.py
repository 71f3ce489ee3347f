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
    from collections.abc import Iterable

    from ripple.model.pipeline.plan import Plan
    from ripple.spark.portions import Sources
    from ripple.spark.shares import Share


def marked(sources: Sources, place: str, plan: Plan) -> Sources:
    """Return the sources with the markers in the checkpoints at ``place``: a folder, or S3.

    It may be the store of a cluster, which has those of all partitions.

    Raises InputError where none are there, or some are of another input, and StoreError.
    """
    logs = asyncio.run(_logs(place, plan.name, "--markers"))
    gone = sum(log.first for log in logs)
    if gone or not any(log.is_there for log in logs):
        what = f"the oldest {gone} are gone" if gone else "there are none"
        raise InputError(
            f"{place}: no markers of pipeline {plan.name!r} can be replayed, since {what}: name "
            "the folder of checkpoints of the run that has read the source, or the store of the "
            "cluster"
        )
    found = _marks(logs)
    sources.check_inputs(found, f"{place} holds markers of input")
    known = sources.with_shares(
        lambda share: replace(share, marks=tuple(found.get(share.name, ())))
    )
    return replace(known, are_apart=len(logs) > 1)


def check_same_run(shares: Iterable[Share], place: str, plan: Plan) -> None:
    """Raise InputError where markers of shares are not those of the run at ``place``.

    Markers that one of both logs has merged away are left out. Raises StoreError.
    """
    given = [share for share in shares if share.marks]
    own = _marks(asyncio.run(_logs(place, plan.name, "--cut"))) if given else {}
    for share in given:
        theirs = {mark.number: mark for mark in own.get(share.name, ())}
        if any(theirs.get(mark.number, mark) != mark for mark in share.marks):
            raise InputError(
                f"input {share.name!r} has other markers than those of the run of {place}: give "
                f"--markers {place} (markers=), or the cut of the run that the markers are of"
            )


async def _logs(place: str, pipeline: str, what: str) -> list[MarkerLog]:
    """Return the logs of markers of all partitions that have one. what: how errors name it."""
    async with store_to_read(place, what) as store:
        logs = [MarkerLog(store, pipeline, at) for at in await partitions_in(store, pipeline)]
        for log in logs:
            await log.read()
    return logs


def _marks(logs: Iterable[MarkerLog]) -> dict[str, list[Mark]]:
    """Return the markers by input."""
    found: defaultdict[str, list[Mark]] = defaultdict(list)
    for log in logs:
        at = log.first
        while (marker := log.after(at)) is not None:
            mark = Mark(marker.offset, marker.watermark_ns, marker.next_offset)
            found[marker.input].append(mark)
            at = marker.next_offset
    return found
