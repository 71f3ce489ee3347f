"""A TLS socket for one reading and one writing thread at a time.

OpenSSL takes one call of a connection at a time, and the client of websockets makes two: its reader
waits within OpenSSL, for instance after a session ticket has come and no message yet. Then the
answer to a request written meanwhile may never be read, and closing the socket does not end the
reader. Here no thread waits within OpenSSL.
"""

from __future__ import annotations

import errno
import select
import ssl
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

CLOSED_AFTER_MS = 500  # a wait ends so long after another thread has closed the socket

T = TypeVar("T")


def shared(context: ssl.SSLContext) -> ssl.SSLContext:
    """Return the context; two threads may use each of its sockets from now on."""
    context.sslsocket_class = SharedSocket
    return context


class SharedSocket(ssl.SSLSocket):
    """Calls take turns, and wait for the network between them; after the handshake."""

    _turn: threading.Lock

    def __new__(cls, *given: Any, **named: Any) -> SharedSocket:
        """Return a socket; ``ssl`` does not call ``__init__`` of subclasses."""
        socket: SharedSocket = super().__new__(cls, *given, **named)
        socket._turn = threading.Lock()
        return socket

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Return the bytes received, b"" at the end; returns, or raises OSError, once closed."""
        receive = super().recv
        return self._in_turns(lambda: receive(buflen, flags))

    def send(self, data: Any, flags: int = 0) -> int:
        """Send the first bytes; return how many. Raises OSError, also once it is closed."""
        send = super().send
        return self._in_turns(lambda: send(data, flags))

    def _in_turns(self, call: Callable[[], T]) -> T:
        while True:
            with self._turn:
                self.setblocking(False)
                try:
                    return call()
                except ssl.SSLWantReadError:
                    event = select.POLLIN
                except ssl.SSLWantWriteError:
                    event = select.POLLOUT
            self._wait(event)

    def _wait(self, event: int) -> None:
        poll, ready = select.poll(), False
        while not ready:
            if self.fileno() < 0:
                raise OSError(errno.EBADF, "the socket was closed")
            poll.register(self.fileno(), event)
            ready = bool(poll.poll(CLOSED_AFTER_MS))
