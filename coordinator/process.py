"""A coordinator process: it listens, and works until it is told to end."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from coordinator.dashboard.timeline import Timeline
from coordinator.pages import metrics_of, probes_of
from coordinator.service.cluster_identity import ClusterIdentity
from coordinator.service.handlers import Handlers
from coordinator.service.shell import Shell
from ripple.control.probes import serve_pages
from ripple.control.process_settings import listening
from ripple.control.validity import validity_of, watch
from ripple.world.addresses import joined

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from coordinator.dashboard.server import DashboardServer
    from coordinator.settings import Settings
    from ripple.control.probes import Shows
    from ripple.storage.store import CountedStore
    from ripple.world.control import Service
    from ripple.world.ports import World

GRACE_S = 1.0


async def coordinate(
    world: World,
    settings: Settings,
    say: Callable[[str], None],
    ending: asyncio.Event,
    requests: CountedStore | None = None,
) -> None:
    """Run a coordinator until ``ending`` is set. Raises SettingsError for a port that is taken.

    requests: the world's store, if it counts requests.

    Pages are served before the first worker is heard: a prober of /ready sees it become ready.
    """
    timeline = Timeline(world.clock)

    def note(line: str) -> None:
        timeline.note(line)
        say(line)

    if settings.roles is not None:
        settings.roles.warn_with(note)
    shell = Shell(world, settings.limits, peers=settings.peers, tls=settings.tls, say=note)
    validity = validity_of(settings.tls, world.clock)
    cluster = ClusterIdentity(world, settings.cluster, say)
    service = Handlers(shell, settings.roles, cluster.credential).service
    async with AsyncExitStack() as stack:
        listens = await listening_at(
            stack,
            world,
            settings,
            service,
            probes=probes_of(shell),
            metrics=metrics_of(shell, validity, requests),
        )
        said = ""
        if settings.dashboard:
            shown = await show(world, settings, shell, timeline, say, cluster=cluster)
            stack.push_async_callback(shown.close)
            said = f", the dashboard at {shown.address}"
        say(f"coordinator {shell.replica} of cluster {settings.cluster} {listens}{said}")
        working = asyncio.ensure_future(begun(cluster, shell))
        waiting = asyncio.ensure_future(ending.wait())
        looking = asyncio.ensure_future(
            watch(validity, note, world.clock, partial(shell.concern, "tls"))
        )
        stack.callback(looking.cancel)
        try:
            await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await stack.aclose()  # the shell ends: there are no viewers left
            waiting.cancel()
            working.cancel()
            await asyncio.wait([working])
    await shell.end()
    if not working.cancelled():
        working.result()  # the error that ended it


async def listening_at(
    stack: AsyncExitStack,
    world: World,
    settings: Settings,
    service: Service,
    *,
    probes: Mapping[str, Shows],
    metrics: Mapping[str, Shows],
) -> str:
    """Serve pages and methods until the stack closes; return where, as text.

    Raises SettingsError for a port that is taken.
    """
    assert world.control is not None
    assert world.network is not None
    found = []
    for name, pages in (("health_port", probes), ("metrics_port", metrics)):
        with listening(name, settings.origins):
            at = joined(settings.host, getattr(settings, name))
            listener = await serve_pages(world.network, at, pages)
        stack.callback(listener.close)
        found.append(listener.address)
    with listening("port", settings.origins):
        at = joined(settings.host, settings.port)
        server = await world.control.serve(at, service, tls=settings.tls)
    stack.push_async_callback(server.close, GRACE_S)
    return f"listens at {server.address}, /health and /ready at {found[0]}, /metrics at {found[1]}"


async def begun(cluster: ClusterIdentity, shell: Shell) -> None:
    """Run a coordinator once its cluster is known. Raises AssignmentError for another cluster."""
    await cluster.begin()
    shell.state.store = cluster.mark
    await shell.run()


async def show(
    world: World,
    settings: Settings,
    shell: Shell,
    timeline: Timeline,
    say: Callable[[str], None],
    *,
    cluster: ClusterIdentity,
) -> DashboardServer:
    """Serve the dashboard. Raises SettingsError for a port that is taken."""
    from coordinator.dashboard.server import DashboardServer  # noqa: PLC0415 - of an extra, and slow to import

    shown = DashboardServer(world, settings, shell, timeline, say, credential=cluster.credential)
    with listening("dashboard_port", settings.origins):
        await shown.start()
    return shown
