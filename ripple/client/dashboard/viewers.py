"""Viewers: a websocket each, over which snapshots are sent."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING
from weakref import WeakSet

from ripple.core.extras import needed

with needed("dashboard", "the dashboard"):
    from aiohttp import WSMsgType, web

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.client.dashboard.ticks import Ticks

VIEWERS_MAX = 64
PING_S = 20.0
# The history is sent again after so many snapshots: a page adds them to it one by one.
HISTORY_EVERY = 300


class Viewers:
    """All viewers. They send nothing, and a slow one delays nothing."""

    def __init__(self, ticks: Ticks, headers: Mapping[str, str]) -> None:
        self._ticks = ticks
        self._headers = headers
        self._sockets: WeakSet[web.WebSocketResponse] = WeakSet()
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another viewer."""
        return self._count >= VIEWERS_MAX

    async def show(self, request: web.Request, reads: Callable[[], bool]) -> web.StreamResponse:
        """Send snapshots to a viewer, until it disconnects or loses access."""
        socket = web.WebSocketResponse(heartbeat=PING_S, max_msg_size=4 << 10, compress=False)
        socket.headers.update(self._headers)
        self._count += 1
        self._sockets.add(socket)
        try:
            await socket.prepare(request)
            sending = asyncio.ensure_future(self._send(socket, reads))
            try:
                async for message in socket:  # a viewer sends nothing but its goodbye
                    if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                        await socket.close(code=1008, message=b"messages are not accepted")
            finally:
                sending.cancel()
                with suppress(asyncio.CancelledError):
                    await sending
        finally:
            self._count -= 1
        return socket

    async def close(self) -> None:
        """Close all websockets."""
        for socket in list(self._sockets):
            await socket.close(code=1001, message=b"the dashboard ends")

    async def _send(self, socket: web.WebSocketResponse, reads: Callable[[], bool]) -> None:
        with suppress(ConnectionError, RuntimeError):
            async with aclosing(self._ticks.watch()) as snapshots:
                sent = 0
                await self._send_history(socket)
                async for one in snapshots:
                    if not reads():
                        await socket.close(code=1008, message=b"the session has ended")
                        return
                    await socket.send_str(one.decode())
                    sent += 1
                    if sent % HISTORY_EVERY == 0:
                        await self._send_history(socket)

    async def _send_history(self, socket: web.WebSocketResponse) -> None:
        await socket.send_str(json.dumps({"history": self._ticks.history}))
