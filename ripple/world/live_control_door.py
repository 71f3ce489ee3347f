"""A proxy in front of a gRPC server, which limits its connections and passes bytes on as they are.

gRPC itself bounds connections in all and no more: silent ones keep others out, one address may have
them all, and none is evicted. So the server listens at a socket that only this process can reach,
and the proxy connects each client that has sent bytes: the handshake and its certificates remain
gRPC's own.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import tempfile
from typing import TYPE_CHECKING, Any, cast

from ripple.world import addresses, live_tls
from ripple.world.live_listening import LiveListening
from ripple.world.seats import Bounds

if TYPE_CHECKING:
    from ripple.world.seats import Seat, Seats

CONNECTIONS_MAX = 2048
BOUNDS = Bounds(most=CONNECTIONS_MAX, of_address=CONNECTIONS_MAX // 2, silent=128)
SCHEME = "unix:"
BUFFER_BYTES_MAX = 256 << 10  # buffered for a slow reader; reading pauses meanwhile


class Door:
    """The public address of a gRPC server. An authorized call settles its connection's seat."""

    def __init__(self, bounds: Bounds = BOUNDS) -> None:
        self._listening = LiveListening(self._came, bounds=bounds)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._numbers = itertools.count()
        self._guests: dict[str, _Outside] = {}

    @property
    def seats(self) -> Seats:
        """The present connections."""
        return self._listening.seats

    @property
    def behind(self) -> str:
        """The server's address, as gRPC takes it. Raises OSError."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="ripple-")
        return f"{SCHEME}{self._folder.name}/grpc"

    async def open(self, address: str) -> str:
        """Accept connections; return the address, with the bound port. Raises OSError."""
        await self._listening.open(address)
        return self._listening.address

    def settle(self, context: Any) -> None:
        """Note that this call is authorized."""
        guest = self._guests.get(context.peer())
        if guest is not None:
            self.seats.settle(guest.seat)

    def peer_of(self, context: Any) -> str:
        """Return the address of a call's client."""
        known = context.peer()
        guest = self._guests.get(known)
        return known if guest is None else guest.address

    def refuse(self) -> None:
        """Accept no more connections."""
        self._listening.close()

    def close(self) -> None:
        """End the connections that are there."""
        self.refuse()
        for guest in list(self._guests.values()):
            guest.abort()
        if self._folder is not None:
            self._folder.cleanup()

    def _came(self, seat: Seat) -> _Outside:
        return _Outside(self, seat)

    def lead(self, guest: _Outside) -> socket.socket:
        """Return a connection to the server, which knows the guest by its name. Raises OSError."""
        assert self._folder is not None
        name = f"{self._folder.name}/{next(self._numbers)}"
        made = socket.socket(socket.AF_UNIX)
        try:
            made.setblocking(False)
            made.bind(name)
            made.connect(self.behind.removeprefix(SCHEME))
            os.unlink(name)  # the connection keeps it
        except OSError:
            made.close()
            raise
        guest.name = f"{SCHEME}{name}"
        self._guests[guest.name] = guest
        return made

    def left(self, guest: _Outside) -> None:
        """Forget an ended connection."""
        self._guests.pop(guest.name, None)
        self.seats.leave(guest.seat)


class _Half(asyncio.Protocol):
    """One half of a proxied connection: the other writes its bytes, as fast as it can."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _Half | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class
        self.transport.set_write_buffer_limits(BUFFER_BYTES_MAX)

    def data_received(self, data: bytes) -> None:
        assert self.other is not None
        assert self.other.transport is not None
        self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, _: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()  # once what it has to write is written


class _Outside(_Half):
    """The client's half: it is connected to the server once the client has sent bytes."""

    def __init__(self, door: Door, seat: Seat) -> None:
        super().__init__()
        self.seat = seat
        self.name = ""
        self.address = ""
        self._door = door
        self._leading: asyncio.Task[None] | None = None
        self._waits: asyncio.TimerHandle | None = None
        self._early = b""  # bytes from before the connection to the server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        host, port = transport.get_extra_info("peername")[:2]
        self.address = addresses.joined(host, port)
        loop = asyncio.get_running_loop()
        self._waits = loop.call_later(live_tls.HANDSHAKE_SECONDS_MAX, self.abort)

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            super().data_received(data)
        else:
            self._early += data
            assert self.transport is not None
            self.transport.pause_reading()
            if self._leading is None:
                self._leading = asyncio.create_task(self._lead())

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        for one in (self._leading, self._waits):
            if one is not None:
                one.cancel()
        self._door.left(self)

    def abort(self) -> None:
        """End at once."""
        if self.transport is not None:
            self.transport.abort()

    async def _lead(self) -> None:
        assert self.transport is not None
        assert self._waits is not None
        self._waits.cancel()  # from here on the server's own bound counts
        inside = _Half()
        inside.other = self  # the server may speak first
        made: socket.socket | None = None
        try:
            made = self._door.lead(self)
            await asyncio.get_running_loop().create_unix_connection(lambda: inside, sock=made)
        except OSError:  # the server has ended, or there are no descriptors left
            self.abort()
        finally:
            if inside.transport is None and made is not None:
                made.close()
        if inside.transport is None:
            return
        if self.transport.is_closing():
            inside.transport.abort()
            return
        early, self._early, self.other = self._early, b"", inside
        self.transport.resume_reading()
        inside.transport.write(early)
