"""A coordinator of several pipelines: one coordinator for each running pipeline.

They share one address. An error in one is logged, and restarts this one; the others continue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from coordinator.dashboard.timeline import Timeline
from coordinator.pages import alerts_of, health_of, samples_of_process
from coordinator.process import begun, listening_at, show
from coordinator.service.cluster_identity import ClusterIdentity
from coordinator.service.front import Front
from coordinator.service.handlers import Handlers
from coordinator.service.shell import Shell
from ripple.control.assignment.pipeline_chain import RecordReader
from ripple.control.assignment.pipelines import place_of
from ripple.control.probes import Page, json_page
from ripple.control.telemetry.by_pipeline import labelled, together
from ripple.control.telemetry.exposition import CONTENT_TYPE, exposition
from ripple.control.telemetry.metrics import OF_COORDINATORS
from ripple.control.validity import validity_of, watch
from ripple.core.errors import RippleError
from ripple.world.pauses import doubling

if TYPE_CHECKING:
    from coordinator.settings import Settings
    from ripple.control.assignment.pipelines import Hosted, Pipelines
    from ripple.storage.store import CountedStore
    from ripple.world.control import Service
    from ripple.world.ports import Clock, World

    Opens: TypeAlias = Callable[[str], AbstractAsyncContextManager[tuple[World, CountedStore]]]

PAUSE_S = 1.0
PAUSE_MAX_S = 30.0
WAY_OUT = "give several another store, or leave --several-pipelines out"


class Coordinated:
    """The coordinator of one pipeline, from ``begin`` to ``end``; it restarts after an error."""

    def __init__(
        self,
        hosted: Hosted,
        settings: Settings,
        clock: Clock,
        opens: Opens,
        say: Callable[[str], None],
    ) -> None:
        """Start nothing yet. opens: the world of a pipeline, with its store."""
        self.hosted = hosted
        self.shell: Shell | None = None
        self.service: Service | None = None
        self.requests: CountedStore | None = None
        self.problem = ""  # the error that ended it
        self._settings, self._clock = settings, clock
        self._opens = opens
        self._say = say
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Work, from now on."""
        self._task = asyncio.ensure_future(self._live())

    async def end(self) -> None:
        """End, and remove its traces from the store."""
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _live(self) -> None:
        pauses_s = doubling(PAUSE_S, PAUSE_MAX_S)
        while True:
            try:
                async with self._opens(self.hosted.name) as (world, requests):
                    await self._work(world, requests)
            except (RippleError, OSError, ExceptionGroup) as error:
                self.problem = _text(error)
                self._say(f"{self.problem}; begins again")
            finally:
                self.shell = self.service = None
            await self._clock.sleep(next(pauses_s))

    async def _work(self, world: World, requests: CountedStore) -> None:
        settings, timeline = self._settings, Timeline(world.clock)

        def note(line: str) -> None:
            timeline.note(line)
            self._say(line)

        limits = replace(settings.limits, partitions=self.hosted.partitions)
        shell = Shell(world, limits, peers=settings.peers, tls=settings.tls, say=note)
        cluster = ClusterIdentity(world, settings.cluster, note)
        self.service = Handlers(shell, None, cluster.credential).service
        self.shell, self.requests = shell, requests
        async with AsyncExitStack() as stack:
            if settings.dashboard:
                port = settings.dashboard_port and settings.dashboard_port + self.hosted.number
                own = replace(
                    settings,
                    dashboard_port=port,
                    store=place_of(settings.store, self.hosted.name),
                    retry_source="",
                )
                shown = await show(world, own, shell, timeline, note, cluster=cluster)
                stack.push_async_callback(shown.close)
                note(f"the dashboard is at {shown.address}")
            self.problem = ""
            try:
                await begun(cluster, shell)
            finally:
                await shell.end()


class Coordinators:
    """The coordinators of all running pipelines of the record."""

    def __init__(
        self,
        world: World,
        settings: Settings,
        opens: Opens,
        say: Callable[[str], None],
    ) -> None:
        """Read nothing yet. world: with the common store."""
        assert world.store is not None
        self.running: dict[str, Coordinated] = {}
        self._world, self._settings = world, settings
        self._reader = RecordReader(world.store, settings.store, say, way_out=WAY_OUT)
        self._opens, self._say = opens, say

    @property
    def record(self) -> Pipelines | None:
        """The last reading of the record, None before the first one."""
        return self._reader.record

    @property
    def services(self) -> Mapping[str, Service]:
        """The services of the coordinators at work, by pipeline."""
        return {name: one.service for name, one in self.running.items() if one.service is not None}

    async def run(self) -> None:
        """Follow the record until cancelled. Raises SettingsError for a store of one pipeline."""
        try:
            while True:
                before, found = self.record, await self._reader.read()
                if found is not None and (before is None or found.entry != before.entry):
                    await self._follow(found)
                await self._world.clock.sleep(self._reader.interval_s)
        finally:
            await asyncio.gather(*(one.end() for one in self.running.values()))

    async def _follow(self, record: Pipelines) -> None:
        wanted = {one.name: one for one in record.all if not one.is_stopped}
        over = [
            name
            for name, one in self.running.items()
            if name not in wanted or _form(wanted[name]) != _form(one.hosted)
        ]
        for name in over:
            await self.running.pop(name).end()
            self._say(f"{name}: is coordinated here no longer")
        for name, hosted in wanted.items():
            if name not in self.running:
                say = partial(self._tell, name)
                one = Coordinated(hosted, self._settings, self._world.clock, self._opens, say)
                self.running[name] = one
                one.begin()

    def _tell(self, name: str, line: str) -> None:
        self._say(f"{name}: {line}")


async def coordinate_all(
    world: World,
    settings: Settings,
    say: Callable[[str], None],
    ending: asyncio.Event,
    opens: Opens,
) -> None:
    """Run a coordinator of several pipelines until ``ending`` is set. Raises SettingsError."""
    if settings.roles is not None:
        settings.roles.warn_with(say)
    all_of_them = Coordinators(world, settings, opens, say)
    validity = validity_of(settings.tls, world.clock)

    def health() -> Page:
        shown = {name: _health(one) for name, one in sorted(all_of_them.running.items())}
        return json_page({"status": "ok", "pipelines": shown})

    def ready() -> Page:
        waiting = [
            name
            for name, one in all_of_them.running.items()
            if not one.problem and (one.shell is None or not one.shell.is_ready)
        ]
        if all_of_them.record is None or waiting:
            return Page("NOT READY: the store has not been read yet\n", 503)
        return Page("READY\n")

    def alerts() -> Page:
        return json_page(
            [
                {"pipeline": name} | alert
                for name, one in sorted(all_of_them.running.items())
                for alert in alerts_of(one.shell)
            ]
        )

    def metrics() -> Page:
        samples = {
            name: samples_of_process(one.shell, validity, one.requests)
            for name, one in sorted(all_of_them.running.items())
            if one.shell is not None
        }
        text = exposition(labelled(OF_COORDINATORS), together(samples))
        return Page(text, content_type=CONTENT_TYPE)

    async with AsyncExitStack() as stack:
        listens = await listening_at(
            stack,
            world,
            settings,
            Front(all_of_them, settings.roles).service,
            probes={"/health": health, "/ready": ready, "/alerts": alerts},
            metrics={"/metrics": metrics},
        )
        say(f"coordinator of the pipelines of cluster {settings.cluster} {listens}")
        working = asyncio.ensure_future(all_of_them.run())
        waiting = asyncio.ensure_future(ending.wait())
        looking = asyncio.ensure_future(watch(validity, say, world.clock))
        stack.callback(looking.cancel)
        try:
            await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await stack.aclose()
            waiting.cancel()
            working.cancel()
            await asyncio.wait([working])
    if not working.cancelled():
        working.result()  # the error that ended it


def _form(hosted: Hosted) -> tuple[int, int]:
    """Return the fields of a pipeline that concern its coordinator: their change restarts it."""
    return hosted.number, hosted.partitions


def _health(one: Coordinated) -> dict[str, object]:
    if one.shell is None:
        return {"problems": [one.problem or "it begins"]}
    return health_of(one.shell)


def _text(error: BaseException) -> str:
    """Return an error as a line; of a group its first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
