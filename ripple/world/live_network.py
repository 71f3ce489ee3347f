"""TCP through asyncio, with TLS where it is asked for."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ripple.world import addresses, live_tls
from ripple.world.live_listening import LiveListening

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from ripple.world.errors import TlsError
    from ripple.world.ports import Stream
    from ripple.world.seats import Bounds, Seat
    from ripple.world.tls import Tls

BUFFER_BYTES_MAX = 1 << 20


class LiveNetwork:
    """Streams over TCP; addresses are ``host:port``, IPv6 hosts in brackets."""

    async def listen(
        self,
        address: str,
        serve: Callable[[Stream], Awaitable[None]],
        *,
        tls: Tls | None = None,
        bounds: Bounds | None = None,
    ) -> LiveListening:
        loop = asyncio.get_running_loop()

        def made(seat: Seat) -> asyncio.BaseProtocol:
            async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                stream = LiveStream(reader, writer, lambda: listening.seats.settle(seat))
                try:
                    await serve(stream)
                except ConnectionError:
                    pass  # it ends this connection only
                finally:
                    stream.close()
                    listening.seats.leave(seat)

            reader = asyncio.StreamReader(limit=BUFFER_BYTES_MAX, loop=loop)
            return asyncio.StreamReaderProtocol(reader, accept, loop=loop)

        def warn(error: TlsError) -> None:
            loop.call_exception_handler({"message": f"{address}: {error}", "exception": error})

        secured = None if tls is None else live_tls.context_to_listen(tls, warn)
        listening = LiveListening(made, secured=secured, bounds=bounds)
        await listening.open(address)
        return listening

    async def connect(self, address: str, *, tls: Tls | None = None) -> LiveStream:
        host, port = addresses.parts(address)
        if tls is None:
            return LiveStream(*await asyncio.open_connection(host, port, limit=BUFFER_BYTES_MAX))
        name = tls.peer or host
        try:
            opened = await asyncio.open_connection(
                host,
                port,
                limit=BUFFER_BYTES_MAX,
                ssl=live_tls.context_to_connect(tls),
                server_hostname=name,
                ssl_handshake_timeout=live_tls.HANDSHAKE_SECONDS_MAX,
            )
        except ssl.SSLError as error:
            raise live_tls.misfit(error, address, name, tls) from error
        except (ConnectionResetError, ConnectionAbortedError) as error:
            raise ConnectionAbortedError(
                error.errno, f"{address}: it ended the handshake: does it speak TLS 1.3?"
            ) from error
        return LiveStream(*opened)


class LiveStream:
    """One TCP connection, which it owns."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        settled: Callable[[], None] | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        host, port = writer.get_extra_info("peername")[:2]
        self.peer = addresses.joined(host, port)
        self._settled = settled
        secured = writer.get_extra_info("ssl_object")
        self.binding = live_tls.binding_of(secured, listens=settled is not None)

    async def read(self, length_max: int) -> bytes:
        with self._breaking():
            return await self._reader.read(length_max)

    async def write(self, data: bytes | memoryview) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError(f"the connection to {self.peer} is closed")
        with self._breaking():
            self._writer.write(data)
            await self._writer.drain()

    def settle(self) -> None:
        if self._settled is not None:
            self._settled()

    def finish(self) -> None:
        if self._writer.can_write_eof():
            self._writer.write_eof()
        else:
            self._writer.close()

    def close(self) -> None:
        self._writer.close()

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """Raise one kind of error for a broken connection: systems have many."""
        try:
            yield
        except ConnectionError:
            raise
        except OSError as error:
            raise ConnectionAbortedError(
                error.errno, f"{self.peer}: {live_tls.refusal(error)}"
            ) from error
