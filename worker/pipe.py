"""The pipe between a supervisor and its engine processes: length-prefixed JSON."""

from __future__ import annotations

import asyncio
import json
import signal
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from ripple.core.errors import RippleError

if TYPE_CHECKING:
    import socket

MESSAGE_BYTES_MAX = 16 << 20
DUMP_SIGNAL = signal.SIGUSR1
"""Lets a child say where each of its threads is."""
_LENGTH = struct.Struct(">I")


class PipeError(RippleError):
    """The other side has sent an invalid message."""


class Channel(Protocol):
    """One end of a pipe; see Pipe."""

    async def read(self) -> dict[str, Any] | None:
        """Return the next message, None when the other side is gone."""
        ...

    async def write(self, message: dict[str, Any]) -> None:
        """Send a message."""
        ...

    def close(self) -> None:
        """Close this end; the other side reads an end of stream."""
        ...


def first_message(one: socket.socket) -> dict[str, Any] | None:
    """Wait for a message without a loop; None when the other side is gone. Raises PipeError."""
    head = _received(one, _LENGTH.size)
    body = b"" if head is None else _received(one, _length(head))
    return _message(body) if body else None


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


def _message(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except ValueError as error:
        raise PipeError(f"a message is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise PipeError(f"a message is {message!r:.60}")
    return message


class Pipe:
    """One end of a pipe; one reader and one writer at a time."""

    def __init__(self, one: socket.socket) -> None:
        one.setblocking(False)
        self._socket = one

    async def read(self) -> dict[str, Any] | None:
        """Return the next message; None when the other side is gone. Raises PipeError."""
        head = await self._read(_LENGTH.size)
        if head is None:
            return None
        body = await self._read(_length(head))
        return None if body is None else _message(body)

    async def write(self, message: dict[str, Any]) -> None:
        """Send a message, waiting while the other side does not read.

        Raises PipeError for one that is too long, ConnectionError when the other side is gone.
        """
        body = json.dumps(message).encode()
        if len(body) > MESSAGE_BYTES_MAX:
            raise PipeError(f"a message of {len(body)} bytes is longer than {MESSAGE_BYTES_MAX}")
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._socket, _LENGTH.pack(len(body)) + body)

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
