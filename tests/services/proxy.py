"""A way to a server that can be cut, slowed down, and made to lose or forge replies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

CHUNK_BYTES = 1 << 16
HTTP_HEAD = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) [^\r\n]* HTTP/1\.1\r\n")
CONTINUE = b"HTTP/1.1 100"
ERROR = (
    b"HTTP/1.1 %d Injected\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n"
    b"Connection: close\r\n\r\n%b"
)
XML = b"<?xml version='1.0'?><Error><Code>%b</Code><Message>injected</Message></Error>"

Match = Callable[[bytes], bool]


def anything(_: bytes) -> bool:
    """Match every request."""
    return True


def a(method: bytes) -> Match:
    """Match requests of HTTP with a method, as ``a(b"PUT")``."""
    return lambda data: data.startswith(method + b" ")


@dataclass
class _Trouble:
    """What happens to the next requests that match. status: 0 for a reply that is lost."""

    match: Match
    left: int
    status: int = 0
    code: bytes = b""


@dataclass(eq=False)
class _Link:
    """One connection of a client."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    loses_reply: bool = False


@dataclass
class Proxy:
    """Carries bytes to ``target``, a ``host:port``, within the loop of ``async with``.

    delay_s: how long each chunk of a request waits. drip_s: how long each byte of a reply waits.
    rewrites: what stands in requests, and what is put there instead, of the same length. garbled:
    the same of replies, each once. requests: the first lines of those of HTTP. lost: replies that
    the server gave and nobody got. forged: those that it did not give.
    """

    target: str
    delay_s: float = 0.0
    drip_s: float = 0.0
    is_cut: bool = False
    lost: int = 0
    forged: int = 0
    rewrites: tuple[bytes, bytes] = (b"", b"")
    garbled: list[tuple[bytes, bytes]] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    address: str = ""
    _troubles: list[_Trouble] = field(default_factory=list)
    _links: set[_Link] = field(default_factory=set)
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.reset()
        await asyncio.sleep(0)

    def lose_replies(self, count: int, match: Match = anything) -> None:
        """Let the server do what the next requests ask for, and reset instead of its replies."""
        self._troubles.append(_Trouble(match, count))

    def answer(self, status: int, code: str, count: int, match: Match = anything) -> None:
        """Answer the next requests with an error of S3, without asking the server."""
        self._troubles.append(_Trouble(match, count, status, code.encode()))

    def reset(self) -> None:
        """Reset every connection; clients may connect again."""
        for link in list(self._links):
            link.client.transport.abort()
            link.server.transport.abort()

    def cut(self) -> None:
        """Reset every connection, and each new one."""
        self.is_cut = True
        self.reset()

    def heal(self) -> None:
        """Let clients connect again."""
        self.is_cut = False

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        host, _, port = self.target.rpartition(":")
        if self.is_cut:
            client.transport.abort()
            return
        try:
            answers, server = await asyncio.open_connection(host, int(port))
        except OSError:
            client.transport.abort()
            return
        link = _Link(client, server)
        self._links.add(link)
        replies = asyncio.create_task(self._replies(answers, link))
        try:
            with suppress(OSError):
                await self._carry(reader, link)
        finally:
            if server.can_write_eof() and not server.is_closing():
                with suppress(OSError):
                    server.write_eof()
            await asyncio.wait([replies])
            self._links.discard(link)
            client.close()
            server.close()

    async def _carry(self, reader: asyncio.StreamReader, link: _Link) -> None:
        while data := await reader.read(CHUNK_BYTES):
            if HTTP_HEAD.match(data):
                self.requests.append(data.split(b"\r\n", 1)[0])
            data = data.replace(*self.rewrites) if self.rewrites[0] else data
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            trouble = self._trouble(data)
            if trouble is not None and trouble.status:
                await self._forge(data, reader, link, trouble)
                return
            link.loses_reply |= trouble is not None
            link.server.write(data)
            await link.server.drain()

    async def _replies(self, answers: asyncio.StreamReader, link: _Link) -> None:
        with suppress(OSError):
            while data := await answers.read(CHUNK_BYTES):
                if link.loses_reply and not data.startswith(CONTINUE):
                    self.lost += 1
                    break
                if self.garbled and self.garbled[0][0] in data:
                    data = data.replace(*self.garbled.pop(0))
                for piece in (
                    (data[i : i + 1] for i in range(len(data))) if self.drip_s else (data,)
                ):
                    await asyncio.sleep(self.drip_s)
                    link.client.write(piece)
                    await link.client.drain()
        link.client.transport.abort() if link.loses_reply else link.client.close()

    def _trouble(self, data: bytes) -> _Trouble | None:
        for trouble in self._troubles:
            # An error is an answer to a request, and not to what is left of its body.
            if trouble.status and not HTTP_HEAD.match(data):
                continue
            if trouble.left and trouble.match(data):
                trouble.left -= 1
                return trouble
        return None

    async def _forge(
        self, data: bytes, reader: asyncio.StreamReader, link: _Link, trouble: _Trouble
    ) -> None:
        """Answer as S3 does, after the whole request unless the client waits before its body."""
        while b"\r\n\r\n" not in data:
            more = await reader.read(CHUNK_BYTES)
            if not more:
                return
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        if b"100-continue" not in head.lower():
            left = int(length[1]) - len(body) if length else 0
            await reader.readexactly(max(0, left))
        said = b"" if head.startswith(b"HEAD") else XML % trouble.code
        self.forged += 1
        link.client.write(ERROR % (trouble.status, len(said), said))
        await link.client.drain()
