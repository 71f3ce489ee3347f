"""Outputs of a running system, followed from outside: read-only, at stated cuts, while it runs.

async with Observer(world, found_by(coordinators, ...)) as observer:
    seen = await observer.follow("vwap")
    shown = await seen.whole()          # rows, and the cut of each partition
    for change in await seen.changes(): # what came since, table by now
        ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.lazily import imported

if TYPE_CHECKING:
    from ripple.observing.observer import Observer
    from ripple.observing.output import Change, Position, SeenOutput, Shown
    from ripple.observing.places import Places, found_by

__all__ = ["Change", "Observer", "Places", "Position", "SeenOutput", "Shown", "found_by"]

if not TYPE_CHECKING:
    __getattr__ = imported(
        __name__,
        {
            "Change": "ripple.observing.output",
            "Observer": "ripple.observing.observer",
            "Places": "ripple.observing.places",
            "Position": "ripple.observing.output",
            "SeenOutput": "ripple.observing.output",
            "Shown": "ripple.observing.output",
            "found_by": "ripple.observing.places",
        },
    )
