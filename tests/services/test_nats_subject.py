"""Plain subjects of a real server of NATS: read once, with known gaps reported."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client

from ripple.connectors.connector import Reading
from ripple.connectors.nats import subject
from ripple.connectors.nats.envelope import Message, dumps, dumps_message
from ripple.connectors.nats.opening import check_subject, open_subject
from ripple.connectors.nats.subject import LOST, SLOW
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.model.records import checks_of, schema_of
from ripple.testing import Tick
from ripple.testing.connectors.rows import ticks
from tests.cli.processes import RIPPLE, ROOT
from tests.patience import PATIENCE_S, PAUSE_S, until
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
        patched.setenv("NATS_QUIET_S", f"{PATIENCE_S:.0f}")
        yield server


def send(server: Nats, to: str, messages: list[bytes], *, is_heard: bool = True) -> None:
    """Send messages. is_heard: the first of them as often as nobody has subscribed."""

    async def sent() -> None:
        client = await nats.connect(f"nats://{server.address}", connect_timeout=PATIENCE_S)
        unheard = await client.subscribe(client.new_inbox())
        while is_heard:
            await client.publish(to, messages[0], reply=unheard.subject)
            await taken(client)
            if not unheard.pending_msgs:
                break
            await unheard.next_msg()
            await asyncio.sleep(PAUSE_S)
        for one in messages[is_heard:]:
            await client.publish(to, one)
        await taken(client)
        await client.close()

    asyncio.run(asyncio.wait_for(sent(), PATIENCE_S))


async def taken(client: Client) -> None:
    """Wait until the server has taken, and answered, all that was sent."""
    for _ in range(2):  # the ping of the first one overtakes what waits to be sent
        await client.flush(int(PATIENCE_S))


class Listening:
    """A source that is read in a thread of its own, until it has come to an offset."""

    def __init__(self, path: str, end: int) -> None:
        self.batches: list[Batch] = []
        self.source = open_subject(path, READING)
        self._end = end
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        for one in self.source.batches():
            self.batches.append(one)
            if one.next_offset >= self._end:
                self.source.close()

    def has(self, offset: int) -> bool:
        """Whether what is before an offset has come."""
        return any(one.next_offset >= offset for one in self.batches)

    def ended(self) -> tuple[list[int], dict[int, str]]:
        """The numbers that came, and why others did not, by offset."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        numbers = [number for one in self.batches for number in numbers_of(one)]
        return numbers, {bad.offset: bad.reason for one in self.batches for bad in one.rejected}


def numbers_of(batch: Batch) -> list[int]:
    numbers: list[int] = batch.records["number"].to_pylist()
    return numbers


def test_messages_during_a_subscription_come_once_and_in_order(server: Nats) -> None:
    before = {*threading.enumerate()}
    send(server, "ticks.a", ROWS[:3], is_heard=False)
    listening = Listening("ticks.*", 42)
    send(server, "ticks.a", [dumps(dumps_message(Message(ROWS[0]))), *ROWS[1:20]])
    send(server, "other", ROWS, is_heard=False)
    send(server, "ticks.a", [*ROWS[20:], b"no JSON", dumps(b"{}")])
    numbers, refused = listening.ended()
    assert numbers == GOOD
    assert {14, 31, 40, 41} == set(refused)
    assert refused[40] == "not a JSON record"
    assert "no Message" in refused[41]
    ends = [0, *(one.next_offset for one in listening.batches)]
    assert all(end <= start // 10 * 10 + 10 for start, end in pairwise(ends))
    assert {*threading.enumerate()} <= before
    with pytest.raises(InputError, match="can be read once: record it with ripple log append"):
        next(listening.source.batches())


def test_batches_are_full_while_messages_come(
    server: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "WAIT_S", PATIENCE_S)
    listening = Listening("many", 40)
    send(server, "many", ROWS)
    numbers, _ = listening.ended()
    assert numbers == GOOD
    assert [one.next_offset for one in listening.batches] == [10, 20, 30, 40]


@pytest.mark.usefixtures("server")
def test_a_subject_where_nothing_comes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATS_QUIET_S", "1")
    assert list(open_subject("quiet", READING).batches()) == []


def test_a_connection_that_was_lost_is_said(server: Nats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "DELAYS_S", (0.1,) * 1000)
    listening = Listening("lost", 9)
    send(server, "lost", ROWS[:5])
    until(lambda: listening.has(5))
    server.kill()
    server.start()
    until(lambda: listening.has(6))
    send(server, "lost", ROWS[5:8])
    numbers, refused = listening.ended()
    assert numbers == list(range(8))
    assert refused == {5: LOST}


def test_overflow_is_bounded_and_reported(server: Nats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "AHEAD_MESSAGES_MAX", 20)
    source = open_subject("fast", READING)
    batches = source.batches()
    sending = threading.Thread(target=send, args=(server, "fast", ROWS[:10]))
    sending.start()
    first = numbers_of(next(batches))
    while len(first) < 10:
        first += numbers_of(next(batches))
    sending.join()
    send(server, "fast", ROWS * 20)  # and nobody asks
    client = source._client
    assert client is not None
    until(lambda: client.stats["in_msgs"] == 810)
    source._quiet_s = 1.0  # it ends when what it has kept was read
    rest = list(batches)
    assert first == list(range(10))
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
    listening = ["env", "NATS_QUIET_S=10", *environment, *RIPPLE, *asked, "--sink", "-"]
    run = subprocess.Popen(listening, stdout=subprocess.PIPE, text=True)
    send(server, "orders.eu.x", ROWS[:1])
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
