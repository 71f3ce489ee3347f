"""Plain subjects of a real server of NATS: read once, and what is missing is said."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest

from ripple.batch import Batch
from ripple.connectors.connector import Reading
from ripple.connectors.record_shape import RecordShape
from ripple.errors import InputError
from ripple.nats import subject
from ripple.nats.places import check_subject, open_subject
from ripple.nats.subject import LOST, SLOW
from ripple.records import checks_of, schema_of
from ripple.testing import Tick
from ripple.testing.connector_rows import ticks
from ripple.wire.liftbridge import Message, dumps, dumps_message
from tests.cli.processes import RIPPLE, ROOT
from tests.patience import PATIENCE_S
from tests.services.missing import MissingError, skip
from tests.services.nats_server import Nats

pytestmark = pytest.mark.services

READING = Reading("ticks", RecordShape(schema_of(Tick), checks_of(Tick)), 10)
ROWS = [json.dumps(one).encode() for one in ticks(0, 40)]
GOOD = [one["number"] for one in ticks(0, 40) if one["price"] > 0]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    try:
        server = Nats(tmp_path_factory.mktemp("nats") / "server")
    except MissingError as error:
        skip(error)
    with server, pytest.MonkeyPatch.context() as patched:
        patched.setenv("NATS_SERVER", server.address)
        patched.setenv("NATS_QUIET_S", "1")
        yield server


def send(server: Nats, to: str, messages: list[bytes]) -> None:
    async def sent() -> None:
        client = await nats.connect(f"nats://{server.address}")
        for one in messages:
            await client.publish(to, one)
        await client.flush()
        await client.close()

    asyncio.run(sent())


class Listening:
    """A source that is read in a thread of its own."""

    def __init__(self, path: str, reading: Reading = READING) -> None:
        self.batches: list[Batch] = []
        self.source = open_subject(path, reading)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        ends = time.monotonic() + 10
        while self.source._client is None or not self.source._client._subs:
            assert time.monotonic() < ends
            time.sleep(0.01)

    def _read(self) -> None:
        self.batches += self.source.batches()

    def ended(self) -> tuple[list[int], dict[int, str]]:
        """The numbers that came, and why others did not, by offset."""
        self._thread.join(30)
        assert not self._thread.is_alive()
        numbers = [number for one in self.batches for number in one.records["number"].to_pylist()]
        return numbers, {bad.offset: bad.reason for one in self.batches for bad in one.rejected}


def test_what_is_sent_while_somebody_listens_comes_once_and_in_order(server: Nats) -> None:
    before = {*threading.enumerate()}
    send(server, "ticks.a", ROWS[:3])  # nobody listens
    listening = Listening("ticks.*")
    envelope = dumps(dumps_message(Message(ROWS[0])))
    send(server, "ticks.a", [envelope, *ROWS[1:], b"no JSON", dumps(b"{}")])
    send(server, "other", ROWS)
    numbers, refused = listening.ended()
    assert numbers == GOOD
    assert {14, 31, 40, 41} == set(refused)
    assert refused[40] == "not a JSON record"
    assert "no Message" in refused[41]
    assert [one.next_offset for one in listening.batches][:4] == [10, 20, 30, 40]
    assert {*threading.enumerate()} <= before
    with pytest.raises(InputError, match="can be read once: record it with ripple log append"):
        next(listening.source.batches())


def test_a_connection_that_was_lost_is_said(server: Nats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATS_QUIET_S", "6")
    listening = Listening("lost")
    send(server, "lost", ROWS[:5])
    time.sleep(0.3)
    server.kill()
    server.start()
    ends = time.monotonic() + 20
    while time.monotonic() < ends and not any(one.rejected for one in listening.batches):
        time.sleep(0.1)
    send(server, "lost", ROWS[5:8])
    numbers, refused = listening.ended()
    assert numbers == list(range(8))
    assert refused == {5: LOST}


def test_what_comes_too_quickly_is_bounded_and_said(
    server: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "AHEAD_MESSAGES_MAX", 20)
    source = open_subject("fast", READING)
    batches = source.batches()
    threading.Timer(0.5, send, (server, "fast", ROWS[:10])).start()
    first = next(batches)  # and then nobody asks
    send(server, "fast", ROWS * 20)
    time.sleep(0.5)
    rest = list(batches)
    assert first.records["number"].to_pylist() == list(range(10))
    assert SLOW in {bad.reason for one in rest for bad in one.rejected}
    assert sum(one.records.num_rows for one in rest) < 100


def test_a_subject_is_recorded_by_the_command(server: Nats, tmp_path: Path) -> None:
    record = "import ripple as rp\nfrom ripple.testing import Tick\n"
    (tmp_path / "ticks.py").write_text(record)
    environment = ["env", "-C", str(tmp_path), f"PYTHONPATH={ROOT}"]
    pipeline = """
pipeline = (
    rp.Pipeline("sizes")
    .source("ticks", Tick)
    .partition("by-name", key="name")
    .fold("sizes", ticks=rp.count())
    .sink("out")
)
"""
    (tmp_path / "sizes.py").write_text(record + pipeline)
    asked = ["run", "sizes.py", "--source", "nats-subject:orders.>"]
    kept = subprocess.run(
        [*environment, *RIPPLE, *asked, "--sink", "out.csv", "--checkpoint-dir", "kept"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert kept.returncode == 1
    assert "needs a source that can be read again, not 'nats-subject:orders.>'" in kept.stderr
    listening = ["env", "NATS_QUIET_S=3", *environment, *RIPPLE, *asked, "--sink", "-"]
    run = subprocess.Popen(listening, stdout=subprocess.PIPE, text=True)
    ends = time.monotonic() + 30
    while run.poll() is None and time.monotonic() < ends:
        send(server, "orders.eu.x", ROWS[:1])
        time.sleep(0.5)
        if time.monotonic() > ends - 26:
            break
    said, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0
    assert said.startswith("N0,")


def test_places(server: Nats) -> None:
    assert "a server of NATS answers" in check_subject("a.>")
    for wrong in ("", "a..b", "a.>.b", "a b", ".a", "a*", "//h/"):
        with pytest.raises(InputError, match=r"cannot tell which subject nats-subject:"):
            open_subject(wrong, READING)
    with pytest.raises(InputError, match=r"nats-subject://127\.0\.0\.1:1/x: "):
        list(open_subject("//127.0.0.1:1/x", READING).batches())
    assert server.is_running
