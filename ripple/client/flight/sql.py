"""Flight SQL: statements over outputs, at consistent cuts.

No state is kept between calls, so that any gateway can continue: the handle of a statement holds
the statement and its parameters.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.framing import Batches, schema_bytes
from ripple.client.flight.sql_catalogue import Catalogue
from ripple.client.flight.sql_info import STATEMENT_BYTES_MAX, STATEMENTS_MAX
from ripple.client.flight.tables import BEGINS, CUTS
from ripple.client.sql.isolated import Limits, query_apart
from ripple.core.codec import arrow
from ripple.core.codec.errors import EncodingError
from ripple.core.errors import InputError, LimitError
from ripple.core.extras import needed

with needed("cluster", "Flight SQL"):
    from google.protobuf.any_pb2 import Any as AnyMessage
    from google.protobuf.message import DecodeError, Message

    from ripple.client.flight.messages import flight_sql_pb2 as messages
    from ripple.client.flight.messages.flight_pb2 import Action, FlightData, PutResult, Result

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ripple.client.flight.tables import Tables

TYPES = "type.googleapis.com/arrow.flight.protocol.sql."
QUESTIONS_MAX = STATEMENTS_MAX
SQL_BYTES_MAX = STATEMENT_BYTES_MAX
PARAMETERS_BYTES_MAX = 1 << 16
TABLES_BYTES_MAX = 256 << 20
ANSWER_BYTES_MAX = 64 << 20
CREATE, CLOSE = "CreatePreparedStatement", "ClosePreparedStatement"
ACTIONS = {
    CREATE: "prepare a statement, to be executed once or more often",
    CLOSE: "close a prepared statement; it holds no state",
}


class Asked(NamedTuple):
    """A statement and its parameters: one row as an Arrow stream, or nothing.

    Handles hold it.
    """

    sql: str
    parameters: bytes = b""

    @classmethod
    def parse(cls, handle: bytes) -> Asked:
        """Parse a handle. Raises FlightError."""
        try:
            sql, parameters = json.loads(handle)
            return cls.of(sql, base64.b64decode(parameters, validate=True))
        except (ValueError, TypeError, RecursionError) as error:
            raise FlightError(Why.WRONG, "this is not a handle of a statement") from error

    @classmethod
    def of(cls, sql: str, parameters: bytes = b"") -> Asked:
        """Check the sizes. Raises FlightError."""
        if len(sql.encode()) > SQL_BYTES_MAX:
            raise FlightError(Why.TOO_MUCH, f"a statement has at most {SQL_BYTES_MAX} bytes")
        if len(parameters) > PARAMETERS_BYTES_MAX:
            raise FlightError(Why.TOO_MUCH, f"parameters have at most {PARAMETERS_BYTES_MAX} bytes")
        return cls(sql, parameters)

    @property
    def handle(self) -> bytes:
        """The handle's text."""
        return json.dumps([self.sql, base64.b64encode(self.parameters).decode()]).encode()

    @property
    def row(self) -> pa.RecordBatch | None:
        """The parameters. Raises FlightError."""
        try:
            return arrow.loads(self.parameters, has_nulls=True) if self.parameters else None
        except EncodingError as error:
            raise FlightError(Why.WRONG, f"the parameters cannot be read: {error}") from error


class FlightSql:
    """Statements over outputs, and their metadata."""

    def __init__(self, tables: Tables, timeout_s: float = 10.0, memory_mib: int = 256) -> None:
        """Create the service. timeout_s, memory_mib: limits of one statement."""
        self._tables = tables
        self._catalogue = Catalogue(tables)
        self._limits = Limits(timeout_s, memory_mib, TABLES_BYTES_MAX, ANSWER_BYTES_MAX)
        self._questions = 0

    async def info(self, command: Message) -> tuple[bytes, bytes]:
        """Return a schema, empty if only the answer has it, and the ticket to get the answer.

        Raises FlightError.
        """
        asked = _asked(command)
        if asked is not None:
            ticket = messages.TicketStatementQuery(statement_handle=asked.handle)
            return b"", packed(ticket)
        schema = self._catalogue.schema(command)
        return schema_bytes(schema), packed(command)

    async def schema(self, command: Message) -> bytes:
        """Return the schema of an answer. Raises FlightError."""
        asked = _asked(command)
        if asked is None:
            return schema_bytes(self._catalogue.schema(command))
        return schema_bytes((await self._answer(asked, is_empty=True)).schema)

    async def table(self, command: Message) -> pa.Table:
        """Return the answer to a ticket; the schema of a statement's answer has the cuts.

        Raises FlightError.
        """
        if isinstance(command, messages.TicketStatementQuery):
            return await self._answer(Asked.parse(command.statement_handle))
        return await self._catalogue.table(command)

    async def act(self, action: Action) -> AsyncIterator[Result]:
        """Yield the results of an action. Raises FlightError."""
        if action.type not in ACTIONS:
            offered = ", ".join(ACTIONS)
            raise FlightError(
                Why.NOT_OFFERED, f"action {action.type!r}: outputs are read-only: {offered}"
            )
        asked = message_of(action.body)
        if isinstance(asked, messages.ActionCreatePreparedStatementRequest):
            statement = Asked.of(asked.query)
            answer = await self._answer(statement, is_empty=True)
            created = messages.ActionCreatePreparedStatementResult(
                prepared_statement_handle=statement.handle,
                dataset_schema=schema_bytes(answer.schema),
            )
            yield Result(body=packed(created))
        elif not isinstance(asked, messages.ActionClosePreparedStatementRequest):
            raise FlightError(Why.WRONG, f"the action {action.type} has another request")

    async def bind(
        self, command: Message, rows: AsyncIterator[FlightData]
    ) -> AsyncIterator[PutResult]:
        """Bind the parameters of a prepared statement; its new handle holds them.

        Raises FlightError.
        """
        if not isinstance(command, messages.CommandPreparedStatementQuery):
            raise _not_offered(command)
        batches, found = Batches(has_nulls=True), []
        async for data in rows:
            batch = batches.take(data)
            if batch is not None:
                found.append(batch)
        if [batch.num_rows for batch in found] != [1]:
            raise FlightError(Why.WRONG, "give one row of parameters: statements run one at a time")
        sql = Asked.parse(command.prepared_statement_handle).sql
        asked = Asked.of(sql, arrow.dumps(found[0]))
        bound = messages.DoPutPreparedStatementResult(prepared_statement_handle=asked.handle)
        yield PutResult(app_metadata=bound.SerializeToString())

    async def _answer(self, asked: Asked, *, is_empty: bool = False) -> pa.Table:
        """Return the answer; is_empty: without rows, for any parameters."""
        cuts: dict[str, Any] = {}
        begins: dict[str, Any] = {}

        async def fetch(names: list[str]) -> dict[str, pa.Table]:
            tables = {name: await self._tables.table(name) for name in names}
            for name, table in tables.items():
                for about, found in ((CUTS, cuts), (BEGINS, begins)):
                    if (there := table.schema.metadata.get(about.encode())) is not None:
                        found[name] = json.loads(there)
            return {name: table.slice(0, 0 if is_empty else None) for name, table in tables.items()}

        if self._questions >= QUESTIONS_MAX:
            raise FlightError(Why.TOO_MUCH, f"{QUESTIONS_MAX} statements are running: try again")
        self._questions += 1
        try:
            answer = await query_apart(
                asked.sql,
                await self._tables.names(),
                fetch,
                rows_max=0 if is_empty else None,
                limits=self._limits,
                parameters=asked.row,
                are_given=not is_empty,
            )
        except InputError as error:
            raise FlightError(Why.WRONG, str(error)) from error
        except LimitError as error:
            raise FlightError(Why.TOO_MUCH, str(error)) from error
        except TimeoutError as error:
            said = str(error) or f"no answer within {self._limits.timeout_s:g} s"
            raise FlightError(Why.TOO_SLOW, said) from error
        finally:
            self._questions -= 1
        found = {CUTS: cuts, BEGINS: begins} if begins else {CUTS: cuts}
        return answer.replace_schema_metadata(
            {name: json.dumps(each, sort_keys=True) for name, each in found.items()}
        )


def message_of(text: bytes) -> Message | None:
    """Return the message of Flight SQL in a command, ticket or action; None if it has none.

    Raises FlightError for an unsupported one.
    """
    if TYPES.encode() not in text[: len(TYPES) + 4]:
        return None
    try:
        whole = AnyMessage.FromString(text)
        name = whole.type_url.removeprefix(TYPES)
        kind = getattr(messages, name, None)
        if kind is None:
            raise FlightError(Why.NOT_OFFERED, f"{name} is not offered: outputs are read-only")
        found: Message = kind.FromString(whole.value)
    except (DecodeError, TypeError, AttributeError) as error:
        raise FlightError(Why.WRONG, f"this is not a message of Flight SQL: {error}") from error
    return found


def packed(message: Message) -> bytes:
    """Return a message, packed as Any."""
    whole = AnyMessage(type_url=TYPES + message.DESCRIPTOR.name, value=message.SerializeToString())
    text: bytes = whole.SerializeToString()
    return text


def _asked(command: Message) -> Asked | None:
    """Return the statement in a command that has one."""
    if isinstance(command, messages.CommandStatementQuery):
        return Asked.of(command.query)
    if isinstance(command, messages.CommandPreparedStatementQuery):
        return Asked.parse(command.prepared_statement_handle)
    return None


def _not_offered(command: Message) -> FlightError:
    name = command.DESCRIPTOR.name
    return FlightError(Why.NOT_OFFERED, f"{name} is not offered: outputs are read-only")
