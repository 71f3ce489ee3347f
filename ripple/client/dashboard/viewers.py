"""Who looks: a websocket each, over which snapshots go."""

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


class Viewers:
    """All who look. Nothing is expected of them, and nothing waits for one who is slow."""

    def __init__(self, ticks: Ticks, headers: Mapping[str, str]) -> None:
        self._ticks = ticks
        self._headers = headers
        self._sockets: WeakSet[web.WebSocketResponse] = WeakSet()
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether nobody more may look."""
        return self._count >= VIEWERS_MAX

    async def show(self, request: web.Request, reads: Callable[[], bool]) -> web.StreamResponse:
        """Show snapshots to one more, until they leave, or may not read any more."""
        socket = web.WebSocketResponse(heartbeat=PING_S, max_msg_size=4 << 10, compress=False)
        socket.headers.update(self._headers)
        self._count += 1
        self._sockets.add(socket)
        try:
            await socket.prepare(request)
            sending = asyncio.ensure_future(self._send(socket, reads))
            try:
                async for message in socket:  # nothing is said to us but goodbye
                    if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                        await socket.close(code=1008, message=b"nothing is expected here")
            finally:
                sending.cancel()
                with suppress(asyncio.CancelledError):
                    await sending
        finally:
            self._count -= 1
        return socket

    async def close(self) -> None:
        """Let all of them go."""
        for socket in list(self._sockets):
            await socket.close(code=1001, message=b"the dashboard ends")

    async def _send(self, socket: web.WebSocketResponse, reads: Callable[[], bool]) -> None:
        with suppress(ConnectionError, RuntimeError):
            await socket.send_str(json.dumps({"history": self._ticks.history}))
            async with aclosing(self._ticks.watch()) as snapshots:
                async for one in snapshots:
                    if not reads():
                        await socket.close(code=1008, message=b"the session has ended")
                        return
                    await socket.send_str(one.decode())
