"""A coordinator as a process: it listens, and works until somebody tells it to end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator.pages import metrics_of, probes_of
from coordinator.service import Desk
from coordinator.shell import Shell
from coordinator.timeline import Timeline
from ripple.probes import serve_pages
from ripple.world.addresses import joined

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.settings import Settings
    from coordinator.showing import Showing
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
    timeline = Timeline(world.clock)

    def told(line: str) -> None:
        timeline.note(line)
        say(line)

    shell = Shell(world, settings.limits, peers=settings.peers, tls=settings.tls, say=told)
    probes = await serve_pages(
        world.network, joined(settings.host, settings.health_port), probes_of(shell)
    )
    metrics = await serve_pages(
        world.network, joined(settings.host, settings.metrics_port), metrics_of(shell)
    )
    server = await world.control.serve(
        joined(settings.host, settings.port), Desk(shell, settings.roles).service, tls=settings.tls
    )
    shown = await show(world, settings, shell, timeline, say) if settings.dashboard else None
    said = "" if shown is None else f", the dashboard at {shown.address}"
    say(
        f"coordinator {shell.replica} of cluster {settings.cluster} listens at {server.address}, "
        f"/health and /ready at {probes.address}, /metrics at {metrics.address}{said}"
    )
    working = asyncio.ensure_future(shell.run())
    waiting = asyncio.ensure_future(ending.wait())
    try:
        await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        if shown is not None:
            await shown.close()
        probes.close()
        metrics.close()
        await server.close(GRACE_S)
        waiting.cancel()
        working.cancel()
        await asyncio.wait([working])
    await shell.end()
    if not working.cancelled():
        working.result()  # what has ended it


async def show(
    world: World, settings: Settings, shell: Shell, timeline: Timeline, say: Callable[[str], None]
) -> Showing:
    """Show the dashboard. Raises OSError for an address that cannot be had."""
    from coordinator.showing import Showing  # noqa: PLC0415 - of an extra, and slow to import

    shown = Showing(world, settings, shell, timeline, say)
    await shown.start()
    return shown
