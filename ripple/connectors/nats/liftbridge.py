"""Changes as messages of Liftbridge on a subject of NATS, each acknowledged once stored."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.connectors.background import Background
from ripple.connectors.contract import BasicSink
from ripple.connectors.files.text.sink import TextLines, json_of
from ripple.connectors.nats.envelope import (
    ACK,
    AckPolicy,
    EnvelopeError,
    Message,
    ack_of,
    dumps,
    dumps_message,
    loads,
)
from ripple.connectors.nats.liftbridge_connector import AGAIN
from ripple.connectors.nats.session import FAILURES, connected, error_of
from ripple.core.errors import OutputError

if TYPE_CHECKING:
    import pyarrow as pa
    from nats.aio.client import Client
    from nats.aio.msg import Msg

    from ripple.connectors.connector import Writing
    from ripple.connectors.contract import Commit
    from ripple.connectors.nats.uri import NatsUri

# Sent before the first of them must be acknowledged.
AT_ONCE = 1000
ANSWER_S = 5.0
TRIES = 6
_ERRORS = {1: "its offset is another one", 2: "it is too large", 3: "it cannot be encrypted"}


class LiftbridgeSink(BasicSink):
    """A Sink with rows that a stream of Liftbridge has stored when ``write`` returns.

    Some rows are in flight at once. If one of them is not acknowledged in time, it is sent again
    with all later ones, so that the last row of a key stays its last.

    Invariant: ``_waits`` are the numbers of the unacknowledged messages.
    """

    promise = AGAIN

    def __init__(self, place: NatsUri, writing: Writing) -> None:
        """Connect. Raises OutputError."""
        self.name = str(place)
        self._place = place
        self._lines = TextLines(json_of(writing.output), self.name)
        self._client: Client | None = None
        self._inbox = ""
        self._waits: set[int] = set()
        self._number = 0
        self._refusal: str | None = None
        self._heard = asyncio.Event()
        self._loop: Background | None = Background()
        try:
            self._loop.call(self._connect())
        except BaseException:
            self.close()
            raise

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Send the rows, and wait until all are acknowledged; see Sink."""
        if self._loop is None:
            raise OutputError(f"cannot write {self.name}: it is closed")
        rows = [row.as_py() for row in self._lines.values(changes)]
        for first in range(0, len(rows), AT_ONCE):
            self._loop.call(self._sent(rows[first : first + AT_ONCE]))

    def commit(self, reached: Commit) -> None:
        """Do nothing: written rows are acknowledged."""

    def close(self) -> None:
        """Close the connection; written rows stay."""
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                if self._client is not None:
                    loop.call(self._client.close())
            finally:
                loop.close()

    async def _connect(self) -> None:
        self._client = await connected(self._place, OutputError)
        self._inbox = self._client.new_inbox()
        try:
            await self._client.subscribe(self._inbox, cb=self._hear)
            await self._client.flush()
        except FAILURES as error:
            raise error_of(self._place, error, OutputError) from error

    async def _sent(self, rows: list[bytes]) -> None:
        first, self._number = self._number, self._number + len(rows)
        self._waits = set(range(first, self._number))
        tries = iter(range(TRIES))
        await self._send(rows, first)
        while self._waits:
            self._heard.clear()
            try:
                async with asyncio.timeout(ANSWER_S):
                    await self._heard.wait()
            except TimeoutError:
                if next(tries, None) is None:
                    raise OutputError(
                        f"cannot write {self.name}: no server acknowledges {len(self._waits)} of "
                        f"{len(rows)} messages: is there a stream of Liftbridge for that subject?"
                    ) from None
                missing = min(self._waits)
                self._waits = set(range(missing, self._number))
                await self._send(rows[missing - first :], missing)
            if self._refusal is not None:
                raise OutputError(f"cannot write {self.name}: {self._refusal}")

    async def _send(self, rows: list[bytes], first: int) -> None:
        assert self._client is not None
        try:
            if self._client.is_closed:  # it has tried to reconnect, and given up
                await self._connect()
            for number, row in enumerate(rows, first):
                message = Message(row, b"", self._inbox, str(number), AckPolicy.ALL)
                await self._client.publish(self._place.stream, dumps(dumps_message(message)))
            await self._client.flush()
        except (*FAILURES, OutputError):
            return  # they are sent again, or not acknowledged at all

    async def _hear(self, message: Msg) -> None:
        try:
            envelope = loads(message.data)
            ack = ack_of(envelope.payload) if envelope.kind == ACK else None
        except EnvelopeError:
            ack = None
        if ack is None or not ack.correlation_id.isdecimal():
            return
        if ack.error:
            why = _ERRORS.get(ack.error, f"error {ack.error}")
            self._refusal = f"stream {ack.stream} refuses a message: {why}"
        self._waits.discard(int(ack.correlation_id))
        self._heard.set()
