"""What a connection to PostgreSQL is made with."""

from __future__ import annotations

from unittest import mock

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ripple.connectors.postgres.place import PostgresPlace
from ripple.connectors.postgres.session import connected


def test_a_server_that_vanishes_is_not_waited_for_without_end() -> None:
    with mock.patch.object(psycopg, "connect") as connect:
        connected(PostgresPlace.parse("//localhost/market/trades"), "test")
    told = conninfo_to_dict(connect.call_args[0][0])
    assert told["tcp_user_timeout"] == "30000"
    assert told["keepalives_idle"] == "10"
