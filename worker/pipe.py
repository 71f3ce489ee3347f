"""The pipe between a supervisor and its engine processes: messages after their lengths."""

from __future__ import annotations

import asyncio
import signal
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ripple.core.errors import RippleError

if TYPE_CHECKING:
    import socket

MESSAGE_BYTES_MAX = 16 << 20
DUMP_SIGNAL = signal.SIGUSR1
"""Lets a child say where each of its threads is."""
IGNORED_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""Of a child: the supervisor decides when it ends."""
_LENGTH = struct.Struct(">I")


class PipeError(RippleError):
    """The other side has sent an invalid message."""


class Channel(Protocol):
    """One end of a pipe; see Pipe."""

    async def read(self) -> bytes | None:
        """Return the next message, None when the other side is gone."""
        ...

    async def write(self, message: bytes) -> None:
        """Send a message."""
        ...

    def close(self) -> None:
        """Close this end; the other side reads an end of stream."""
        ...


def first_message(one: socket.socket) -> bytes | None:
    """Wait for a message without a loop; None when the other side is gone. Raises PipeError."""
    head = _received(one, _LENGTH.size)
    return None if head is None else _received(one, _length(head))


def _received(one: socket.socket, length: int) -> bytes | None:
    found = b""
    with suppress(ConnectionError):
        while len(found) < length and (piece := one.recv(length - len(found))):
            found += piece
    return found if len(found) == length else None


def _length(head: bytes) -> int:
    (length,) = _LENGTH.unpack(head)
    if length > MESSAGE_BYTES_MAX:
        raise PipeError(f"a message of {length} bytes is longer than {MESSAGE_BYTES_MAX}")
    return int(length)


class Pipe:
    """One end of a pipe; one reader and one writer at a time."""

    def __init__(self, one: socket.socket) -> None:
        one.setblocking(False)
        self._socket = one

    async def read(self) -> bytes | None:
        """Return the next message; None when the other side is gone. Raises PipeError."""
        head = await self._read(_LENGTH.size)
        if head is None:
            return None
        return await self._read(_length(head))

    async def write(self, message: bytes) -> None:
        """Send a message, waiting while the other side does not read.

        Raises PipeError for one that is too long, ConnectionError when the other side is gone.
        """
        if len(message) > MESSAGE_BYTES_MAX:
            raise PipeError(f"a message of {len(message)} bytes is longer than {MESSAGE_BYTES_MAX}")
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._socket, _LENGTH.pack(len(message)) + message)

    def close(self) -> None:
        """Close this end; closing twice is allowed."""
        self._socket.close()

    async def _read(self, length: int) -> bytes | None:
        loop, found = asyncio.get_running_loop(), b""
        while len(found) < length:
            try:
                piece = await loop.sock_recv(self._socket, min(length - len(found), 1 << 16))
            except ConnectionError:
                return None
            if not piece:
                return None
            found += piece
        return found
