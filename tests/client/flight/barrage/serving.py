"""Barrage without a cluster: a test says what the outputs show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ripple.client.flight.barrage.exchange import Exchanges, Held
from ripple.client.flight.barrage.feed import Feeds
from ripple.client.flight.barrage.server import Methods
from ripple.client.flight.barrage.service import Tables
from ripple.client.flight.barrage.session import Sessions
from ripple.client.flight.server import FlightServer
from ripple.client.flight.service import Flights
from ripple.core.access import Access
from ripple.world import LiveClock
from ripple.world.live import LiveRandom
from ripple.world.live_control_door import Door
from ripple.world.tls import Tls
from tests.client.flight.barrage.workload import LAYOUT, Seen, Shows, Workload

OUTPUT = "live"


@dataclass(eq=False)
class Served:
    """A server, and what is behind it."""

    address: str
    seen: Seen
    feeds: Feeds
    sessions: Sessions
    exchanges: Exchanges
    held: Held


@asynccontextmanager
async def serving(
    *,
    partitions: int = 3,
    interval_s: float = 0.01,
    session_s: float = 300,
    asked_s: float = 30,
    send_s: float = 60,
    held_bytes: int = 1 << 30,
    access: Access | None = None,
    tls: Tls | None = None,
) -> AsyncIterator[Served]:
    """Serve one output; its partitions are heard once the test tells of them."""
    clock = LiveClock()
    seen = Seen(OUTPUT, LAYOUT, partitions)
    feeds = Feeds(Shows(seen), clock, heard_s=5)  # type: ignore[arg-type]  # shows what a test says
    sessions = Sessions(access, clock, LiveRandom(), session_s=session_s)
    held = Held(held_bytes)
    exchanges = Exchanges(
        feeds, sessions, clock, interval_s=interval_s, asked_s=asked_s, send_s=send_s, held=held
    )
    flights = Flights(None, {})  # type: ignore[arg-type]  # nobody asks for plain tables
    door = Door()
    methods = Methods(Tables(feeds, sessions, flights), exchanges, sessions, door)
    server = FlightServer(flights, sessions, (methods,), door)
    await server.start("127.0.0.1:0", tls)
    try:
        yield Served(server.address, seen, feeds, sessions, exchanges, held)
    finally:
        await server.close(0)
        await feeds.close()


def begin(workload: Workload, seen: Seen) -> None:
    """Let each partition be heard."""
    for partition, rows in workload.begun():
        seen.emit(partition, rows)


class Line:
    """A stream as a client has it: what it says, and what it hears while it takes anything."""

    def __init__(self, stops_after: int = 1 << 30) -> None:
        """Take so many messages, and more once ``takes`` is set."""
        self.stops_after = stops_after
        self.says: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.heard: list[bytes] = []
        self.takes = asyncio.Event()

    async def read(self) -> bytes | None:
        return await self.says.get()

    async def write(self, message: bytes) -> None:
        if len(self.heard) >= self.stops_after:
            await self.takes.wait()
        self.heard.append(message)


TOKEN = "reader-token-of-at-least-32-characters"
ROLES = f"[reader.tokens]\nalice = '{TOKEN}'\n[process]\ncertificates = ['worker']\n"
