"""Listening sockets with limits on connections, from before the handshake on."""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ripple.world import addresses, live_tls
from ripple.world.seats import Bounds, Seat, Seats

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

BACKLOG = 128
# Of a kind of address that this machine does not have, as those of IPv6.
_ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
PAUSE_S = 1.0  # where this process or machine has no descriptor left


class LiveListening:
    """Accepts connections at an address, each with a seat, until it is closed."""

    def __init__(
        self,
        made: Callable[[Seat], asyncio.BaseProtocol],
        *,
        secured: ssl.SSLContext | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        """Listen nowhere yet. made: returns the protocol of a connection, given its seat."""
        self.address = ""
        self.seats = Seats(bounds or Bounds())
        self._made = made
        self._secured = secured
        self._sockets: list[socket.socket] = []
        self._beginning: set[asyncio.Task[None]] = set()

    async def open(self, address: str) -> None:
        """Listen. Raises OSError."""
        host, port = addresses.parts(address)
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        problem: OSError | None = None
        for family, _, _, _, at in dict.fromkeys(found):
            try:
                self._sockets.append(_listening(family, (at[0], port, *at[2:])))
            except OSError as error:  # of a kind of address that this machine does not have
                problem = problem or error
                if error.errno not in _ABSENT:
                    break
            if self._sockets:
                port = port or self._sockets[0].getsockname()[1]
        if not self._sockets or (problem is not None and problem.errno not in _ABSENT):
            self.close()
            raise problem or OSError(f"{address}: no address of this machine")
        self.address = addresses.joined(host, port)
        for one in self._sockets:
            loop.add_reader(one, self._accept, one)

    def close(self) -> None:
        """Accept no more; connections that exist stay."""
        for one in self._sockets:
            asyncio.get_running_loop().remove_reader(one)
            one.close()
        self._sockets.clear()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(BACKLOG):
            try:
                connection, at = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no descriptor is left: clients wait
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                loop.call_later(PAUSE_S, self._resume, listening)
                return
            seat = self.seats.take(at[0])
            if seat is None:
                connection.close()
                continue
            # Of many who come at once some give way before their task has begun.
            seat.end = connection.close
            task = asyncio.create_task(self._begin(connection, seat))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _begin(self, connection: socket.socket, seat: Seat) -> None:
        """Shake hands; from there on the protocol has the connection."""
        task = asyncio.current_task()
        assert task is not None
        seat.end = partial(_cancel, task)
        options: dict[str, Any] = {}
        if self._secured is not None:
            options = {
                "ssl": self._secured,
                "ssl_handshake_timeout": live_tls.HANDSHAKE_SECONDS_MAX,
            }
        transport: asyncio.BaseTransport | None = None
        try:
            connection.setblocking(False)
            with suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._made(seat), connection, **options
            )
        except OSError:
            pass  # it ends this connection only
        finally:
            if transport is None:
                connection.close()
                self.seats.leave(seat)
        if transport is not None:  # those of uvloop are no transports of asyncio by their class
            made = cast("asyncio.WriteTransport", transport)
            seat.end, seat.is_over = made.abort, made.is_closing


def _listening(family: int, at: tuple[Any, ...]) -> socket.socket:
    made = socket.create_server(at, family=family, backlog=BACKLOG)
    made.setblocking(False)
    return made


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
