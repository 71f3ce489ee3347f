"""Read-only subscriptions to the outputs of a running system, at consistent cuts.

async with Observer(world, found_by(coordinators, ...)) as observer:
    seen = await observer.follow("vwap")
    shown = await seen.whole()          # rows, and the cut of each partition
    for change in await seen.changes(): # changes since then
        ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.lazy import imported

if TYPE_CHECKING:
    from ripple.client.outputs.discovery import Endpoints, found_by
    from ripple.client.outputs.observer import Observer
    from ripple.client.outputs.subscription import (
        Change,
        OutputRows,
        OutputSubscription,
        Position,
    )

__all__ = [
    "Change",
    "Endpoints",
    "Observer",
    "OutputRows",
    "OutputSubscription",
    "Position",
    "found_by",
]

if not TYPE_CHECKING:
    __getattr__ = imported(
        __name__,
        {
            "Change": "ripple.client.outputs.subscription",
            "Observer": "ripple.client.outputs.observer",
            "Endpoints": "ripple.client.outputs.discovery",
            "Position": "ripple.client.outputs.subscription",
            "OutputSubscription": "ripple.client.outputs.subscription",
            "OutputRows": "ripple.client.outputs.subscription",
            "found_by": "ripple.client.outputs.discovery",
        },
    )
