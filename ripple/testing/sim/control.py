"""The control port over a simulated network: every fault of the network is one of its own."""

from __future__ import annotations

import asyncio
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ripple.core.errors import LimitError
from ripple.testing.sim.control_link import Kind, SimConversation, SimLink
from ripple.world import addresses
from ripple.world.control import (
    BUSY,
    FAILED,
    NO_METHOD,
    DeadlineError,
    RefusedError,
    Service,
    UnreachableError,
    check_length,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ripple.world.ports import Listener, Network, Stream
    from ripple.world.tls import Tls

_CALL = struct.Struct(">dH")


class SimControl:
    """Calls and conversations over streams. ``failed`` is called with errors of handlers."""

    def __init__(self, network: Network, failed: Callable[[Exception], None]) -> None:
        self._network = network
        self._failed = failed

    async def serve(self, address: str, service: Service, *, tls: Tls | None = None) -> SimServer:
        server = SimServer(service, self._failed)
        server.listener = await self._network.listen(address, server.serve, tls=tls)
        return server

    def channel(self, address: str, *, tls: Tls | None = None) -> SimChannel:
        addresses.parts(address)
        return SimChannel(self._network, address, tls)


class SimServer:
    """A service at an address."""

    listener: Listener

    def __init__(self, service: Service, failed: Callable[[Exception], None]) -> None:
        self._service = service
        self._failed = failed
        self._links: list[SimLink] = []
        self._calls = 0
        self._conversations = 0
        self._closing = False
        self._idle = asyncio.Event()

    @property
    def address(self) -> str:
        return self.listener.address

    async def close(self, grace_s: float = 0.0) -> None:
        self._closing = True
        self.listener.close()
        for link in self._links:
            link.send(Kind.GONE, 0)
        try:
            async with asyncio.timeout(grace_s):
                while self._calls or self._conversations:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            pass  # calls under way end with their connection
        for link in list(self._links):
            await link.flush()
            link.fail("this service has ended")

    async def serve(self, stream: Stream) -> None:
        """Serve one connection."""
        handling: dict[int, asyncio.Task[None]] = {}

        def hear(kind: Kind, number: int, body: bytes) -> None:
            if kind == Kind.CANCEL:
                if number in handling:
                    handling[number].cancel()
            elif self._closing:
                link.send(Kind.GONE, number)
            else:
                work = self._call if kind == Kind.CALL else self._converse
                task = asyncio.ensure_future(work(link, number, body))
                handling[number] = task
                task.add_done_callback(lambda _: handling.pop(number))

        link = SimLink(stream, hear)
        self._links.append(link)
        try:
            await link.run()
        finally:
            self._links.remove(link)
            link.fail("the connection was closed")
            for task in list(handling.values()):
                task.cancel()

    async def _call(self, link: SimLink, number: int, body: bytes) -> None:
        seconds, method, request = _of_call(body)
        answer = self._service.calls.get(method)
        if answer is None or self._calls >= self._service.calls_max:
            link.send(Kind.REFUSED, number, (NO_METHOD if answer is None else BUSY).encode())
            return
        self._calls += 1
        try:
            async with asyncio.timeout(seconds):
                answered = await self._refusing(link, number, answer(request))
            if answered is not None:
                link.send(Kind.ANSWER, number, answered)
        except TimeoutError:
            pass  # the caller waits no longer
        finally:
            self._calls -= 1
            self._idle.set()

    async def _converse(self, link: SimLink, number: int, body: bytes) -> None:
        converse = self._service.conversations.get(_of_call(body)[1])
        if converse is None or self._conversations >= self._service.conversations_max:
            link.send(Kind.REFUSED, number, (NO_METHOD if converse is None else BUSY).encode())
            return
        self._conversations += 1
        conversation = SimConversation(link, number)
        try:
            link.send(Kind.OPENED, number)

            async def whole() -> bytes:
                await converse(conversation)
                return b""

            if await self._refusing(link, number, whole()) is not None:
                link.send(Kind.END, number)
        finally:
            self._conversations -= 1
            self._idle.set()
            conversation.end(UnreachableError(f"{conversation.peer}: its handler has ended"))

    async def _refusing(self, link: SimLink, number: int, doing: Awaitable[bytes]) -> bytes | None:
        """Return the result, None if the caller got an error instead."""
        try:
            answered = await doing
            check_length(answered)
            return answered
        except (RefusedError, LimitError) as error:
            link.send(Kind.REFUSED, number, str(error).encode())
        except UnreachableError:
            link.send(Kind.GONE, number)
        except Exception as error:  # any error of a service: its caller gets an answer all the same
            self._failed(error)
            link.send(Kind.REFUSED, number, FAILED.encode())
        return None


class SimChannel:
    """A way to a service, over one connection at a time."""

    def __init__(self, network: Network, address: str, tls: Tls | None) -> None:
        self._network = network
        self._address = address
        self._tls = tls
        self._numbers = 0
        self._links: list[tuple[SimLink, asyncio.Task[None]]] = []
        self._connecting = asyncio.Lock()
        self._closed = False

    async def call(self, method: str, request: bytes, *, deadline_s: float) -> bytes:
        check_length(request)
        async with self._deadline(deadline_s):
            link, number = await self._link(), self._number()
            return await link.ask(Kind.CALL, number, _call(deadline_s, method) + request)

    async def open(self, method: str, *, deadline_s: float) -> SimConversation:
        async with self._deadline(deadline_s):
            link, number = await self._link(), self._number()
            conversation = SimConversation(link, number)
            try:
                await link.ask(Kind.OPEN, number, _call(deadline_s, method))
            except BaseException:
                conversation.close()
                raise
            return conversation

    async def close(self) -> None:
        self._closed = True
        for link, _ in self._links:
            link.fail("this channel is closed")

    @asynccontextmanager
    async def _deadline(self, deadline_s: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(deadline_s):
                yield
        except TimeoutError:
            raise DeadlineError(f"{self._address}: no answer in {deadline_s} s") from None

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    async def _link(self) -> SimLink:
        async with self._connecting:
            if self._closed:
                raise UnreachableError(f"{self._address}: this channel is closed")
            self._links = [each for each in self._links if each[0].error is None]
            for link, _ in self._links:
                if not link.is_away:
                    return link
            try:
                stream = await self._network.connect(self._address, tls=self._tls)
            except TimeoutError:
                raise DeadlineError(f"{self._address}: no answer") from None
            except OSError as error:
                raise UnreachableError(f"{self._address}: {error}") from error
            if self._closed:
                stream.close()
                raise UnreachableError(f"{self._address}: this channel is closed")
            link = SimLink(stream, lambda *_: None)
            self._links.append((link, asyncio.ensure_future(link.run())))
            return link


def _call(deadline_s: float, method: str) -> bytes:
    name = method.encode()
    return _CALL.pack(deadline_s, len(name)) + name


def _of_call(body: bytes) -> tuple[float, str, bytes]:
    """Return deadline, method and request."""
    seconds, length = _CALL.unpack_from(body)
    start = _CALL.size + length
    return seconds, body[_CALL.size : start].decode(), body[start:]
