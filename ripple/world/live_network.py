"""TCP through asyncio."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from ripple.world.ports import Stream

BUFFER_BYTES_MAX = 1 << 20


class LiveNetwork:
    """Streams over TCP; addresses are ``host:port``, IPv6 hosts in brackets."""

    async def listen(
        self, address: str, serve: Callable[[Stream], Awaitable[None]]
    ) -> LiveListener:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            stream = LiveStream(reader, writer)
            try:
                await serve(stream)
            except ConnectionError:
                pass  # it ends this connection only
            finally:
                stream.close()

        host, port = _host_and_port(address)
        return LiveListener(
            await asyncio.start_server(accept, host, port, limit=BUFFER_BYTES_MAX), host
        )

    async def connect(self, address: str) -> LiveStream:
        host, port = _host_and_port(address)
        return LiveStream(*await asyncio.open_connection(host, port, limit=BUFFER_BYTES_MAX))


class LiveStream:
    """One TCP connection, which it owns."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        host, port = writer.get_extra_info("peername")[:2]
        self.peer = _address(host, port)

    async def read(self, length_max: int) -> bytes:
        with self._breaking():
            return await self._reader.read(length_max)

    async def write(self, data: bytes | memoryview) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError(f"the connection to {self.peer} is closed")
        with self._breaking():
            self._writer.write(data)
            await self._writer.drain()

    def finish(self) -> None:
        self._writer.write_eof()

    def close(self) -> None:
        self._writer.close()

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """Let whatever breaks a connection be one kind of error: systems have many."""
        try:
            yield
        except ConnectionError:
            raise
        except OSError as error:
            raise ConnectionAbortedError(error.errno, f"{self.peer}: {error}") from error


class LiveListener:
    """A listening TCP socket, which it owns."""

    def __init__(self, server: asyncio.Server, host: str) -> None:
        self._server = server
        self.address = _address(host, server.sockets[0].getsockname()[1])

    def close(self) -> None:
        self._server.close()


def _host_and_port(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit()):
        raise ValueError(f"{address!r} is no address: host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
