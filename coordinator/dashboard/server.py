"""The dashboard's server: its pages, its access rights, its address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.dashboard.cluster import ClusterShown
from coordinator.dashboard.worker_metrics import WorkerMetrics
from ripple.client.dashboard.gate import Gate
from ripple.client.dashboard.outputs import Outputs
from ripple.client.dashboard.web import Dashboard
from ripple.control.settings_in_force import in_force
from ripple.world.addresses import joined

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.dashboard.timeline import Timeline
    from coordinator.service.shell import Shell
    from coordinator.settings import Settings
    from ripple.world.ports import World


DEFAULT = "127.0.0.1:9200"  # the default address of commands


class DashboardServer:
    """One dashboard, from ``start`` to ``close``."""

    def __init__(
        self,
        world: World,
        settings: Settings,
        shell: Shell,
        timeline: Timeline,
        say: Callable[[str], None],
        *,
        credential: Callable[[], str],
    ) -> None:
        """Do not listen yet. credential: returns the credential for output subscriptions."""
        assert world.store is not None
        assert world.network is not None
        self._at = joined(settings.host, settings.dashboard_port)
        at = joined(settings.host, settings.port)
        self._shown = ClusterShown(
            shell,
            world.store,
            world.clock,
            WorkerMetrics(world.network),
            name=settings.cluster,
            place=settings.store,
            timeline=timeline,
            credential=credential,
            retry_source=settings.retry_source,
            address="" if at == DEFAULT else at,
            settings=in_force(settings.origins),
            outputs=lambda find: Outputs(world, find, tls=settings.tls),
        )
        gate = Gate(
            settings.roles,
            lambda: world.random.bytes(24).hex(),
            allow_commands=settings.dashboard_allow_commands,
        )
        self._dashboard = Dashboard(self._shown, gate, world.clock, tls=settings.tls, say=say)

    @property
    def address(self) -> str:
        """Its URL."""
        return self._dashboard.address

    async def start(self) -> None:
        """Listen. Raises OSError."""
        await self._dashboard.start(self._at)

    async def close(self) -> None:
        """Stop listening."""
        await self._dashboard.close()
        await self._shown.close()
