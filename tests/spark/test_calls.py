"""Processes of a query answer each other in time or not at all, and nobody else."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from ripple.spark.driver import Driver
from ripple.spark.sealed import ForgedError, sealed, unsealed
from ripple.spark.streaming import calls, resident
from ripple.spark.streaming.hints import HintReceiver, Hints
from tests.patience import until

HOST = "127.0.0.1"
STOP = {"trades/0": 5}


class Lives:
    """What lives in this process, as far as calls see it."""

    def __init__(self) -> None:
        self.answers: dict[int, Any] = {1: {"epoch": 3}, 2: OSError("the disk is full")}

    async def advance(self, token: str, partition: int, stop: Any) -> Any:
        assert stop == STOP
        found = self.answers.get(partition)
        if isinstance(found, Exception):
            raise found
        return found

    def run(self, work: Any) -> Any:
        return resident.here().run(work)


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> tuple[str, int]:
    lives = Lives()
    monkeypatch.setattr(calls, "here", lambda: lives)
    return calls.served(request.node.name, HOST)


def ask(request: pytest.FixtureRequest, at: tuple[str, int], partition: int) -> Any:
    return calls.asked(at, request.node.name, partition, STOP)


def test_process_reports_whether_it_has_a_partition(
    address: tuple[str, int], request: pytest.FixtureRequest
) -> None:
    assert ask(request, address, 1) == {"epoch": 3}
    assert ask(request, address, 9) is None
    with pytest.raises(calls.ElsewhereError, match=r"^OSError: the disk is full$"):
        ask(request, address, 2)
    assert calls.asked(address, "another token", 1, STOP) is None


def test_silent_and_invalid_connections_do_not_block_others(
    address: tuple[str, int], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    class Ran:
        def __reduce__(self) -> Any:
            return ran.append, (1,)

    junk = [b"", bytes(32) + b"\xff" * 64, bytes(32) + pickle.dumps(Ran()), b"GET / HTTP/1.1\r\n"]
    with ExitStack() as silent:
        for at in range(2 * calls.STRANGERS_MAX):
            one = silent.enter_context(socket.create_connection(address))
            one.sendall(junk[at % len(junk)])
        assert ask(request, address, 1) == {"epoch": 3}
        one.settimeout(60)
        oldest_go = socket.create_connection(address)  # the next ones push it out
        silent.enter_context(oldest_go)
        for _ in range(calls.STRANGERS_MAX):
            silent.enter_context(socket.create_connection(address))
        oldest_go.settimeout(60)
        while oldest_go.recv(64):
            pass
    monkeypatch.setattr(calls, "PROOF_S", 0.05)
    with socket.create_connection(address) as one:
        one.settimeout(60)
        while one.recv(64):  # it is let go, though it would stay for ever
            pass
    assert not ran


FROZEN = """
import sys
from ripple.spark.streaming import calls
print(calls.served(sys.argv[1], "127.0.0.1")[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def frozen() -> Iterator[tuple[str, int]]:
    process = subprocess.Popen(
        [sys.executable, "-c", FROZEN, "token"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdout is not None
    port = int(process.stdout.readline())
    process.send_signal(signal.SIGSTOP)
    yield HOST, port
    process.kill()
    process.communicate()


def test_a_process_that_is_frozen_is_not_waited_for(
    frozen: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "SILENCE_S", 0.2)
    assert calls.asked(frozen, "token", 1, STOP) is None


def test_a_peer_that_trickles_bytes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "SILENCE_S", 0.2)
    with socket.create_server((HOST, 0)) as server:

        def trickle() -> None:
            stream, _ = server.accept()
            with stream, suppress(OSError):  # until the other side has left
                stream.sendall(bytes(32) + (1 << 20).to_bytes(4, "big"))
                while True:
                    stream.sendall(b"x")
                    time.sleep(0.01)

        trickling = threading.Thread(target=trickle)
        trickling.start()
        assert calls.asked(server.getsockname(), "token", 1, STOP) is None
        trickling.join()


def test_a_work_that_takes_longer_than_silence_may_is_waited_for(
    address: tuple[str, int], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    async def slowly(*_: Any) -> Any:
        await asyncio.sleep(0.5)
        return {"epoch": 4}

    monkeypatch.setattr(calls, "BEAT_S", 0.02)
    monkeypatch.setattr(calls, "SILENCE_S", 0.3)
    monkeypatch.setattr(calls.here(), "advance", slowly)
    assert ask(request, address, 1) == {"epoch": 4}


def test_sealed_message_is_valid_once_and_in_its_context_only() -> None:
    data = sealed("key", b"here", {"a": 1})
    assert unsealed("key", b"here", data) == {"a": 1}
    for key, about, said in [
        ("other", b"here", data),
        ("key", b"there", data),
        ("key", b"here", data[:-1] + b" "),
        ("key", b"here", b""),
    ]:
        with pytest.raises(ForgedError):
            unsealed(key, about, said)


def test_hint_reveals_no_token_and_forged_or_old_ones_are_ignored() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        ear.bind((HOST, 0))
        hint_receiver = HintReceiver(HOST, ear.getsockname()[1], "f00d" * 8)
        hint_receiver.send(3, 2, (HOST, 1234))
        said = ear.recv(999)
    assert b"f00d" not in said
    hints = Hints(Driver(HOST, HOST))
    own = hints.hint_receiver
    own.send(3, 2, (HOST, 1234))
    own.send(3, 1, (HOST, 9))  # said again, of before it moved
    HintReceiver(own.host, own.port, "f00d" * 8).send(3, 3, (HOST, 9))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.sendto(said, (own.host, own.port))
        way.sendto(b"[]", (own.host, own.port))
    own.send(4, 1, (HOST, 5))
    until(lambda: 4 in hints.known)
    assert hints.known == {3: (HOST, 1234), 4: (HOST, 5)}
