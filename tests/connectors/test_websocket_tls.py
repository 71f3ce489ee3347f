"""TLS sockets of feeds, with one thread reading and another one writing and closing."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import pytest

from ripple.connectors.websocket.tls import SharedSocket, shared
from tests.patience import PATIENCE_S
from tests.services.certificate import certified

Pair = tuple[ssl.SSLSocket, ssl.SSLSocket]


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    threads = ThreadPoolExecutor()
    yield threads
    threads.shutdown(wait=False)


@pytest.fixture
def ends(tmp_path: Path, threads: ThreadPoolExecutor) -> Iterator[Pair]:
    """Yield the two ends of a connection, the client's first."""
    key, certificate = certified(tmp_path)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate, key)
    asking = shared(ssl.create_default_context(cafile=str(certificate)))
    ours, theirs = socket.socketpair()
    accepted = threads.submit(serving.wrap_socket, theirs, server_side=True)
    with (
        asking.wrap_socket(ours, server_hostname="127.0.0.1") as client,
        closing(accepted.result(PATIENCE_S)) as server,
    ):
        yield client, server


def received(threads: ThreadPoolExecutor, client: ssl.SSLSocket) -> Future[bytes]:
    """Return the bytes received by a thread, once it has begun."""
    begun = threading.Event()

    def receive() -> bytes:
        begun.set()
        return client.recv(100)

    receiving = threads.submit(receive)
    assert begun.wait(PATIENCE_S)
    return receiving


def test_what_is_written_while_a_thread_reads_is_answered(
    ends: Pair, threads: ThreadPoolExecutor
) -> None:
    client, server = ends
    assert isinstance(client, SharedSocket)
    for number in range(100):
        answer = received(threads, client)
        client.sendall(b"%d" % number)
        assert server.recv(100) == b"%d" % number
        server.sendall(b"answer %d" % number)
        assert answer.result(PATIENCE_S) == b"answer %d" % number


def test_more_is_written_than_the_network_takes_at_once(
    ends: Pair, threads: ThreadPoolExecutor
) -> None:
    client, server = ends
    much = bytes(8 << 20)
    sent = threads.submit(client.sendall, much)
    count = 0
    while count < len(much):
        count += len(server.recv(1 << 16))
    assert sent.result(PATIENCE_S) is None


def test_a_thread_that_reads_ends_when_another_one_closes_the_socket(
    ends: Pair, threads: ThreadPoolExecutor
) -> None:
    client, _ = ends
    answer = received(threads, client)
    client.close()
    assert wait([answer], PATIENCE_S).done == {answer}


def test_a_reader_is_told_the_end(ends: Pair, threads: ThreadPoolExecutor) -> None:
    client, server = ends
    answer = received(threads, client)
    server.close()
    assert answer.result(PATIENCE_S) == b""
