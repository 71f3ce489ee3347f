"""Barrage over gRPC: its handlers, which precede those of plain Arrow Flight."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.reader import read_as
from ripple.client.flight.server import answers_one, answers_stream, the_one
from ripple.core.access import Right
from ripple.core.extras import needed
from ripple.world.control import BUSY, FAILED
from ripple.world.live_control_server import caller_of

with needed("cluster", "Barrage"):
    import grpc
    import grpc.aio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ripple.client.flight.barrage.exchange import Exchanges
    from ripple.client.flight.barrage.service import Tables
    from ripple.client.flight.barrage.session import Session, Sessions
    from ripple.world.live_control_door import Door

FLIGHT = "arrow.flight.protocol.FlightService"
DEEPHAVEN = "io.deephaven.proto.backplane.grpc"
CALLS_MAX = 64
STREAMS_MAX = 1024
_HEADER = "authorization"


class Methods(grpc.GenericRpcHandler):  # type: ignore[misc]  # has no types
    """The calls of Deephaven's clients. A call opens a session."""

    def __init__(
        self, tables: Tables, exchanges: Exchanges, sessions: Sessions, door: Door
    ) -> None:
        """Create the handlers. door: the connections; a session keeps its connection's seat."""
        self._door = door
        self._exchanges = exchanges
        self._sessions = sessions
        self._calls = _Count(CALLS_MAX)
        self._streams = _Count(STREAMS_MAX)
        one, stream = answers_one, answers_stream
        known = {
            f"{FLIGHT}/DoExchange": stream(self._exchange),
            f"{FLIGHT}/DoGet": stream(self._stream(tables.get, self._calls, lasting=False)),
            f"{FLIGHT}/Handshake": stream(self._handshake),
            f"{DEEPHAVEN}.ConfigService/GetConfigurationConstants": one(
                self._unary(tables.constants)
            ),
            f"{DEEPHAVEN}.SessionService/CloseSession": one(self._unary(tables.close_session)),
            f"{DEEPHAVEN}.SessionService/Release": one(self._unary(tables.release)),
            f"{DEEPHAVEN}.SessionService/ExportFromTicket": one(self._unary(tables.export)),
            f"{DEEPHAVEN}.TableService/FetchTable": one(self._unary(tables.fetch)),
            f"{DEEPHAVEN}.TableService/GetExportedTableCreationResponse": one(
                self._unary(tables.described)
            ),
            f"{DEEPHAVEN}.TableService/Batch": stream(self._stream(tables.batch, self._calls)),
            f"{DEEPHAVEN}.ApplicationService/ListFields": stream(
                self._stream(tables.fields, self._streams)
            ),
        }
        self._known = {f"/{name}": handler for name, handler in known.items()}

    def service(self, details: Any) -> Any:
        """Return the handler of a call; None for calls of plain Flight."""
        return self._known.get(details.method)

    def _unary(self, answer: Callable[[Any, bytes], Any]) -> Any:
        async def handle(requests: AsyncIterator[bytes], context: Any) -> bytes | None:
            async with self._guarded(context, self._calls) as session:
                answered: bytes = await answer(session, await the_one(requests))
                return answered
            return None

        return handle

    def _stream(
        self,
        answer: Callable[[Any, bytes], AsyncIterator[bytes]],
        count: _Count,
        *,
        lasting: bool = True,
    ) -> Any:
        async def handle(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async with self._guarded(context, count, lasting=lasting) as session:
                async for answered in answer(session, await the_one(requests)):
                    yield answered

        return handle

    async def _exchange(self, _: object, context: Any) -> None:
        async with self._guarded(context, self._streams) as session:
            await self._exchanges.serve(session, _Stream(context))

    async def _handshake(self, _: object, context: Any) -> None:
        """Open a session by a name and a token; its header authenticates further calls."""
        async with self._guarded(context, self._calls):
            await context.read()

    @asynccontextmanager
    async def _guarded(
        self, context: Any, count: _Count, *, lasting: bool = True
    ) -> AsyncIterator[Session]:
        """Check access, and report errors to the client.

        lasting: whether a caller without a session gets one.
        """
        entered = False
        try:
            session = self._entered(context, lasting=lasting)
            self._door.settle(context)
            if not count.add():
                raise FlightError(Why.TOO_MUCH, BUSY)
            entered = True
            if session.token:
                await context.send_initial_metadata(((_HEADER, f"Bearer {session.token}"),))
            yield session
        except FlightError as error:
            await context.abort(grpc.StatusCode[error.why.value], str(error))
        except grpc.aio.BaseError:  # the client has disconnected
            return
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler(
                {
                    "message": f"a call of {self._door.peer_of(context)} has failed",
                    "exception": error,
                }
            )
            await context.abort(grpc.StatusCode.INTERNAL, FAILED)
        finally:
            if entered:
                count.remove()

    def _entered(self, context: Any, *, lasting: bool) -> Session:
        header = dict(context.invocation_metadata() or ()).get(_HEADER, "")
        session = self._sessions.enter(
            caller_of(context), header if isinstance(header, str) else "", lasting=lasting
        )
        if not session.known.may(Right.READ) and not session.known.outputs:
            raise FlightError(Why.STRANGER, f"{session.known.name} may not read")
        read_as(session.known)
        return session


class _Count:
    """A counter with a limit."""

    def __init__(self, count_max: int) -> None:
        self._count = 0
        self._count_max = count_max

    def add(self) -> bool:
        if self._count >= self._count_max:
            return False
        self._count += 1
        return True

    def remove(self) -> None:
        self._count -= 1


class _Stream:
    """A stream, for its handler."""

    def __init__(self, context: Any) -> None:
        self._context = context

    async def read(self) -> bytes | None:
        message = await self._context.read()
        return None if message is grpc.aio.EOF else bytes(message)

    async def write(self, message: bytes) -> None:
        await self._context.write(message)
