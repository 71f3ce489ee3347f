"""The Flight service over gRPC: methods, limits, certificates."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.reader import read_as
from ripple.core.access import EVERYBODY, Right, Role
from ripple.core.extras import needed
from ripple.world.control import BUSY, FAILED, KEEPALIVE_S, KEEPALIVE_TIMEOUT_S, UNKNOWN_CALLER
from ripple.world.live_control_door import Door
from ripple.world.live_control_server import BOUNDS, caller_of, opened

with needed("cluster", "Arrow Flight"):
    import grpc
    import grpc.aio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from ripple.client.flight.barrage.session import Sessions
    from ripple.client.flight.service import Flights
    from ripple.core.access import Access
    from ripple.world.tls import Tls

SERVICE = "/arrow.flight.protocol.FlightService/"
# The largest message of a client; Arrow's clients do not split batches.
PUT_BYTES_MAX = 64 << 20
CALLS_MAX = 64
# Streams of one connection; more wait. Larger than the limit of calls, since some only listen.
CONNECTION_CALLS_MAX = 256
OPTIONS = (
    ("grpc.max_receive_message_length", PUT_BYTES_MAX),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_concurrent_streams", CONNECTION_CALLS_MAX),
    # Dead peers are detected, since some only listen.
    ("grpc.keepalive_time_ms", round(KEEPALIVE_S * 1000)),
    ("grpc.keepalive_timeout_ms", round(KEEPALIVE_TIMEOUT_S * 1000)),
    ("grpc.http2.max_pings_without_data", 0),
    # A client that pings more often is disconnected.
    ("grpc.http2.min_ping_interval_without_data_ms", round(KEEPALIVE_S * 500)),
    *BOUNDS,
)

# gRPC reads the request of a unary call before access is checked, up to the message limit. A
# stream of one request is the same on the wire, and is read after the check.
answers_one = grpc.stream_unary_rpc_method_handler
answers_stream = grpc.stream_stream_rpc_method_handler


async def the_one(requests: AsyncIterator[bytes]) -> bytes:
    """Read the request of a unary call. Raises FlightError."""
    async for request in requests:
        return request
    raise FlightError(Why.WRONG, "the call has no request")


class FlightServer:
    """A Flight server at an address."""

    def __init__(
        self,
        flights: Flights,
        access: Access | Sessions | None = None,
        before: Sequence[Any] = (),
        door: Door | None = None,
    ) -> None:
        """Serve callers that ``access`` permits, or all: readers get, operators put.

        before: further gRPC handlers, which take precedence. door: their connections.
        """
        self.address = ""
        self._door = Door() if door is None else door
        self._server = grpc.aio.server(options=OPTIONS)
        self._server.add_generic_rpc_handlers((*before, _Methods(flights, access, self._door)))

    async def start(self, address: str, tls: Tls | None) -> None:
        """Bind the address and start. Raises OSError; TlsError names a file."""
        self.address = await opened(self._server, self._door, address, tls)

    async def close(self, grace_s: float) -> None:
        """Accept no more calls; after ``grace_s`` cancel those in progress."""
        self._door.refuse()
        await self._server.stop(grace_s)
        self._door.close()


class _Methods(grpc.GenericRpcHandler):  # type: ignore[misc]  # has no types
    def __init__(self, flights: Flights, access: Access | Sessions | None, door: Door) -> None:
        self._access = access
        self._door = door
        self._calls = 0
        self._known = {
            "ListFlights": answers_stream(self._stream(flights.list_flights)),
            "GetFlightInfo": answers_one(self._unary(flights.get_flight_info)),
            "GetSchema": answers_one(self._unary(flights.get_schema)),
            "DoGet": answers_stream(self._stream(flights.do_get)),
            "DoPut": answers_stream(self._puts(flights)),
            "DoAction": answers_stream(self._stream(flights.do_action)),
            "ListActions": answers_stream(self._stream(flights.list_actions)),
        }

    def service(self, details: Any) -> Any:
        return self._known.get(details.method.removeprefix(SERVICE))

    def _unary(self, answer: Callable[[Any], Any]) -> Any:
        async def handle(requests: AsyncIterator[bytes], context: Any) -> Any:
            async with self._guarded(context):
                return await answer(await the_one(requests))

        return handle

    def _stream(self, answer: Callable[[Any], AsyncIterator[bytes]]) -> Any:
        async def handle(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async with self._guarded(context):
                async for answered in answer(await the_one(requests)):
                    yield answered

        return handle

    def _puts(self, flights: Flights) -> Any:
        async def handle(requests: Any, context: Any) -> AsyncIterator[bytes]:
            async with self._guarded(context):
                async for answered in flights.do_put(requests, self._refused(context)):
                    yield answered

        return handle

    @asynccontextmanager
    async def _guarded(self, context: Any) -> AsyncIterator[None]:
        """Check read access, and report errors to the client."""
        await self._check(context)
        self._door.settle(context)
        if self._calls >= CALLS_MAX:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, BUSY)
        self._calls += 1
        try:
            yield
        except FlightError as error:
            await context.abort(grpc.StatusCode[error.why.value], str(error))
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler(
                {
                    "message": f"a call of {self._door.peer_of(context)} has failed",
                    "exception": error,
                }
            )
            await context.abort(grpc.StatusCode.INTERNAL, FAILED)
        finally:
            self._calls -= 1

    async def _check(self, context: Any) -> None:
        if self._access is None:
            read_as(EVERYBODY)
            return
        known = self._access.known(caller_of(context))
        if known.role is Role.NOBODY:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, UNKNOWN_CALLER)
        if not known.outputs and (refused := self._refused(context, Right.READ)):
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, refused)
        read_as(known)

    def _refused(self, context: Any, right: Right = Right.OPERATE) -> str:
        """Return why the client lacks a right, "" if it has it."""
        if self._access is None:
            return ""
        known = self._access.known(caller_of(context))
        if known.may(right):
            return ""
        return f"{known.name} is {known.role.value}, and may not {right.value}"
