"""Records that a rebuild reads twice: retried dead letters, and their copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.retries import read_journal, retries_path
from ripple.core.errors import InputError
from ripple.storage.log_uri import PREFIX, LogUri
from ripple.world import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Collection

    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import Disk

SHOWN = 10


def retried_remark(rebuild: Collection[str], plan: Plan, disk: Disk | None, source: str) -> str:
    """Return the remark before a rebuild, "" for none.

    disk: of the checkpoints, None where they are in S3.
    """
    if disk is None and source.startswith(PREFIX):
        disk = LiveDisk(LogUri.parse(source).folder, make=False)
    if not rebuild or disk is None:
        return ""
    try:
        retried = sorted(read_journal(disk, retries_path(plan.name)).retried)
    except (InputError, OSError) as error:
        return (
            "whether dead letters were retried, so that the rebuild reads their records twice, is "
            f"not known: {error}"
        )
    if not retried:
        return ""
    shown = ", ".join(f"{one.input} {one.offset}" for one in retried[:SHOWN])
    more = f" and {len(retried) - SHOWN} more" if len(retried) > SHOWN else ""
    return (
        f"{len(retried)} dead letters were retried, so their records are in the source twice: the "
        f"rebuild reads both, and counts twice what this code takes now: {shown}{more}"
    )
