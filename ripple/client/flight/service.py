"""The requests of Flight, in bytes; access control and transport are elsewhere."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.framing import Batches, frames, schema_bytes
from ripple.client.flight.messages.flight_pb2 import (
    Action,
    ActionType,
    Criteria,
    FlightData,
    FlightDescriptor,
    FlightEndpoint,
    FlightInfo,
    PutResult,
    SchemaResult,
    Ticket,
)
from ripple.client.flight.sql import ACTIONS, FlightSql, message_of
from ripple.client.flight.tables import CUTS
from ripple.core.extras import needed

with needed("cluster", "Arrow Flight"):
    from google.protobuf.message import DecodeError, Message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import pyarrow as pa

    from ripple.client.flight.tables import Tables
    from ripple.client.flight.writing import Written

M = TypeVar("M", bound=Message)

TICKET_BYTES_MAX = 1 << 14
_FIELDS = ("output", "key", "columns")


class Wanted(NamedTuple):
    """The content of a ticket. key: only rows with these key fields. columns: () for all."""

    output: str
    key: Mapping[str, Any]
    columns: tuple[str, ...]

    @classmethod
    def parse(cls, text: bytes) -> Wanted:
        """Parse a ticket or command: an output's name, or JSON.

        ``{"output": "vwap", "key": {"symbol": "AAPL"}, "columns": ["symbol", "vwap"]}``. Raises
        FlightError.
        """
        if len(text) > TICKET_BYTES_MAX:
            raise FlightError(Why.WRONG, f"a ticket of {len(text)} bytes is too long")
        try:
            if not text.startswith(b"{"):
                return cls(text.decode(), {}, ())
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FlightError(Why.WRONG, f"the ticket cannot be read: {error}") from error
        output, key, columns = (given.get(name) for name in _FIELDS)
        unknown = sorted({*given} - {*_FIELDS})
        if unknown or not isinstance(output, str):
            wrong = f"has {unknown[0]!r}" if unknown else "names no output"
            raise FlightError(Why.WRONG, f"the ticket {wrong}: it has {', '.join(_FIELDS)}")
        if not isinstance(key, dict | None) or not isinstance(columns, list | None):
            raise FlightError(Why.WRONG, "the ticket's key is an object, its columns are a list")
        return cls(output, key or {}, () if columns is None else _columns(columns))

    def ticket(self) -> bytes:
        """Return the ticket as bytes."""
        if not self.key and not self.columns:
            return self.output.encode()
        return json.dumps(dict(zip(_FIELDS, self, strict=True))).encode()


def _columns(given: list[Any]) -> tuple[str, ...]:
    if not given or not all(isinstance(name, str) for name in given):
        raise FlightError(Why.WRONG, "the ticket's columns are names: leave them out to get all")
    for name, count in Counter(given).items():
        if count > 1:
            raise FlightError(Why.WRONG, f"the ticket has the column {name!r} twice")
    return tuple(given)


class Flights:
    """Outputs to get, logs to put to, by name; and SQL over the outputs."""

    def __init__(
        self,
        tables: Tables,
        logs: Mapping[str, Written],
        sql: FlightSql | None = None,
    ) -> None:
        """Serve tables and logs. sql: the SQL service; one with default limits if None."""
        self._tables = tables
        self._logs = logs
        self._sql = FlightSql(tables) if sql is None else sql

    async def list_flights(self, request: bytes) -> AsyncIterator[bytes]:
        """Yield the FlightInfo of each output."""
        _read(Criteria, request)
        for name in await self._tables.names():
            yield (await self._info(Wanted(name, {}, ()))).SerializeToString()

    async def get_flight_info(self, request: bytes) -> bytes:
        """Return the schema, row count, cuts and ticket of an output."""
        descriptor = _read(FlightDescriptor, request)
        command = message_of(descriptor.cmd)
        if command is None:
            found = await self._info(_wanted(descriptor))
        else:
            schema, ticket = await self._sql.info(command)
            found = FlightInfo(
                schema=schema,
                flight_descriptor=descriptor,
                endpoint=[FlightEndpoint(ticket=Ticket(ticket=ticket))],
                total_records=-1,
                total_bytes=-1,
            )
        info: bytes = found.SerializeToString()
        return info

    async def get_schema(self, request: bytes) -> bytes:
        """Return the schema."""
        descriptor = _read(FlightDescriptor, request)
        command = message_of(descriptor.cmd)
        if command is None:
            schema = schema_bytes((await self._table(_wanted(descriptor))).schema)
        else:
            schema = await self._sql.schema(command)
        result: bytes = SchemaResult(schema=schema).SerializeToString()
        return result

    async def do_get(self, request: bytes) -> AsyncIterator[bytes]:
        """Yield the current rows."""
        ticket = _read(Ticket, request).ticket
        command = message_of(ticket)
        if command is None:
            table = await self._table(Wanted.parse(ticket))
        else:
            table = await self._sql.table(command)
        for data in frames(table, (table.schema.metadata or {}).get(CUTS.encode(), b"")):
            yield data.SerializeToString()

    async def do_put(
        self, requests: AsyncIterator[bytes], refused: str = ""
    ) -> AsyncIterator[bytes]:
        """Append a stream of batches to a log; acknowledge each once it is durable.

        Acknowledgements have JSON metadata: rows, and the end offset of each partition written to.
        Parameters of a statement are put, too. refused: why the client may not write to logs.
        """
        log, batches = None, Batches()
        async for request in requests:
            data = _read(FlightData, request)
            if log is None:
                command = message_of(data.flight_descriptor.cmd)
                if command is not None:
                    async for bound in self._sql.bind(command, _and(data, requests)):
                        yield bound.SerializeToString()
                    return
                if refused:
                    raise FlightError(Why.FORBIDDEN, refused)
                log = self._log(data.flight_descriptor)
            batch = batches.take(data)
            if batch is not None:
                reached = await log.append(batch)
                said = {"rows": batch.num_rows, "reached": reached}
                yield PutResult(app_metadata=json.dumps(said).encode()).SerializeToString()

    async def do_action(self, request: bytes) -> AsyncIterator[bytes]:
        """Yield the results of an action; all are of Flight SQL."""
        async for result in self._sql.act(_read(Action, request)):
            yield result.SerializeToString()

    async def list_actions(self, _: bytes) -> AsyncIterator[bytes]:
        """Yield the available actions."""
        for name, says in ACTIONS.items():
            yield ActionType(type=name, description=says).SerializeToString()

    async def _info(self, wanted: Wanted) -> FlightInfo:
        table = await self._table(wanted)
        return FlightInfo(
            schema=schema_bytes(table.schema),
            flight_descriptor=_descriptor(wanted),
            endpoint=[FlightEndpoint(ticket=Ticket(ticket=wanted.ticket()))],
            total_records=table.num_rows,
            total_bytes=table.nbytes,
            app_metadata=table.schema.metadata[CUTS.encode()],
        )

    async def _table(self, wanted: Wanted) -> pa.Table:
        table = await self._tables.table(wanted.output, wanted.key)
        for name in wanted.columns:
            if name not in table.schema.names:
                there = ", ".join(table.schema.names)
                raise FlightError(
                    Why.WRONG, f"output {wanted.output!r} has no column {name!r}: it has {there}"
                )
        return table.select(list(wanted.columns)) if wanted.columns else table

    def _log(self, descriptor: FlightDescriptor) -> Written:
        name = _path(descriptor)
        if name not in self._logs:
            known = ", ".join(self._logs) or "none: see --write"
            raise FlightError(Why.UNKNOWN, f"no log {name!r} is writable: there are {known}")
        return self._logs[name]


async def _and(first: FlightData, requests: AsyncIterator[bytes]) -> AsyncIterator[FlightData]:
    yield first
    async for request in requests:
        yield _read(FlightData, request)


def _wanted(descriptor: FlightDescriptor) -> Wanted:
    if descriptor.type == FlightDescriptor.CMD:
        return Wanted.parse(descriptor.cmd)
    return Wanted(_path(descriptor), {}, ())


def _descriptor(wanted: Wanted) -> FlightDescriptor:
    if wanted.key or wanted.columns:
        return FlightDescriptor(type=FlightDescriptor.CMD, cmd=wanted.ticket())
    return FlightDescriptor(type=FlightDescriptor.PATH, path=[wanted.output])


def _path(descriptor: FlightDescriptor) -> str:
    if descriptor.type != FlightDescriptor.PATH or len(descriptor.path) != 1:
        raise FlightError(Why.WRONG, "the descriptor must be a path of one name")
    return str(descriptor.path[0])


def _read(kind: type[M], data: bytes) -> M:
    try:
        found: M = kind.FromString(data)
    except DecodeError as error:
        raise FlightError(Why.WRONG, f"this is not a {kind.__name__}: {error}") from error
    return found
