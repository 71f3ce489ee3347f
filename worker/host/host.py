"""The running pipelines of a host: those of the record, each with its own worker.

    the record -> the wanted worker of each pipeline -> processes

Invariant: a removed pipeline is only forgotten after the end of its worker.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ripple.control.assignment.pipeline_chain import RecordReader
from ripple.control.probes import serve_pages
from ripple.control.process_settings import listening
from ripple.core.setting import SettingsError
from ripple.storage.store import RetryingStore
from ripple.storage.store.opening import open_store
from ripple.world import live_world
from ripple.world.addresses import joined, parts
from worker.host.arguments import arguments_of, data_port
from worker.host.child import Child
from worker.host.pages import Pages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ripple.control.assignment.pipelines import Hosted, Pipelines
    from ripple.control.telemetry.log import Log
    from ripple.world.ports import Network, World
    from worker.settings import Settings

WAY_OUT = "give several another store"
END_S = 1.0  # beyond a worker's own time limit of a graceful end


class Host:
    """The workers of all pipelines here."""

    def __init__(self, settings: Settings, world: World, say: Callable[[str], None]) -> None:
        """Start nothing yet. world: with the common store."""
        assert world.store is not None
        assert world.network is not None
        self.children: dict[str, Child] = {}
        self.pages: dict[str, tuple[str, str]] = {}  # by pipeline: of health and of metrics
        self._settings, self._clock, self._say = settings, world.clock, say
        self._network: Network = world.network
        store = RetryingStore(world.store, world.clock, world.random)
        self._reader = RecordReader(store, settings.store, say, way_out=WAY_OUT)

    @property
    def record(self) -> Pipelines | None:
        """The last reading of the record, None before the first one."""
        return self._reader.record

    async def run(self, stopping: asyncio.Event) -> None:
        """Follow the record until ``stopping`` is set, and end all workers.

        Raises SettingsError for a store of one pipeline.
        """
        try:
            while not stopping.is_set():
                found = await self._reader.read()
                if found is not None:
                    self.follow(found)
                await _set_within(stopping, self._reader.interval_s)
        finally:
            for child in self.children.values():
                child.want(None)
            await asyncio.gather(*(child.ended() for child in self.children.values()))

    def follow(self, record: Pipelines) -> None:
        """Start, change and end workers as the record requires."""
        there = {one.name: one for one in record.all}
        for name in [name for name, child in self.children.items() if name not in there]:
            self.children[name].want(None)
            if self.children[name].is_over:
                del self.children[name]
                self.pages.pop(name, None)
        for name, hosted in there.items():
            if name not in self.children:
                end_s = self._settings.stop_ms / 1000 + END_S
                self.children[name] = Child(name, self.command, self._clock, self._say, end_s=end_s)
            self.children[name].want(hosted)

    async def command(self, hosted: Hosted) -> Sequence[str]:
        """Return the command line of a pipeline's worker. Raises OSError."""
        health, metrics, data = [await self._free_port() for _ in range(3)]
        rpc_port = data_port(self._settings, hosted) or data
        host = self._settings.host
        self.pages[hosted.name] = joined(host, health), joined(host, metrics)
        given = arguments_of(
            self._settings, hosted, rpc_port=rpc_port, health_port=health, metrics_port=metrics
        )
        return [sys.executable, "-P", "-m", "worker", *given]

    async def _free_port(self) -> int:
        """Return a port that is free now; a worker restarts with another one if it is taken."""
        listener = await self._network.listen(joined(self._settings.host, 0), _hang_up)
        listener.close()
        return parts(listener.address)[1]


async def host(settings: Settings, log: Log, stopping: asyncio.Event) -> None:
    """Run the workers of a cluster of several pipelines until ``stopping`` is set.

    Raises SettingsError for a port that is taken, a folder that is not there, or a store of one
    pipeline.
    """
    if not os.path.isdir(settings.pipelines):
        raise SettingsError(
            f"pipelines is {settings.pipelines} (from {settings.origins['pipelines'].origin}), "
            "which is no folder: give the one that has the files of the pipelines"
        )
    async with open_store(settings.store, settings.s3, is_probed=True) as store:
        world = live_world(".", store=store)
        assert world.network is not None
        running = Host(settings, world, log.say)
        pages = Pages(running, world.network)
        shown = {"health_port": pages.of_health, "metrics_port": pages.of_metrics}
        async with AsyncExitStack() as ending:
            addresses = []
            for name, some in shown.items():
                with listening(name, settings.origins):
                    at = joined(settings.host, getattr(settings, name))
                    listener = await serve_pages(world.network, at, some)
                ending.callback(listener.close)
                addresses.append(listener.address)
            log.say(
                f"worker {settings.worker_id} of several pipelines in {settings.pipelines}; "
                f"/health, /ready and /pipelines at {addresses[0]}, /metrics at {addresses[1]}"
            )
            await running.run(stopping)


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


async def _hang_up(_: object) -> None:
    pass
