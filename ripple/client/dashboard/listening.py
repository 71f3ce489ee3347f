"""The dashboard's listener, and limits of its connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ripple.core.extras import needed
from ripple.world import live_tls
from ripple.world.live_listening import LiveListening
from ripple.world.seats import Bounds, Seats

with needed("dashboard", "the dashboard"):
    from aiohttp import web
    from aiohttp.http_exceptions import HttpProcessingError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from ripple.world.seats import Seat
    from ripple.world.tls import Tls

HEADER_BYTES_MAX = 8 << 10
CONNECTIONS_MAX = 256
BOUNDS = Bounds(most=CONNECTIONS_MAX, of_address=CONNECTIONS_MAX * 3 // 4, silent=128)
# A connection without a request for so long is closed.
FIRST_REQUEST_S = 10.0
IDLE_S = 30.0


class Speaking(web.RequestHandler):
    """A connection, which is closed in favour of others while it has no authenticated request."""

    def __init__(
        self, server: web.Server, seats: Seats, seat: Seat, headers: Mapping[str, str]
    ) -> None:
        """Handle a connection that has a seat. headers: of all answers."""
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # as in aiohttp's runner
            keepalive_timeout=IDLE_S,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
        )
        self._seats, self._seat = seats, seat
        self._headers = headers

    def settle(self) -> None:
        """Note an authenticated request."""
        self._seats.settle(self._seat)

    def idle(self) -> None:
        """Note the end of authenticated requests."""
        self._seats.idle(self._seat)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer an invalid request, without logging: anonymous clients could fill the log."""
        response: web.StreamResponse
        if isinstance(exc, HttpProcessingError):
            text = f"invalid request, or a line of it is over {HEADER_BYTES_MAX} bytes"
            response = web.json_response({"problem": text}, status=status)
            response.force_close()
        else:
            response = super().handle_error(request, status, exc, message)
        response.headers.update(self._headers)
        return response


class Listening:
    """An application at an address, from ``start`` to ``close``."""

    def __init__(
        self,
        app: web.Application,
        tls: Tls | None,
        say: Callable[[str], None],
        headers: Mapping[str, str],
    ) -> None:
        """Create the listener. say: receives errors of the files of ``tls``."""
        self._tls = tls
        self._say = say
        self._headers = headers
        self._listening: LiveListening | None = None
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=1.0)

    async def start(self, address: str) -> str:
        """Start listening; return the URL.

        Raises OSError; TlsError names an invalid file.
        """
        secured: ssl.SSLContext | None = None
        if self._tls is not None:
            secured = live_tls.context_to_show(self._tls, lambda error: self._say(str(error)))
        await self._runner.setup()
        made = self._runner.server
        assert made is not None
        loop = asyncio.get_running_loop()

        def connected(seat: Seat) -> asyncio.Protocol:
            handler = Speaking(made, listening.seats, seat, self._headers)
            loop.call_later(FIRST_REQUEST_S, _hang_up_on_silent, handler)
            return handler

        listening = LiveListening(connected, secured=secured, bounds=BOUNDS)
        await listening.open(address)
        self._listening = listening
        return f"http{'s' if secured else ''}://{listening.address}/"

    def refuse(self) -> None:
        """Accept no further connections."""
        if self._listening is not None:
            self._listening.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._runner.cleanup()


def _hang_up_on_silent(handler: Any) -> None:
    """Close a connection that has sent no request."""
    transport = getattr(handler, "transport", None)
    is_idle = getattr(handler, "_current_request", None) is None
    if transport is not None and is_idle and not getattr(handler, "_request_count", 1):
        transport.abort()
