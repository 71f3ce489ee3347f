"""The calls of Deephaven's clients other than DoExchange."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError, Message

from ripple.client.flight.barrage.columns import wire_schema
from ripple.client.flight.barrage.deephaven_pb2 import (
    BatchTableRequest,
    ConfigurationConstantsResponse,
    ConfigValue,
    ExportedTableCreationResponse,
    ExportRequest,
    FetchTableRequest,
    FieldInfo,
    FieldsChangeUpdate,
    ReleaseRequest,
    TableReference,
    TableTicket,
    TypedTicket,
)
from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.framing import schema_bytes
from ripple.client.flight.messages.flight_pb2 import Ticket

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ripple.client.flight.barrage.feed import Feeds
    from ripple.client.flight.barrage.session import Session, Sessions
    from ripple.client.flight.service import Flights

M = TypeVar("M", bound=Message)

OPERATIONS_MAX = 64
_LISTED_S = 5.0
_SCOPE = "scope"


class Tables:
    """Outputs as tables of Deephaven, opened by name, then named by the client's ticket."""

    def __init__(self, feeds: Feeds, sessions: Sessions, flights: Flights) -> None:
        """Create the service. flights: the tables' snapshots."""
        self._feeds = feeds
        self._sessions = sessions
        self._flights = flights

    async def constants(self, session: Session, request: bytes) -> bytes:
        """Return the configuration: the session's timeout."""
        del session, request
        silent_ms = str(int(self._sessions.session_s * 1000))
        return _bytes(
            ConfigurationConstantsResponse(
                config_values={"http.session.durationMs": ConfigValue(string_value=silent_ms)}
            )
        )

    async def close_session(self, session: Session, request: bytes) -> bytes:
        """Close a session; its streams end."""
        del request
        self._sessions.close(session)
        return b""

    async def release(self, session: Session, request: bytes) -> bytes:
        """Release a ticket."""
        session.release(_read(ReleaseRequest, request).id.ticket)
        return b""

    async def export(self, session: Session, request: bytes) -> bytes:
        """Make another ticket stand for the same table."""
        asked = _read(ExportRequest, request)
        session.export(asked.result_id.ticket, session.output(asked.source_id.ticket))
        return b""

    async def fetch(self, session: Session, request: bytes) -> bytes:
        """Open a table; return its columns and row count."""
        return _bytes(await self._fetched(session, _read(FetchTableRequest, request), []))

    async def described(self, session: Session, request: bytes) -> bytes:
        """Return the description of a table, by ticket or name."""
        asked = FetchTableRequest(
            source_id=TableReference(ticket=_read(TableTicket, request)),
        )
        return _bytes(await self._fetched(session, asked, []))

    async def batch(self, session: Session, request: bytes) -> AsyncIterator[bytes]:
        """Run operations in order; only opening tables is supported."""
        operations = _read(BatchTableRequest, request).ops
        if len(operations) > OPERATIONS_MAX:
            raise FlightError(Why.TOO_MUCH, f"there are {len(operations)} operations in one batch")
        opened: list[TableTicket] = []
        for operation in operations:
            if not operation.HasField("fetch_table"):
                raise FlightError(Why.NOT_OFFERED, "only opening tables is supported")
            answer = await self._fetched(session, operation.fetch_table, opened)
            opened.append(operation.fetch_table.result_id)
            yield _bytes(answer)

    async def fields(self, session: Session, request: bytes) -> AsyncIterator[bytes]:
        """Yield the names of all tables, then of added and removed ones."""
        del request
        announced: set[str] = set()
        first = True
        while first or not self._sessions.is_over(session):
            names = set(await self._feeds.names())
            if first or names != announced:
                yield _bytes(
                    FieldsChangeUpdate(
                        created=[_field(name) for name in sorted(names - announced)],
                        removed=[_field(name) for name in sorted(announced - names)],
                    )
                )
            announced, first = names, False
            await asyncio.sleep(_LISTED_S)

    async def get(self, session: Session, request: bytes) -> AsyncIterator[bytes]:
        """Yield a table's current rows, by a ticket of Deephaven or of Ripple."""
        ticket = _read(Ticket, request).ticket
        if session.exported(ticket) or ticket.startswith(b"s/"):
            request = _bytes(Ticket(ticket=session.output(ticket).encode()))
        async for data in self._flights.do_get(request):
            yield data

    async def _fetched(
        self, session: Session, asked: FetchTableRequest, opened: list[TableTicket]
    ) -> ExportedTableCreationResponse:
        source = asked.source_id
        ticket = source.ticket
        if source.WhichOneof("ref") == "batch_offset":
            if not 0 <= source.batch_offset < len(opened):
                raise FlightError(Why.WRONG, f"there is no operation {source.batch_offset} before")
            ticket = opened[source.batch_offset]
        output = session.output(ticket.ticket)
        async with self._feeds.using(output) as feed:
            if asked.result_id.ticket:
                session.export(asked.result_id.ticket, output)
                ticket = asked.result_id
            return ExportedTableCreationResponse(
                result_id=TableReference(ticket=ticket),
                success=True,
                schema_header=schema_bytes(wire_schema(feed.schema)),
                size=len(feed.rows.version().rows),
            )


def _field(name: str) -> FieldInfo:
    ticket = TableTicket(ticket=b"s/" + name.encode())
    return FieldInfo(
        typed_ticket=TypedTicket(ticket=ticket, type="Table"),
        field_name=name,
        application_name=_SCOPE,
        application_id=_SCOPE,
    )


def _bytes(message: Message) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _read(kind: type[M], data: bytes) -> M:
    try:
        found: M = kind.FromString(data)
    except DecodeError as error:
        raise FlightError(Why.WRONG, f"this is not a {kind.__name__}: {error}") from error
    return found
