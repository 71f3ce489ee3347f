"""One connection of the simulated control port: many calls and conversations side by side.

It corresponds to gRPC's HTTP/2 over TCP: frames with the number of a call, a
window for each conversation, and pings that find a peer which no longer answers.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING

from ripple.world.control import (
    KEEPALIVE_S,
    KEEPALIVE_TIMEOUT_S,
    ControlError,
    RefusedError,
    UnreachableError,
    check_length,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.world.ports import Stream

WINDOW_BYTES = 1 << 18
_HEAD = struct.Struct(">IBI")


class Kind(IntEnum):
    """Kinds of frames of a call."""

    CALL = 0
    ANSWER = 1
    OPEN = 2
    OPENED = 3
    MESSAGE = 4
    FINISH = 5  # no more messages from its opener
    END = 6  # its handler has returned
    REFUSED = 7
    GONE = 8  # it will not be answered; of number 0: nor will any other
    CANCEL = 9
    CREDIT = 10
    PING = 11
    PONG = 12


class SimLink:
    """A connection, which it owns, and the waiters for its frames.

    ``on_request`` is called for each request. ``is_away``: this end answers nothing
    new.
    """

    def __init__(self, stream: Stream, on_request: Callable[[Kind, int, bytes], None]) -> None:
        self.stream = stream
        self.error: UnreachableError | None = None
        self.is_away = False
        self.conversations: dict[int, SimConversation] = {}
        self._requests: dict[int, asyncio.Future[bytes]] = {}
        self._on_request = on_request
        self._out: deque[bytes] = deque()
        self._written = asyncio.Event()
        self._interests = 0
        self._last_seen_s = 0.0
        self._watching: asyncio.Task[None] | None = None

    def send(self, kind: Kind, number: int, body: bytes = b"") -> None:
        """Put a frame on its way."""
        if self.error is None:
            self._out.append(_HEAD.pack(len(body), kind, number) + body)
            self._written.set()

    async def ask(self, kind: Kind, number: int, body: bytes) -> bytes:
        """Send a request, and return the answer. Raises ControlError."""
        if self.error is not None:
            raise _again(self.error)
        request = self._requests[number] = asyncio.get_running_loop().create_future()
        self.begin()
        self.send(kind, number, body)
        try:
            answer: bytes = await request
            return answer
        except asyncio.CancelledError:
            self.send(Kind.CANCEL, number)
            raise
        finally:
            del self._requests[number]
            self.done()

    async def flush(self) -> None:
        """Wait until sent frames are on their way, though not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                while self._out and self.error is None:
                    await asyncio.sleep(0.001)

    async def run(self) -> None:
        """Read and write frames until the connection ends; then ``error`` says why."""
        writing = asyncio.ensure_future(self._write())
        try:
            await self._read()
            self.fail("the connection was closed")
        except ConnectionError as error:
            self.fail(str(error))
        finally:
            writing.cancel()

    def fail(self, reason: str) -> None:
        """End the connection for all its users."""
        if self.error is not None:
            return
        self.error = UnreachableError(f"{self.stream.peer}: {reason}")
        self.stream.close()
        for conversation in list(self.conversations.values()):
            conversation.end(self.error)
        for request in self._requests.values():
            _settle(request, self.error)
        if self._watching is not None:
            self._watching.cancel()

    def begin(self) -> None:
        """Count one more waiter for the peer, which is pinged meanwhile."""
        self._interests += 1
        if self._watching is None:
            self._last_seen_s = asyncio.get_running_loop().time()
            self._watching = asyncio.ensure_future(self._watch())

    def done(self) -> None:
        """Say that one of them waits no longer."""
        self._interests -= 1

    async def _read(self) -> None:
        received = bytearray()
        while data := await self.stream.read(1 << 16):
            received += data
            self._last_seen_s = asyncio.get_running_loop().time()
            while len(received) >= _HEAD.size:
                length, kind, number = _HEAD.unpack_from(received)
                if len(received) < _HEAD.size + length:
                    break
                body = bytes(received[_HEAD.size : _HEAD.size + length])
                del received[: _HEAD.size + length]
                self._take(Kind(kind), number, body)

    def _take(self, kind: Kind, number: int, body: bytes) -> None:
        conversation = self.conversations.get(number)
        if kind == Kind.PING:
            self.send(Kind.PONG, 0)
        elif kind == Kind.CREDIT and conversation is not None:
            conversation.credit(int.from_bytes(body, "big"))
        elif kind in (Kind.MESSAGE, Kind.FINISH, Kind.END) and conversation is not None:
            conversation.take(body if kind == Kind.MESSAGE else None, is_over=kind == Kind.END)
        elif kind in (Kind.ANSWER, Kind.OPENED):
            self._answer(number, body)
        elif kind == Kind.REFUSED:
            self._answer(number, RefusedError(body.decode()))
        elif kind == Kind.GONE:
            self.is_away = self.is_away or number == 0
            self._answer(number, UnreachableError(f"{self.stream.peer}: this service has ended"))
        elif kind in (Kind.CALL, Kind.OPEN, Kind.CANCEL):
            self._on_request(kind, number, body)

    def _answer(self, number: int, answer: bytes | ControlError) -> None:
        if isinstance(answer, ControlError) and number in self.conversations:
            self.conversations[number].end(answer)
        if number in self._requests:
            _settle(self._requests[number], answer)

    async def _write(self) -> None:
        while True:
            while self._out:
                try:
                    await self.stream.write(self._out.popleft())
                except ConnectionError as error:
                    self.fail(str(error))
                    return
            self._written.clear()
            await self._written.wait()

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        silent_s = KEEPALIVE_S + KEEPALIVE_TIMEOUT_S
        # An occasional caller waits for the peer each time anew, and must notice its silence too.
        while self._interests or loop.time() - self._last_seen_s > KEEPALIVE_TIMEOUT_S:
            self.send(Kind.PING, 0)
            await asyncio.sleep(KEEPALIVE_S)
            if loop.time() - self._last_seen_s > silent_s:
                self._watching = None
                self.fail("it no longer answers")
                return
        self._watching = None


class SimConversation:
    """One side of a conversation."""

    def __init__(self, link: SimLink, number: int) -> None:
        self.peer = link.stream.peer
        self._link = link
        self._number = number
        self._received: deque[bytes] = deque()
        self._has_finished = False  # the other side has no more messages
        self._over: ControlError | None = None
        self._room_bytes = WINDOW_BYTES
        self._owed_bytes = 0  # received, and the other side does not know it
        self._changed = asyncio.Event()
        self._sendable = asyncio.Event()
        link.conversations[number] = self
        link.begin()

    async def receive(self) -> bytes | None:
        while not (self._received or self._has_finished or self._over):
            self._changed.clear()
            await self._changed.wait()
        if self._received:
            message = self._received.popleft()
            self._owed_bytes += len(message) + 1
            if 2 * self._owed_bytes >= WINDOW_BYTES:  # as HTTP/2 has it: not for each message
                owed, self._owed_bytes = self._owed_bytes, 0
                self._link.send(Kind.CREDIT, self._number, owed.to_bytes(4, "big"))
            return message
        if self._has_finished:
            return None
        assert self._over is not None
        raise _again(self._over)

    async def send(self, message: bytes) -> None:
        check_length(message)
        while self._room_bytes <= 0 and self._over is None:
            self._sendable.clear()
            await self._sendable.wait()
        if self._over is not None:
            raise _again(self._over)
        self._room_bytes -= len(message) + 1
        self._link.send(Kind.MESSAGE, self._number, message)

    async def finish(self) -> None:
        if self._over is None:
            self._link.send(Kind.FINISH, self._number)

    def close(self) -> None:
        if self._over is None:
            self._link.send(Kind.CANCEL, self._number)
            self.end(UnreachableError(f"{self.peer}: this side has closed the conversation"))

    def take(self, message: bytes | None, *, is_over: bool) -> None:
        """Take a message, or take note that there are no more."""
        if message is not None:
            self._received.append(message)
        else:
            self._has_finished = True
        self._changed.set()
        if is_over:
            self.end(UnreachableError(f"{self.peer}: the conversation has ended"))

    def credit(self, length: int) -> None:
        """Take note of how much the other side has received."""
        self._room_bytes += length
        self._sendable.set()

    def end(self, error: ControlError) -> None:
        """Let nothing more pass; received frames are still there."""
        if self._over is None:
            self._over = error
            self._link.conversations.pop(self._number, None)
            self._link.done()
        self._changed.set()
        self._sendable.set()


def _settle(request: asyncio.Future[bytes], answer: bytes | ControlError) -> None:
    if request.done():
        return
    if isinstance(answer, ControlError):
        request.set_exception(_again(answer))
    else:
        request.set_result(answer)


def _again(error: ControlError) -> ControlError:
    return type(error)(str(error))
