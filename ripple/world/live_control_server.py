"""A service over gRPC: its methods, limits, certificates and health."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from ripple.core.access import Caller
from ripple.core.errors import LimitError
from ripple.core.extras import needed
from ripple.world import live_tls
from ripple.world.control import (
    BUSY,
    FAILED,
    KEEPALIVE_S,
    KEEPALIVE_TIMEOUT_S,
    MESSAGE_BYTES_MAX,
    PIPELINE,
    RefusedError,
    Service,
    UnreachableError,
    check_length,
)
from ripple.world.live_control_door import Door

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.world.control import Answers, Converses
    from ripple.world.errors import TlsError
    from ripple.world.tls import Tls

# Read when gRPC is imported: what it says of connections that come and go, we say ourselves.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
# We fork only to run a program: what gRPC does about forks then kills one child in a hundred.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

with needed("cluster", "the control channel"):
    import grpc
    import grpc.aio
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha import reflection

# Of every server, after its proxy: the handshake's time limit.
BOUNDS = (("grpc.server_handshake_timeout_ms", round(live_tls.HANDSHAKE_SECONDS_MAX * 1000)),)
OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.keepalive_time_ms", round(KEEPALIVE_S * 1000)),
    ("grpc.keepalive_timeout_ms", round(KEEPALIVE_TIMEOUT_S * 1000)),
    # Of any ping: while one is under way for another reason, none is sent to ask for life.
    ("grpc.http2.ping_timeout_ms", round(KEEPALIVE_TIMEOUT_S * 1000)),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # A peer that asks more often than this would be thrown out.
    ("grpc.http2.min_ping_interval_without_data_ms", round(KEEPALIVE_S * 500)),
    *BOUNDS,
)


class LiveServer:
    """A service at an address, which it owns."""

    def __init__(self, service: Service) -> None:
        self.address = ""
        self._health = health.aio.HealthServicer()
        self.door = Door()
        self._server = grpc.aio.server(options=OPTIONS)
        self._server.add_generic_rpc_handlers((_Methods(service, self.door),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._names = sorted(
            {m.rpartition("/")[0] for m in (*service.calls, *service.conversations)}
        )
        # Reflection shows the messages that this process has loaded. With roles it is off.
        if service.allows is None:
            names = (*self._names, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, self._server)

    async def start(self, address: str, tls: Tls | None) -> None:
        """Bind the address and begin. Raises OSError."""
        for name in self._names:
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        self.address = await opened(self._server, self.door, address, tls)

    async def close(self, grace_s: float = 0.0) -> None:
        self.door.refuse()
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)
        self.door.close()


class _Methods(grpc.GenericRpcHandler):  # type: ignore[misc]  # has no types
    """A service's methods; the bytes pass as they are."""

    def __init__(self, service: Service, door: Door) -> None:
        self._service = service
        self._door = door
        self._calls = 0
        self._conversations = 0

    def service(self, details: Any) -> Any:
        method = details.method.removeprefix("/")
        pipeline = dict(details.invocation_metadata or ()).get(PIPELINE, "")
        if method in self._service.conversations:

            async def serve(_: object, context: Any) -> None:
                service = await self._checked(pipeline, method, b"", context)
                await self._converse(service.conversations[method], context)

            return grpc.stream_stream_rpc_method_handler(serve)
        if method in self._service.calls:

            async def reply(request: bytes, context: Any) -> bytes:
                service = await self._checked(pipeline, method, request, context)
                return await self._call(service.calls[method], request, context)

            return grpc.unary_unary_rpc_method_handler(reply)
        return None

    async def _checked(self, pipeline: str, method: str, request: bytes, context: Any) -> Service:
        """Return the service of the pipeline that a caller names, unless they are unauthorized.

        An authorized caller's connection keeps its seat.
        """
        if self._service.allows is not None:
            refused = self._service.allows(method, caller_of(context), request)
            if refused is not None:
                await context.abort(grpc.StatusCode.PERMISSION_DENIED, refused)
        try:
            service = self._service.of(str(pipeline))
        except RefusedError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
            raise
        self._door.settle(context)
        return service

    async def _call(self, answer: Answers, request: bytes, context: Any) -> bytes:
        if self._calls >= self._service.calls_max:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, BUSY)

        async def reply() -> bytes:
            answered = await answer(request)
            check_length(answered)
            return answered

        self._calls += 1
        try:
            answered: bytes = await _refusing(reply, context, self._door.peer_of(context))
            return answered
        finally:
            self._calls -= 1

    async def _converse(self, converse: Converses, context: Any) -> None:
        if self._conversations >= self._service.conversations_max:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, BUSY)
        self._conversations += 1
        try:
            await context.send_initial_metadata(())
            peer = self._door.peer_of(context)
            await _refusing(lambda: converse(_Handled(context, peer)), context, peer)
        finally:
            self._conversations -= 1


def caller_of(context: Any) -> Caller:
    """Return the caller, by token and certificate."""
    token = None
    for name, value in context.invocation_metadata() or ():
        if name == "authorization" and isinstance(value, str):
            scheme, _, given = value.partition(" ")
            token = given.strip() if scheme.lower() == "bearer" else token
    names = []
    auth = context.auth_context()
    for kind in ("x509_common_name", "x509_subject_alternative_name"):
        names += [one.decode(errors="replace") for one in auth.get(kind, ())]
    return Caller(token, tuple(dict.fromkeys(names)))


class _Handled:
    """A conversation as its handler sees it."""

    def __init__(self, context: Any, peer: str) -> None:
        self.peer = peer
        self._context = context

    async def receive(self) -> bytes | None:
        try:
            message = await self._context.read()
        except grpc.aio.BaseError as error:
            raise UnreachableError(f"{self.peer}: {error}") from error
        return None if message is grpc.aio.EOF else bytes(message)

    async def send(self, message: bytes) -> None:
        check_length(message)
        try:
            await self._context.write(message)
        except grpc.aio.BaseError as error:
            raise UnreachableError(f"{self.peer}: {error}") from error


async def _refusing(work: Callable[[], Awaitable[Any]], context: Any, peer: str) -> Any:
    """Do the work; answer the caller with its error."""
    try:
        return await work()
    except (RefusedError, LimitError) as error:
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
    except UnreachableError:
        await context.abort(grpc.StatusCode.CANCELLED, "the conversation broke")
    except Exception as error:
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"a handler of {peer} has failed", "exception": error}
        )
        await context.abort(grpc.StatusCode.INTERNAL, FAILED)


async def opened(server: Any, door: Door, address: str, tls: Tls | None) -> str:
    """Start a gRPC server and its proxy; return the address, with the bound port.

    Raises OSError, of which TlsError names a file that does not fit.
    """
    try:
        if tls is None:
            server.add_insecure_port(door.behind)
        else:
            server.add_secure_port(door.behind, _credentials(address, tls))
        found = await door.open(address)
        await server.start()
    except BaseException:
        door.close()
        raise
    return found


def _credentials(address: str, tls: Tls) -> Any:
    """Return the credentials of the server, reread for each connection. Raises TlsError."""
    loop = asyncio.get_running_loop()

    def warn(error: TlsError) -> None:
        loop.call_soon_threadsafe(
            loop.call_exception_handler, {"message": f"{address}: {error}", "exception": error}
        )

    def configuration(files: live_tls.Files) -> Any:
        return grpc.ssl_server_certificate_configuration(
            [(files.key, files.certificate)], root_certificates=files.authority
        )

    newest = live_tls.Newest(tls, warn)

    def fetch() -> Any:
        files = newest.changed()
        return None if files is None else configuration(files)

    return grpc.dynamic_ssl_server_credentials(
        configuration(live_tls.read(tls)), fetch, require_client_authentication=True
    )
