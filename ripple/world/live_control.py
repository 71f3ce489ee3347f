"""The control port over gRPC.

gRPC has threads of its own: one event loop a process may use it, and a process that has used it
must not fork. Its TLS cannot be limited to 1.3; two processes of ours speak that.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, NoReturn

from ripple.core.extras import needed
from ripple.world import addresses, live_tls
from ripple.world.control import (
    KEEPALIVE_S,
    KEEPALIVE_TIMEOUT_S,
    MESSAGE_BYTES_MAX,
    NO_METHOD,
    PIPELINE,
    ControlError,
    DeadlineError,
    RefusedError,
    Service,
    UnreachableError,
    check_length,
)
from ripple.world.live_control_server import LiveServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.world.tls import Tls

with needed("cluster", "the control channel"):
    import grpc
    import grpc.aio

OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.keepalive_time_ms", round(KEEPALIVE_S * 1000)),
    ("grpc.keepalive_timeout_ms", round(KEEPALIVE_TIMEOUT_S * 1000)),
    # Of any ping: while one is under way for another reason, none is sent to ask for life.
    ("grpc.http2.ping_timeout_ms", round(KEEPALIVE_TIMEOUT_S * 1000)),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # A restarted service is found soon: callers bound the rate of their retries.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.use_local_subchannel_pool", 1),  # each channel is a connection of its own
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),  # callers know which calls may be repeated
)
# Before the first byte: so a server with TLS ends a connection without it.
_HUNG_UP = re.compile("failed to connect to all addresses;.*: Socket closed$")
_REFUSED = (
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.PERMISSION_DENIED,
)


class LiveControl:
    """Calls and conversations over gRPC.

    token: shown with each call, as it is then; "": none. pipeline: named with each call, of a
    cluster of several; "": none.
    """

    def __init__(self, token: str | Callable[[], str] = "", *, pipeline: str = "") -> None:
        self._token = token if callable(token) else lambda: token
        self._named = ((PIPELINE, pipeline),) if pipeline else ()

    async def serve(self, address: str, service: Service, *, tls: Tls | None = None) -> LiveServer:
        server = LiveServer(service)
        await server.start(address, tls)
        return server

    def channel(self, address: str, *, tls: Tls | None = None) -> LiveChannel:
        return LiveChannel(address, tls, self._token, self._named)


class LiveChannel:
    """A gRPC channel, made anew when the files of its certificate have changed."""

    def __init__(
        self,
        address: str,
        tls: Tls | None,
        token: Callable[[], str],
        named: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Connect to nothing yet. named: metadata of each call, beside the token."""
        host, _ = addresses.parts(address)
        self._address = address
        self._tls = tls
        self._name = host if tls is None or not tls.peer else tls.peer
        self._closed = False
        self._token = token
        self._named = named
        self._newest = None if tls is None else live_tls.Newest(tls, lambda _: None)
        self._former: list[Any] = []  # where calls under way end
        self._channel = self._make(None if tls is None else live_tls.read(tls))

    async def call(self, method: str, request: bytes, *, deadline_s: float) -> bytes:
        check_length(request)
        doing = self._current().unary_unary(f"/{method}")(
            request, timeout=deadline_s, metadata=self._shown()
        )
        try:
            return bytes(await doing)
        except grpc.aio.AioRpcError as error:
            self._fail(error.code(), error.details())
        except asyncio.CancelledError:
            _unless_closed(self._address)
            raise

    async def open(self, method: str, *, deadline_s: float) -> LiveConversation:
        doing = self._current().stream_stream(f"/{method}")(metadata=self._shown())
        try:
            async with asyncio.timeout(deadline_s):
                await doing.initial_metadata()
                if doing.done():
                    self._fail(await doing.code(), await doing.details())
        except TimeoutError:
            doing.cancel()
            raise DeadlineError(f"{self._address}: no answer in {deadline_s} s") from None
        except grpc.aio.AioRpcError as error:
            self._fail(error.code(), error.details())
        except asyncio.CancelledError:
            doing.cancel()
            _unless_closed(self._address)
            raise
        return LiveConversation(self._address, doing)

    async def close(self) -> None:
        self._closed = True
        for channel in (*self._former, self._channel):
            await channel.close()

    def _shown(self) -> tuple[tuple[str, str], ...] | None:
        token = self._token()
        shown = (("authorization", f"Bearer {token}"),) if token else ()
        return (*shown, *self._named) or None

    def _fail(self, code: Any, details: str | None) -> NoReturn:
        if self._tls is None and details and _HUNG_UP.match(details):
            details += ": does it ask for TLS (--tls-certificate, --tls-key, --tls-authority)?"
        _fail(self._address, code, details)

    def _current(self) -> Any:
        if self._closed:
            raise UnreachableError(f"{self._address}: this channel is closed")
        files = None if self._newest is None else self._newest.changed()
        if files is not None:
            self._former.append(self._channel)
            self._channel = self._make(files)
        return self._channel

    def _make(self, files: live_tls.Files | None) -> Any:
        if files is None:
            return grpc.aio.insecure_channel(self._address, options=OPTIONS)
        return grpc.aio.secure_channel(
            self._address,
            grpc.ssl_channel_credentials(files.authority, files.key, files.certificate),
            options=(*OPTIONS, ("grpc.ssl_target_name_override", self._name)),
        )


class LiveConversation:
    """A conversation that this process has opened."""

    def __init__(self, address: str, doing: Any) -> None:
        self.peer = address
        self._doing = doing

    async def receive(self) -> bytes | None:
        try:
            message = await self._doing.read()
            if message is not grpc.aio.EOF:
                return bytes(message)
            if await self._doing.code() != grpc.StatusCode.OK:
                await self._fail()
        except grpc.aio.AioRpcError as error:
            _fail(self.peer, error.code(), error.details())
        except asyncio.CancelledError:
            _unless_closed(self.peer)
            raise
        return None

    async def send(self, message: bytes) -> None:
        check_length(message)
        try:
            await self._doing.write(message)
        except grpc.aio.AioRpcError as error:
            _fail(self.peer, error.code(), error.details())
        except asyncio.InvalidStateError:
            await self._fail()
        except asyncio.CancelledError:
            _unless_closed(self.peer)
            raise

    async def finish(self) -> None:
        if not self._doing.done():
            await self._doing.done_writing()

    def close(self) -> None:
        self._doing.cancel()

    async def _fail(self) -> NoReturn:
        _fail(self.peer, await self._doing.code(), await self._doing.details())


def _fail(address: str, code: Any, details: str | None) -> NoReturn:
    """Raise the error for a status of gRPC."""
    error: ControlError
    if code in _REFUSED or code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN):
        error = RefusedError(details or "")
    elif code == grpc.StatusCode.UNIMPLEMENTED:
        error = RefusedError(NO_METHOD)
    elif code == grpc.StatusCode.DEADLINE_EXCEEDED:
        error = DeadlineError(f"{address}: no answer in time")
    else:
        error = UnreachableError(f"{address}: {details or code.name.lower()}")
    raise error from None


def _unless_closed(address: str) -> None:
    """Raise ControlError for a call ended with its channel, not for one cancelled here."""
    task = asyncio.current_task()
    if task is None or not task.cancelling():
        raise UnreachableError(f"{address}: this channel is closed") from None
