"""The connection of a slot's changes: streaming replication over libpq.

psycopg does not implement this protocol, and has all that it needs of libpq: after
START_REPLICATION both sides send messages. Ours acknowledge positions, the server's are

    w, 3 x 8 bytes, a message of the slot's plugin        k, its position, its time, a ping flag

A slot that is asked by SQL (``pg_logical_slot_peek_binary_changes``) decodes all from its position
each time it is asked, so long retained logs would be decoded again and again; a stream decodes
everything once, and delivers a change as soon as it is committed.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.postgres.position import lsn_text
from ripple.connectors.postgres.slot import FORMS
from ripple.core.extras import needed

with needed("postgres", "a table of PostgreSQL"):
    import psycopg
    from psycopg.pq import DiagnosticField, ExecStatus

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

    from ripple.connectors.postgres.slot import Slots

ANSWER_S = 30.0
STATUS_S = 10.0
_CHANGE, _HEAD_BYTES = ord("w"), 25
_ALIVE = struct.Struct(">cQQB")
_STATUS = struct.Struct(">cQQQqB")


class Alive(NamedTuple):
    """All commits before this place in the log have been sent."""

    lsn: int


class Stream:
    """The messages of a slot, from a position in the log on.

    needed_lsn: the position from which the slot may be read again; earlier log may be released.
    seen_lsn: the server's last known position. asked: how many pings in a row came without new
    messages.
    """

    def __init__(self, connection: psycopg.AsyncConnection, needed_lsn: int) -> None:
        self._connection = connection
        self._pg: PGconn = connection.pgconn
        self._stirred = asyncio.Event()
        self.needed_lsn = needed_lsn
        self.seen_lsn = needed_lsn
        self.asked = 0
        self._sent_s = self._heard_s = _now_s()
        self._has_heard = True

    @classmethod
    async def begin(cls, slots: Slots, lsn: int, needed_lsn: int) -> Stream:
        """Read from a position on. Raises psycopg.Error, ObjectInUse if another client reads."""
        connection = await psycopg.AsyncConnection.connect(
            slots.conninfo(
                replication="database", options=FORMS, keepalives_idle=10, tcp_user_timeout=30_000
            ),
            autocommit=True,
        )
        stream = cls(connection, needed_lsn)
        try:
            quoted = slots.publication.replace('"', '""').replace("'", "''")
            await stream._start(
                f'START_REPLICATION SLOT "{slots.name}" LOGICAL {lsn_text(lsn)} '
                f"(proto_version '1', publication_names '\"{quoted}\"')"
            )
        except BaseException:
            await stream.close()
            raise
        return stream

    def read(self) -> bytes | Alive | None:
        """Return the next message of the plugin, or how far the server is; None if none is there.

        Raises psycopg.Error.
        """
        length, data = self._pg.get_copy_data(1)
        if length == 0:
            self._pg.consume_input()
            length, data = self._pg.get_copy_data(1)
        if length == 0:
            return None
        if length < 0:
            raise _error(self._pg.get_result(), "the server has ended the stream")
        self._has_heard = True
        if data[0] == _CHANGE:
            self.asked = 0
            return bytes(data[_HEAD_BYTES:])
        _, lsn, _, asks = _ALIVE.unpack_from(data)
        self.seen_lsn = max(self.seen_lsn, lsn)
        if asks:
            self.asked += 1
            self.send_status()
        return Alive(lsn)

    async def wait(self, timeout_s: float) -> None:
        """Wait until more may be there, or for so long. Raises psycopg.OperationalError.

        The server is told from time to time that we are there.
        """
        now_s = _now_s()
        if self._has_heard:
            self._heard_s, self._has_heard = now_s, False
        if now_s - self._heard_s > ANSWER_S:
            raise psycopg.OperationalError(f"the server has said nothing for {ANSWER_S:g} s")
        if now_s - self._sent_s > STATUS_S:
            self.send_status(asks=True)
        loop, socket = asyncio.get_running_loop(), self._pg.socket
        loop.add_reader(socket, self._stirred.set)
        try:
            async with asyncio.timeout(timeout_s):
                await self._stirred.wait()
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(socket)
        self._stirred.clear()

    def stir(self) -> None:
        """Let ``wait`` return."""
        self._stirred.set()

    def heard(self) -> None:
        """Say that the server is there, or was not listened to."""
        self._has_heard = True

    def send_status(self, *, asks: bool = False) -> None:
        """Acknowledge the released log. asks: the server is to send its position."""
        self._sent_s = _now_s()
        # No time of ours: the server does nothing with it.
        seen, needed_lsn = max(self.seen_lsn, self.needed_lsn), self.needed_lsn
        said = _STATUS.pack(b"r", seen, needed_lsn, needed_lsn, 0, asks)
        self._pg.put_copy_data(said)
        self._pg.flush()  # the rest goes with the next one

    async def close(self) -> None:
        """Leave the server, which lets the slot go."""
        await self._connection.close()

    async def _start(self, command: str) -> None:
        self._pg.nonblocking = 1
        self._pg.send_query(command.encode())
        while self._pg.flush() or self._pg.is_busy():
            self._pg.consume_input()
            if self._pg.is_busy():
                await self.wait(ANSWER_S)
        result = self._pg.get_result()
        if result is None or result.status != ExecStatus.COPY_BOTH:
            raise _error(result, "the server does not send the slot's changes")


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _error(result: PGresult | None, otherwise: str) -> psycopg.Error:
    """Return the error message of a failed result."""
    said = result.error_field(DiagnosticField.MESSAGE_PRIMARY) if result else None
    text = said.decode(errors="replace") if said else otherwise
    state = result.error_field(DiagnosticField.SQLSTATE) if result else None
    try:
        kind = psycopg.errors.lookup((state or b"").decode())
    except KeyError:
        kind = psycopg.OperationalError
    return kind(text)
