"""Where TLS is demanded no client says who it is to a server that speaks none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlparse

import pytest
from nats.aio.client import Srv
from websockets.sync.server import ServerConnection, serve

from ripple.cli.lib.silence import is_silence
from ripple.connectors.connector import Reading
from ripple.connectors.installed import load
from ripple.connectors.nats import session
from ripple.connectors.nats.uri import NatsUri
from ripple.connectors.postgres.uri import PostgresUri
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.registry import own
from ripple.connectors.websocket.source import open_plain
from ripple.core.errors import RippleError
from ripple.model.records import checks_of, schema_of
from ripple.testing import Tick

SECRET = "never-said"
INFO = b'INFO {"server_id":"x","version":"2.15.1","proto":1,"max_payload":1048576}\r\n'
CLIENTS = {
    "nats": (INFO, {"NATS_TLS": "true", "NATS_USER": SECRET, "NATS_PASSWORD": SECRET}),
    "redis": (b"-ERR\r\n", {"REDIS_TLS": "true", "REDIS_USER": SECRET, "REDIS_PASSWORD": SECRET}),
    "postgres": (
        b"N",
        {"PGSSLMODE": "require", "PGUSER": SECRET, "PGPASSWORD": SECRET, "PGDATABASE": SECRET},
    ),
    "wss": (
        b"HTTP/1.1 101 Switching\r\n\r\n",
        {"WS_AUTHORIZATION": SECRET, "WS_SUBSCRIBE": SECRET},
    ),
}
PLACES = {
    "nats": "//{}/stream",
    "redis": "//{}/stream",
    "postgres": "//{}/market/trades",
    "wss": "//{}/feed",
}


@contextmanager
def listening(answer: bytes, *, is_first: bool) -> Iterator[tuple[str, list[bytes]]]:
    """Serve plain bytes: ``answer``, at once or when something has come; yield what is heard."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    peer, _ = listener.accept()
                    threading.Thread(target=hear, args=(peer,), daemon=True).start()

        def hear(peer: socket.socket) -> None:
            with suppress(OSError), peer:
                if is_first:
                    peer.sendall(answer)
                while data := peer.recv(65536):
                    heard.append(data)
                    if not is_first or b"PING" in data:
                        peer.sendall(b"PONG\r\n" if is_first else answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", heard
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def checked(scheme: str, address: str) -> None:
    connector = own()[scheme]
    load(scheme, connector.package, connector.check)(PLACES[scheme].format(address))


@pytest.mark.parametrize("scheme", CLIENTS)
def test_no_credentials_are_sent_to_a_server_without_tls(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, given = CLIENTS[scheme]
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with listening(answer, is_first=answer is INFO) as (address, heard):
        with pytest.raises(RippleError) as refused:
            checked(scheme, address)
        assert heard or answer is INFO
        assert SECRET.encode() not in b"".join(heard)
    assert SECRET not in str(refused.value)
    assert not is_silence(refused.value)  # which somebody who answers is not


def test_server_of_another_protocol_is_an_error_of_one_short_line() -> None:
    with (
        listening(INFO, is_first=False) as (address, _),
        pytest.raises(RippleError, match="does not speak the protocol of Redis") as refused,
    ):
        checked("redis", address)
    assert "server_id" not in str(refused.value)


def test_no_credentials_are_sent_to_the_target_of_a_redirect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[object] = []

    def feed(connection: ServerConnection) -> None:
        heard.append(dict(connection.request.headers) if connection.request else "")
        heard.extend(connection)

    monkeypatch.setenv("WS_AUTHORIZATION", SECRET)
    monkeypatch.setenv("WS_SUBSCRIBE", SECRET)
    reading = Reading("ticks", RecordShape(schema_of(Tick), checks_of(Tick)), 10)
    with serve(feed, "127.0.0.1", 0) as elsewhere:
        thread = threading.Thread(target=elsewhere.serve_forever, daemon=True)
        thread.start()
        port = elsewhere.socket.getsockname()[1]
        told = ("HTTP/1.1 302 Found", f"Location: ws://127.0.0.1:{port}/", "Content-Length: 0")
        moved = "\r\n".join((*told, "", "")).encode()
        with listening(moved, is_first=False) as (address, _):
            source = open_plain(f"//{address}/feed", reading)
            with pytest.raises(RippleError, match=f"redirects to 127.0.0.1:{port}"):
                next(source.batches())
            source.close()
        elsewhere.shutdown()
        thread.join()
    assert SECRET not in str(heard)


def test_files_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_TLS", "true")
    monkeypatch.setenv("NATS_TLS", "true")
    for scheme, prefix in (("redis", "REDIS"), ("nats", "NATS"), ("wss", "WS")):
        for kind in ("CA", "CERT") if scheme != "wss" else ("CA",):
            with monkeypatch.context() as patched:
                patched.setenv(f"{prefix}_{kind}", "absent.pem")
                with pytest.raises(RippleError, match=rf"{prefix}_{kind}.*absent\.pem.*No such"):
                    checked(scheme, "127.0.0.1:1")


def test_tables_elsewhere_are_reached_by_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = PostgresUri.parse("t"), PostgresUri.parse("//db.example.com/db/t")
    for place, said, is_demanded in (
        (here, {}, False),
        (PostgresUri.parse("//me@[::1]:5433/db/s.t"), {}, False),
        (there, {}, True),
        (here, {"host": "db.example.com", "sslmode": "prefer"}, True),
        (here, {"host": "localhost,db.example.com"}, True),
        (here, {"hostaddr": "10.0.0.1"}, True),
        (here, {"host": "localhost", "hostaddr": "10.0.0.1"}, True),
        (here, {"host": "/run/postgresql"}, False),
        (there, {"sslmode": "require"}, False),
    ):
        assert ("sslmode" in place.settings(said)) == is_demanded, said
    assert there.settings({"sslrootcert": "own.crt"}).get("sslrootcert") is None
    monkeypatch.setenv("PGSSLMODE", "prefer")
    assert "sslmode" not in there.settings({})


async def test_server_named_in_clear_text_must_show_the_configured_certificate() -> None:
    client = session._Client()
    client.place = NatsUri.parse("//nats.example:4222/s")
    known = Srv(urlparse("nats://nats.example:4222"))
    client.options = {"dont_randomize": True}
    client._current_server, client._server_pool = known, [known]
    info = {"tls_available": True, "connect_urls": ["elsewhere.example:4222"]}
    await client._process_info(dict(info), initial_connection=True)
    assert [one.tls_name for one in client._server_pool] == [None, "nats.example"]
    later = {"connect_urls": ["another.example:4222"]}  # over TLS
    await client._process_info(later)
    assert [one.tls_name for one in client._server_pool] == [None, "nats.example", None]
