"""Changes in streams of a real server of Liftbridge, each of which it has acknowledged."""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ripple.connectors.connector import Writing
from ripple.connectors.nats import liftbridge
from ripple.connectors.nats.opening import check_liftbridge, liftbridge_sink
from ripple.connectors.registry import own
from ripple.core.errors import OutputError
from ripple.testing import sink_suite
from ripple.testing.connectors.rows import OUTPUT, PLAN, changes, reached
from tests.patience import PATIENCE_S, until
from tests.services.liftbridge_server import Liftbridge
from tests.services.missing import MissingError, skip
from tests.services.nats_server import Nats

pytestmark = pytest.mark.services

WRITING = Writing(PLAN, OUTPUT)
RUNNING: list[Liftbridge] = []


@pytest.fixture(scope="module", autouse=True)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Liftbridge]:
    folder = tmp_path_factory.mktemp("liftbridge")
    try:
        nats = Nats(folder / "nats")
        server = Liftbridge(folder / "server", nats.address)
    except MissingError as error:
        skip(error)
    with nats, server, pytest.MonkeyPatch.context() as patched:
        patched.setenv("NATS_SERVER", nats.address)
        RUNNING.append(server)
        yield server
    RUNNING.clear()


def place(folder: Path) -> str:
    subject = f"s{zlib.crc32(str(folder).encode()):08x}"
    until(lambda: RUNNING[0].create(subject))
    return subject


def read(subject: str) -> list[dict[str, Any]]:
    return [json.loads(one.value) for one in RUNNING[0].messages(subject)]


TestSink = sink_suite(own()["liftbridge"], place, read, once=False)
TestPlainSink = sink_suite(own()["liftbridge"], place, read, plain=True)


def test_rows_are_there_in_their_order_once_write_returns(tmp_path: Path) -> None:
    subject = place(tmp_path)
    sink = liftbridge_sink(subject, WRITING)
    sink.write(changes(3), reached(3))
    assert [row["number"] for row in read(subject)] == [300 + row for row in range(40)]
    assert "a server of NATS answers" in check_liftbridge(subject)
    sink.close()
    with pytest.raises(OutputError, match="it is closed"):
        sink.write(changes(3), reached(3))


def test_unacknowledged_messages_are_sent_after_an_outage(
    server: Liftbridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liftbridge, "ANSWER_S", 1.0)
    monkeypatch.setattr(liftbridge, "TRIES", int(PATIENCE_S))
    subject = place(tmp_path)
    sink = liftbridge_sink(subject, WRITING)
    sink.write(changes(0), reached(0))
    server.kill()
    writing = threading.Thread(target=sink.write, args=(changes(3), reached(3)))
    writing.start()
    time.sleep(0.5)
    assert writing.is_alive(), "nobody has acknowledged it"
    server.start()
    writing.join(PATIENCE_S)
    assert not writing.is_alive()
    sink.close()
    newest = {row["name"]: row["number"] for row in read(subject)}
    assert newest == {f"S{row}": 300 + row for row in range(40)}


def test_a_subject_without_a_stream_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liftbridge, "ANSWER_S", 0.2)
    monkeypatch.setattr(liftbridge, "TRIES", 2)
    sink = liftbridge_sink("nobody", WRITING)
    with pytest.raises(OutputError, match="no server acknowledges 40 of 40 messages: is there a"):
        sink.write(changes(3), reached(3))
    sink.close()
    with pytest.raises(OutputError, match="cannot tell which subject liftbridge:a"):
        liftbridge_sink("a.*", WRITING)
