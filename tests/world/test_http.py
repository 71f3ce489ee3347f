"""Clients with credentials follow no redirect to another server."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from unittest import mock

import pytest

from ripple.connectors.formats.registry import Registry, RegistryError
from ripple.connectors.kafka.settings import TokenSource
from ripple.connectors.kafka.tokens import TokenError, Tokens
from ripple.control.telemetry.tracing import Tracing
from ripple.world.http import ask, origin_of


class _Server(ThreadingHTTPServer):
    """Sends everybody elsewhere, or answers with an object; keeps what was asked."""

    def __init__(self, location: str = "", status: int = 302) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        self.location, self.status = location, status
        self.seen: list[tuple[str, str]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Asked(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.path, str(self.headers)))
        is_sent_on = self.server.location and self.path != "/here"
        self.send_response(self.server.status if is_sent_on else 200)
        if is_sent_on:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_GET  # noqa: N815 - by the method's name

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(server: _Server) -> Iterator[_Server]:
    with server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def ask_registry(address: str) -> None:
    with pytest.raises(RegistryError, match=r"it redirects to http://127.0.0.1:\d+.*: name that"):
        Registry(f"http://{address}", user="me", password="hush").schema(1)


def ask_issuer(address: str) -> None:
    with pytest.raises(TokenError, match=r"it redirects to http://127.0.0.1:\d+.*: name that"):
        Tokens(TokenSource("", f"http://{address}/token", "me", "hush")).token()


def send_trace(address: str) -> None:
    given = {"OTEL_EXPORTER_OTLP_HEADERS": "x-api-key=hush"}
    with mock.patch.dict("os.environ", given):
        tracing = Tracing(f"http://{address}/v1/traces", "w1/0", "p", lambda: 10**12)
    spans = tracing.begin((), is_first=True, stage=0, partition=0, rows=1)
    assert spans is not None
    spans.end(1)
    tracing.close()


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("client", [ask_registry, ask_issuer, send_trace])
def test_no_other_server_learns_what_was_shown_to_one(client: object, status: int) -> None:
    with serving(_Server()) as other:
        sends_on = _Server(f"http://{other.address}/stolen", status)
        with serving(sends_on):
            client(sends_on.address)  # type: ignore[operator]
        assert sends_on.seen
        assert other.seen == []


def test_a_server_may_send_on_to_itself() -> None:
    with serving(_Server("/here")) as server:
        registry = Registry(f"http://{server.address}", user="me", password="hush")
        with pytest.raises(RegistryError, match="is no schema"):
            registry.schema(1)
        assert [path for path, _ in server.seen] == ["/schemas/ids/1", "/here"]


def test_origins_are_told_without_what_may_be_secret() -> None:
    assert origin_of("https://me:hush@Host/p?token=x") == "https://host:443"
    assert origin_of("http://[::1]:80/") == origin_of("http://[::1]/")
    assert origin_of("http://h:x/") == "http://h:0"


@pytest.mark.parametrize("first", [b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b""])
def test_a_server_that_goes_on_byte_by_byte_is_waited_for_as_long_as_any(first: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            peer, _ = listener.accept()
            with peer, suppress(OSError):
                peer.sendall(first)
                while True:
                    peer.sendall(b"x")
                    sleep(0.01)

        threading.Thread(target=drip, daemon=True).start()
        request = urllib.request.Request(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        with pytest.raises(TimeoutError, match="no whole answer"):
            ask(request, 0.3, 1 << 20)


def test_server_that_speaks_no_http_is_a_connection_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(1 << 16)
                peer.sendall(b"SSH-2.0\r\n")

        threading.Thread(target=answer, daemon=True).start()
        request = urllib.request.Request(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        with pytest.raises(ConnectionError, match="no answer of HTTP: BadStatusLine"):
            ask(request, 10, 1 << 20)
