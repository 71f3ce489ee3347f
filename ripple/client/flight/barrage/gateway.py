"""Barrage as a part of the gateway: feeds, sessions, handlers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from ripple.client.flight.barrage.exchange import Exchanges
from ripple.client.flight.barrage.feed import Feeds
from ripple.client.flight.barrage.server import Methods
from ripple.client.flight.barrage.service import Tables
from ripple.client.flight.barrage.session import Sessions
from ripple.world.live_control_door import Door

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from ripple.client.flight.service import Flights
    from ripple.client.outputs import Observer
    from ripple.core.access import Access
    from ripple.world.ports import World


class Barrage(NamedTuple):
    """The parts that a Flight server needs to serve Barrage, too."""

    sessions: Sessions
    methods: Methods
    door: Door


def barrage(
    stack: AsyncExitStack, world: World, observer: Observer, flights: Flights, access: Access | None
) -> Barrage:
    """Start; the stack ends it. observer: one for Barrage alone."""
    feeds = Feeds(observer, world.clock)
    stack.push_async_callback(feeds.close)
    resting = asyncio.create_task(feeds.rest())
    stack.callback(resting.cancel)
    sessions = Sessions(access, world.clock, world.random)
    exchanges = Exchanges(feeds, sessions, world.clock)
    door = Door()
    methods = Methods(Tables(feeds, sessions, flights), exchanges, sessions, door)
    return Barrage(sessions, methods, door)
