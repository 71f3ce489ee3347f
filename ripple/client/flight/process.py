"""The gateway process: serves a cluster's outputs until it is told to end."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ripple.client.flight.server import FlightServer
from ripple.client.flight.service import Flights
from ripple.client.flight.sql import FlightSql
from ripple.client.flight.tables import Tables
from ripple.client.flight.writing import Written
from ripple.client.outputs import Observer, found_by
from ripple.control.probes import Page, json_page, serve_pages
from ripple.control.process_settings import listening
from ripple.control.validity import validity_of, watch
from ripple.world.addresses import joined

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.client.flight.barrage.gateway import Barrage
    from ripple.client.flight.settings import Settings
    from ripple.client.outputs import Endpoints
    from ripple.control.validity import Validity
    from ripple.world.ports import World

GRACE_S = 5.0
ASK_S = 1.0


async def serve(
    world: World, settings: Settings, say: Callable[[str], None], ending: asyncio.Event
) -> None:
    """Run a gateway until ``ending`` is set.

    Pages are served before a coordinator answers. Raises SettingsError for a port that is taken,
    and for a log that cannot be written.
    """
    assert world.control is not None
    assert world.network is not None
    validity = validity_of(settings.tls, world.clock)
    state = _State(validity)
    if settings.roles is not None:
        settings.roles.warn_with(say)
    async with AsyncExitStack() as stack:
        logs = {}
        for name, place in settings.logs.items():
            logs[name] = await world.executor.run(
                Written, place, world.clock, "ripple-gateway", world.executor
            )
            stack.push_async_callback(logs[name].close)
        with listening("health_port", settings.origins):
            probes = await serve_pages(
                world.network, joined(settings.host, settings.health_port), state.pages()
            )
        stack.callback(probes.close)
        looking = asyncio.create_task(watch(validity, say, world.clock))
        stack.callback(looking.cancel)
        find = found_by(world.control, settings.coordinators, settings.tls)
        observer = Observer(world, find, tls=settings.tls, say=say)
        if not await _entered(observer, stack, ending, world, say):
            return
        tables = Tables(observer, world.clock)
        resting = asyncio.create_task(tables.rest())
        stack.callback(resting.cancel)
        sql = FlightSql(tables, settings.sql_timeout_s, settings.sql_memory_mib)
        flights = Flights(tables, logs, sql)
        ticking = await _barrage(stack, world, find, flights, settings=settings, say=say)
        if ticking is None:
            server = FlightServer(flights, settings.roles)
        else:
            server = FlightServer(flights, ticking.sessions, (ticking.methods,), ticking.door)
        with listening("port", settings.origins):
            await server.start(joined(settings.host, settings.port), settings.tls)
        stack.push_async_callback(server.close, GRACE_S)
        state.observer = observer
        takes = f", writes {', '.join(settings.logs)}" if settings.logs else ""
        say(f"gateway listens at {server.address}{takes}, /health and /ready at {probes.address}")
        await ending.wait()


async def _barrage(
    stack: AsyncExitStack,
    world: World,
    find: Callable[[], Awaitable[Endpoints]],
    flights: Flights,
    *,
    settings: Settings,
    say: Callable[[str], None],
) -> Barrage | None:
    """Serve Barrage, too, if its packages are installed."""
    try:
        from ripple.client.flight.barrage.gateway import barrage  # noqa: PLC0415 - an extra's
    except ModuleNotFoundError as error:
        say(f"no ticking tables: {error}")
        return None
    # An observer of its own, since a subscription consumes the changes.
    observer = await stack.enter_async_context(Observer(world, find, tls=settings.tls))
    return barrage(stack, world, observer, flights, settings.roles)


async def _entered(
    observer: Observer,
    stack: AsyncExitStack,
    ending: asyncio.Event,
    world: World,
    say: Callable[[str], None],
) -> bool:
    """Start the observer once a coordinator answers; return False if the end comes first."""
    said = ""
    while not ending.is_set():
        try:
            await stack.enter_async_context(observer)
        except ConnectionError as error:
            if str(error) != said:
                said = str(error)
                say(f"waits: {said}")
            await world.clock.sleep(ASK_S)
        else:
            return True
    return False


class _State:
    """The state behind the pages. observer: None until a coordinator has answered.

    A ready gateway stays ready when a worker dies: its rows stay at their last cut, and no gateway
    has newer ones. A gateway without any connection is not ready.
    """

    def __init__(self, validity: Validity | None = None) -> None:
        self.observer: Observer | None = None
        self._validity = validity
        self._heard_all = False

    def pages(self) -> dict[str, Callable[[], Page]]:
        return {"/health": self._health, "/ready": self._ready}

    def _health(self) -> Page:
        found: dict[str, object] = {"status": "ok"}
        concern = "" if self._validity is None else self._validity.concern
        if concern:
            found["problems"] = [concern]
        return json_page(found)

    def _ready(self) -> Page:
        if self.observer is None:
            return Page("NOT READY: no coordinator has answered yet\n", 503)
        if self.observer.refusal:
            return Page(f"NOT READY: {self.observer.refusal}\n", 503)
        connected = self.observer.connected
        absent = sorted({*self.observer.places.processes} - connected)
        self._heard_all = self._heard_all or not absent
        if absent and not (self._heard_all and connected):
            return Page(f"NOT READY: not connected to {', '.join(absent)}\n", 503)
        return Page("READY\n")
