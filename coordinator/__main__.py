"""``ripple-coordinator``: one of the coordinators of a cluster.

Exit codes: ``ripple.control.daemon``.
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from coordinator.settings import SETTINGS, Settings, load
from ripple.control.daemon import Daemon
from ripple.control.process import leave

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Sequence

    from ripple.storage.store import CountedStore
    from ripple.world.ports import World


def main(given: Sequence[str] | None = None) -> int:
    """Run the process; return its exit code."""
    return DAEMON.main(sys.argv[1:] if given is None else given)


async def _work(settings: Settings, ending: asyncio.Event) -> None:
    # gRPC is loaded here: errors of settings are reported before.
    from coordinator.pipelines import coordinate_all  # noqa: PLC0415
    from coordinator.process import coordinate  # noqa: PLC0415
    from ripple.control.assignment.pipelines import place_of  # noqa: PLC0415
    from ripple.control.telemetry.process_log import log_of  # noqa: PLC0415
    from ripple.storage.store import CountedStore  # noqa: PLC0415
    from ripple.storage.store.opening import open_store  # noqa: PLC0415
    from ripple.world import live_world  # noqa: PLC0415
    from ripple.world.live_control import LiveControl  # noqa: PLC0415

    log = log_of(settings.log, component="coordinator")

    @asynccontextmanager
    async def opens(pipeline: str) -> AsyncIterator[tuple[World, CountedStore]]:
        async with open_store(place_of(settings.store, pipeline), settings.s3) as opened:
            counted = CountedStore(opened)
            control = LiveControl(pipeline=pipeline)
            yield live_world(".", store=counted, control=control), counted

    async with open_store(settings.store, settings.s3, is_probed=True) as opened:
        store = CountedStore(opened)
        world = live_world(".", store=store, control=LiveControl())
        if not settings.several_pipelines:
            await coordinate(world, settings, log.say, ending, store)
        else:
            await coordinate_all(world, settings, log.say, ending, opens)
    log.say("ended")
    log.close()


DAEMON = Daemon("ripple-coordinator", SETTINGS, load, lambda settings: partial(_work, settings))

if __name__ == "__main__":
    leave(main())
