"""Where the dashboard listens, and what a connection may cost."""

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
# A connection that has asked nothing for so long is hung up on, and so is an idle one.
FIRST_REQUEST_S = 10.0
IDLE_S = 30.0


class Speaking(web.RequestHandler):
    """One connection, which gives way to others while nobody who is known asks over it."""

    def __init__(
        self, server: web.Server, seats: Seats, seat: Seat, headers: Mapping[str, str]
    ) -> None:
        """Speak over a connection that has a seat. headers: of all that we answer."""
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # as the runner would
            keepalive_timeout=IDLE_S,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
        )
        self._seats, self._seat = seats, seat
        self._headers = headers

    def settle(self) -> None:
        """Note that somebody who is known asks."""
        self._seats.settle(self._seat)

    def idle(self) -> None:
        """Note that nobody does any more."""
        self._seats.idle(self._seat)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no request, of which nothing is in the log: strangers could fill it."""
        response: web.StreamResponse
        if isinstance(exc, HttpProcessingError):
            text = f"this is no request, or a line of it is over {HEADER_BYTES_MAX} bytes"
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
        """Listen nowhere yet. say: is told which file of ``tls`` does not fit any more."""
        self._tls = tls
        self._say = say
        self._headers = headers
        self._listening: LiveListening | None = None
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=1.0)

    async def start(self, address: str) -> str:
        """Listen; return where, as a browser takes it.

        Raises OSError, of which TlsError names a file that does not fit.
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
        """Take no further connections."""
        if self._listening is not None:
            self._listening.close()

    async def close(self) -> None:
        """End those that are there."""
        await self._runner.cleanup()


def _hang_up_on_silent(handler: Any) -> None:
    """End a connection that has asked for nothing: it may be one of many."""
    transport = getattr(handler, "transport", None)
    is_idle = getattr(handler, "_current_request", None) is None
    if transport is not None and is_idle and not getattr(handler, "_request_count", 1):
        transport.abort()
