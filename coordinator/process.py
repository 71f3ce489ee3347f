"""A coordinator as a process: it listens, and works until somebody tells it to end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator.pages import metrics_of, probes_of
from coordinator.service import Desk
from coordinator.shell import Shell
from ripple.probes import serve_pages
from ripple.world.addresses import joined

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.settings import Settings
    from ripple.world.ports import World

GRACE_S = 1.0


async def coordinate(
    world: World,
    settings: Settings,
    say: Callable[[str], None],
    ending: asyncio.Event,
) -> None:
    """Be a coordinator until ``ending`` is set. Raises OSError for an address that cannot be had.

    Pages are shown before the first worker is heard: whoever waits for /ready sees it come.
    """
    assert world.control is not None
    assert world.network is not None
    shell = Shell(world, settings.limits, peers=settings.peers, tls=settings.tls, say=say)
    probes = await serve_pages(
        world.network, joined(settings.host, settings.health_port), probes_of(shell)
    )
    metrics = await serve_pages(
        world.network, joined(settings.host, settings.metrics_port), metrics_of(shell)
    )
    server = await world.control.serve(
        joined(settings.host, settings.port), Desk(shell).service, tls=settings.tls
    )
    say(
        f"coordinator {shell.replica} of cluster {settings.cluster} listens at {server.address}, "
        f"/health and /ready at {probes.address}, /metrics at {metrics.address}"
    )
    working = asyncio.ensure_future(shell.run())
    waiting = asyncio.ensure_future(ending.wait())
    try:
        await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        probes.close()
        metrics.close()
        await server.close(GRACE_S)
        waiting.cancel()
        working.cancel()
        await asyncio.wait([working])
    await shell.end()
    if not working.cancelled():
        working.result()  # what has ended it
