"""What a connection to PostgreSQL is made with, and for how long it waits."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from ripple.connectors.postgres import answers
from ripple.connectors.postgres.session import connected
from ripple.connectors.postgres.uri import PostgresUri

LET_IN = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"


def test_a_server_that_vanishes_is_not_waited_for_without_end() -> None:
    with mock.patch.object(answers.Connection, "connect") as connect:
        connected(PostgresUri.parse("//localhost/market/trades"), "test")
    told = conninfo_to_dict(connect.call_args[0][0])
    assert told["tcp_user_timeout"] == "30000"
    assert told["keepalives_idle"] == "10"


@contextmanager
def silent(*let_in: int) -> Iterator[tuple[str, list[socket.socket]]]:
    """A server that lets those in and says nothing more; how it is reached, and who was there."""
    there: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.recv(1000)
            if len(there) in let_in:
                connection.sendall(LET_IN)
            there.append(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        port = listener.getsockname()[1]
        yield (
            f"host=127.0.0.1 port={port} user=me dbname=d sslmode=disable gssencmode=disable",
            there,
        )
        listener.shutdown(socket.SHUT_RDWR)
    for one in there:
        one.close()


async def test_a_server_that_takes_statements_and_never_answers_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "ANSWER_S", 0.1)
    monkeypatch.setattr(answers, "PROBE_S", 1)

    async def ask(settings: str) -> None:
        async with await answers.AsyncConnection.connect(settings) as one:
            await one.execute("SELECT 1")

    with silent(0, 1, 3) as (settings, there):
        with answers.Connection.connect(settings) as connection:
            connection.settings = settings
            with pytest.raises(psycopg.OperationalError, match="has said nothing for"):
                connection.execute("SELECT 1")
            assert connection.closed
        assert len(there) == 3, "it was waited for while it let others in"
        with pytest.raises(psycopg.OperationalError, match="has said nothing for"):
            await ask(settings)
