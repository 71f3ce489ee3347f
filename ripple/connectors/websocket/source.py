"""A feed as a one-shot run reads it: each message once, gaps as dead letters."""

from __future__ import annotations

import json
import ssl
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from ripple.connectors.client_tls import client_context
from ripple.connectors.formats.held import Held
from ripple.connectors.formats.json import JsonValues
from ripple.connectors.library_errors import said
from ripple.connectors.websocket.sequence import Gap, Sequence, Verdict
from ripple.connectors.websocket.tls import shared
from ripple.connectors.websocket.uri import Feed
from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.world.pauses import DELAYS_S

with needed("websocket", "a feed over a websocket"):
    from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, WebSocketException
    from websockets.frames import CloseCode
    from websockets.sync.client import connect
    from websockets.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from websockets.sync.client import ClientConnection

    from ripple.connectors.connector import Reading
    from ripple.connectors.formats.contract import Values
    from ripple.model.batch import Batch

MISSING, UNNUMBERED = "messages are missing before the next one", "message has no number"
WAIT_S = 0.05
CONNECT_S = 10.0
# Unread messages come before the other side's close, which says nothing.
FAREWELL_S = 0.2
MESSAGE_BYTES_MAX = 1 << 20
NORMAL = 1000
TOO_LARGE = "\0"  # in place of a message that was not taken: no document is this one


def open_plain(path: str, reading: Reading) -> WebsocketSource:
    """Return the feed at a ``ws:`` place; raises InputError."""
    return _opened("ws", path, reading)


def open_secure(path: str, reading: Reading) -> WebsocketSource:
    """Return the feed at a ``wss:`` place; raises InputError."""
    return _opened("wss", path, reading)


def check_plain(path: str) -> str:
    """Connect; raises InputError."""
    return _checked(Feed.parse("ws", path))


def check_secure(path: str) -> str:
    """Connect; raises InputError."""
    return _checked(Feed.parse("wss", path))


class WebsocketSource:
    """Reads a feed until its server ends it; see Source.

    A message is a record, a JSON object. It cannot be read again: offsets count the messages that
    this run has taken. A lost connection is opened again, and the server asked to resume;
    repetitions are dropped, and missing messages are a rejected record with their numbers.

    Invariants: it holds no more than a batch, and the connection's read-ahead, which is bounded.
    """

    def __init__(
        self,
        feed: Feed,
        values: Values,
        *,
        name: str,
        batch_rows: int,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self._feed, self._values, self._batch_rows = feed, values, batch_rows
        self._wait = wait
        at = parse_uri(feed.url)
        self._origin = at.secure, at.host, at.port
        self._sequence = Sequence()
        self._open = ExitStack()
        self._is_read = self._is_closed = False

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records, once; see Source."""
        if self._is_read:
            raise InputError(f"{self._feed.url} can be read once: record it with ripple log append")
        self._is_read = True
        held = Held(from_offset)
        for message in self._messages():
            if message is None:
                yield from self._given(held)
                continue
            if message is TOO_LARGE:
                held.refuse(f"message has more than {MESSAGE_BYTES_MAX} bytes", b"")
            else:
                self._take(message, held)
            if held.end % self._batch_rows == 0:
                yield from self._given(held)
        yield from self._given(held)

    def close(self) -> None:
        """Leave the server; see Source."""
        self._is_closed = True
        self._disconnect()

    def _given(self, held: Held) -> Iterator[Batch]:
        if held.end > held.start:
            yield held.batch(self._values)
            held.clear()

    def _take(self, message: str | bytes, held: Held) -> None:
        data = message if isinstance(message, bytes) else message.encode()
        settings = self._feed.settings
        if settings.only is None and settings.sequence is None:
            held.add(data)
            return
        try:
            parsed = json.loads(data)
        except (ValueError, RecursionError):
            parsed = None
        if not isinstance(parsed, dict):
            held.add(data)  # its parser names the error
            return
        if settings.only is not None:
            member, _, wanted = settings.only.partition("=")
            if str(parsed.get(member)) != wanted:
                return
        if settings.sequence is not None:
            number = parsed.get(settings.sequence)
            if type(number) is not int:
                held.refuse(UNNUMBERED, data)
                return
            found = self._sequence.take(number)
            if found is Verdict.REPEATED:
                return
            if isinstance(found, Gap):
                held.refuse(MISSING, f"{found.first} to {found.last}".encode())
        held.add(data)

    def _messages(self) -> Iterator[str | bytes | None]:
        """Yield messages, None where none is waiting, until the server ends the feed."""
        # At the first connection a mistake is more likely than an outage.
        delays: Iterator[float] | None = None
        larges = iter(DELAYS_S)
        large_at, count = -1, 0
        while not self._is_closed:
            try:
                connection, count = self._connected(), 0
                delays = delays or larges
                while not self._is_closed:
                    try:
                        message = connection.recv(WAIT_S)
                    except TimeoutError:
                        yield None
                        continue
                    delays, count = iter(DELAYS_S), count + 1
                    yield message
            except ConnectionClosedOK as closed:
                if closed.rcvd is not None and closed.rcvd.code == NORMAL:
                    return
                self._again(closed, delays or iter(()))
            except ssl.SSLCertVerificationError as error:  # it will not be another one soon
                raise _error_of(self._feed, error) from error
            except (ConnectionClosed, WebSocketException, OSError) as error:
                if not _is_too_large(error):
                    self._again(error, delays or iter(()))
                else:
                    yield TOO_LARGE
                    # A feed that begins with the same messages each time never gets past it.
                    if count != large_at:
                        large_at, larges = count, iter(DELAYS_S)
                    self._again(error, larges)
            yield None

    def _connected(self) -> ClientConnection:
        connection = self._open.enter_context(_connecting(self._feed))
        at = connection.protocol.uri
        if (at.secure, at.host, at.port) != self._origin:
            raise InputError(
                f"cannot read {self._feed.url}: its server redirects to {at.host}:{at.port}, which "
                "gets no credentials: name that URI, if it is the right one"
            )
        last = self._sequence.last
        self._sequence.connected(last if self._feed.settings.resume else None)
        greeting = self._feed.greeting(last)
        if greeting is not None:
            with suppress(ConnectionClosed):  # messages before the close are still there
                connection.send(greeting)
        return connection

    def _again(self, error: Exception, delays: Iterator[float]) -> None:
        """Wait before another connection is made. Raises InputError after half a minute."""
        self._disconnect()
        if self._is_closed:
            return
        delay_s = next(delays, None)
        if delay_s is None:
            raise _error_of(self._feed, error) from error
        self._wait(delay_s)

    def _disconnect(self) -> None:
        self._open.close()


def _is_too_large(error: Exception) -> bool:
    """Whether we have left because of a message's size; it will not be a smaller one next time."""
    return (
        isinstance(error, ConnectionClosed)
        and error.sent is not None
        and error.sent.code == CloseCode.MESSAGE_TOO_BIG
    )


def _opened(scheme: str, path: str, reading: Reading) -> WebsocketSource:
    feed = Feed.parse(scheme, path)
    values = JsonValues(reading.shape)
    return WebsocketSource(feed, values, name=reading.name, batch_rows=reading.batch_rows)


def _checked(feed: Feed) -> str:
    try:
        with _connecting(feed):
            return "a server of websockets answers"
    except (WebSocketException, OSError) as error:
        raise _error_of(feed, error) from error


def _connecting(feed: Feed) -> AbstractContextManager[ClientConnection]:
    given: dict[str, Any] = {}
    if feed.settings.authorization:
        given["additional_headers"] = {"Authorization": feed.settings.authorization}
    if feed.url.startswith("wss:"):
        given["ssl"] = shared(client_context("WS_", feed.settings.authority))
    connection: AbstractContextManager[ClientConnection] = connect(
        feed.url,
        open_timeout=CONNECT_S,
        close_timeout=FAREWELL_S,
        max_size=MESSAGE_BYTES_MAX,
        **given,
    )
    return connection


def _error_of(feed: Feed, error: Exception) -> InputError:
    return InputError(f"cannot read {feed.url}: {said(error)}")
