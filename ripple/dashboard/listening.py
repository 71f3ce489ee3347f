"""Where the dashboard listens, and what a connection may cost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ripple.extras import needed
from ripple.world import live_tls
from ripple.world.addresses import joined, parts

with needed("dashboard", "the dashboard"):
    from aiohttp import web

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from ripple.world.tls import Tls

HEADER_BYTES_MAX = 8 << 10
CONNECTIONS_MAX = 256
# A connection that has asked nothing for so long is hung up on, and so is an idle one.
FIRST_REQUEST_S = 10.0
IDLE_S = 30.0


class Listening:
    """An application at an address, from ``start`` to ``close``."""

    def __init__(self, app: web.Application, tls: Tls | None, say: Callable[[str], None]) -> None:
        """Listen nowhere yet. say: is told which file of ``tls`` does not fit any more."""
        self._tls = tls
        self._say = say
        self._server: asyncio.Server | None = None
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            keepalive_timeout=IDLE_S,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
            shutdown_timeout=1.0,
        )

    async def start(self, address: str) -> str:
        """Listen; return where, as a browser takes it.

        Raises OSError, of which TlsError names a file that does not fit.
        """
        host, port = parts(address)
        secured: ssl.SSLContext | None = None
        if self._tls is not None:
            secured = live_tls.context_to_show(self._tls, lambda error: self._say(str(error)))
        await self._runner.setup()
        made = self._runner.server
        assert made is not None
        loop = asyncio.get_running_loop()

        def connected() -> asyncio.Protocol:
            if len(made.connections) >= CONNECTIONS_MAX:
                return _Refusing()
            handler = made()
            loop.call_later(FIRST_REQUEST_S, _hang_up_on_silent, handler)
            return handler

        self._server = await loop.create_server(
            connected,
            host,
            port,
            ssl=secured,
            ssl_handshake_timeout=None if secured is None else live_tls.HANDSHAKE_SECONDS_MAX,
        )
        port = self._server.sockets[0].getsockname()[1]
        return f"http{'s' if secured else ''}://{joined(host, port)}/"

    def refuse(self) -> None:
        """Take no further connections."""
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        """End those that are there."""
        await self._runner.cleanup()


class _Refusing(asyncio.Protocol):
    """Of a connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _hang_up_on_silent(handler: Any) -> None:
    """End a connection that has asked for nothing: it may be one of many."""
    transport = getattr(handler, "transport", None)
    is_idle = getattr(handler, "_current_request", None) is None
    if transport is not None and is_idle and not getattr(handler, "_request_count", 1):
        transport.abort()
