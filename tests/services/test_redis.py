"""Streams of a real server of Redis: the contract, trimmed streams, killed servers, killed runs."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from ripple.connectors.connector import Reading
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.redis import inputs
from ripple.connectors.redis.opening import discover, open_inputs
from ripple.connectors.redis.page import page_of
from ripple.connectors.redis.uri import RedisUri
from ripple.connectors.registry import own
from ripple.core.errors import InputError
from ripple.model.records import checks_of, schema_of
from ripple.testing import Tick, source_suite
from ripple.testing.connectors.rows import ticks
from tests.cli.processes import RIPPLE, ROOT
from tests.one_shot import one_shot
from tests.patience import PATIENCE_S
from tests.services.missing import MissingError, skip
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.services

RUNNING: list[RedisServer] = []
READING = Reading("ticks", RecordShape(schema_of(Tick), checks_of(Tick)), 10)
PIPELINE = """
import ripple as rp
from ripple.testing import Tick

pipeline = (
    rp.Pipeline("sizes")
    .source("ticks", Tick)
    .partition("by-name", key="name")
    .fold("sizes", number=rp.last("number"), ticks=rp.count())
    .sink("out")
)
"""


@pytest.fixture(scope="module", autouse=True)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    try:
        server = RedisServer(tmp_path_factory.mktemp("redis") / "server")
    except MissingError as error:
        skip(error)
    with server, pytest.MonkeyPatch.context() as patched:
        patched.setenv("REDIS_SERVER", server.address)
        RUNNING.append(server)
        yield server
    RUNNING.clear()


def client() -> Any:
    return Redis(port=RUNNING[0].port)


def add(stream: str, entries: list[dict[str, Any]]) -> None:
    with client() as redis:
        for first in range(0, len(entries), 1000):
            with redis.pipeline(transaction=False) as pipeline:
                for entry in entries[first : first + 1000]:
                    pipeline.xadd(stream, entry)
                pipeline.execute()


def named(folder: Path) -> str:
    return f"s{zlib.crc32(str(folder).encode()):08x}"


def put(folder: Path, rows: list[dict[str, Any]]) -> str:
    stream = named(folder)
    add(stream, [{"record": json.dumps(row)} for row in rows])
    return stream


def remake(folder: Path) -> None:
    """Let another stream have the name, longer than what was read."""
    with client() as redis:
        redis.delete(named(folder))
    put(folder, ticks(0, 150))


def overtake(folder: Path) -> None:
    """Remove what was not read yet, and more."""
    stream = named(folder)
    with client() as redis, redis.pipeline(transaction=True) as pipeline:
        for row in ticks(100, 150):
            pipeline.xadd(stream, {"record": json.dumps(row)})
        pipeline.xtrim(stream, maxlen=20, approximate=False)
        pipeline.execute()


def cut_back(folder: Path) -> None:
    """Let the end be lost, and others come in its place."""
    stream = named(folder)
    with client() as redis, redis.pipeline(transaction=True) as pipeline:
        kept = redis.xrange(stream)[:80]
        pipeline.delete(stream)
        for id_, fields in kept:
            pipeline.xadd(stream, fields, id_)
        for row in ticks(0, 40):
            pipeline.xadd(stream, {"record": json.dumps(row)})
        pipeline.execute()


@contextmanager
def killed(folder: Path) -> Iterator[None]:
    RUNNING[0].kill()
    yield
    RUNNING[0].start()


CHANGES = {"made anew": remake, "overtaken": overtake, "cut back": cut_back}

TestRedis = source_suite(own()["redis"], put, changes=CHANGES, away=killed)


def test_any_name_can_be_written() -> None:
    for key, written in (
        (b"orders/eu", "orders%2Feu"),
        (b"a b?c@d%", "a%20b%3Fc%40d%25"),
        ("é".encode(), "é"),
        (b"\xff{a}:b-c_d.e", "%FF{a}:b-c_d.e"),
    ):
        with client() as redis:
            redis.xadd(key, {"record": json.dumps(next(iter(ticks(0, 1))))})
        assert rows_of(written) == ([0], [], 1)
        place = RedisUri.written(RUNNING[0].address, key)
        assert RedisUri.parse(place.removeprefix("redis:")).key == key
        assert place in [one.place for one in discover("any")]
        with client() as redis:
            redis.delete(key)
    with pytest.raises(InputError, match="%2F for /"):
        RedisUri.parse("orders/eu")


def test_a_key_that_is_no_stream_is_an_error(tmp_path: Path) -> None:
    with client() as redis:
        redis.set(named(tmp_path), "text")
    with pytest.raises(InputError, match="something else of that name, which is no stream"):
        rows_of(named(tmp_path))


def test_pages_are_bounded_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    async def noted(client: Any, place: RedisUri, after: bytes, count: int) -> Any:
        asked.append(count)
        return await page_of(client, place, after, count)

    monkeypatch.setattr(inputs, "page_of", noted)
    add(named(tmp_path), [{"record": "x" * (1 << 20)}] * 40)
    assert len(rows_of(named(tmp_path))[1]) == 40
    assert max(asked) <= inputs.FIRST_PAGE
    assert asked.count(8) >= 3


def rows_of(stream: str, from_offset: int | None = None) -> tuple[list[int], list[int], int]:
    """The numbers that a source gives, the offsets that it refuses, and where it ends."""
    batches = list(one_shot(open_inputs, stream, READING, from_offset))
    numbers = [number for one in batches for number in one.records["number"].to_pylist()]
    return numbers, [bad.offset for one in batches for bad in one.rejected], batches[-1].next_offset


def good(first: int, end: int) -> list[int]:
    return [one["number"] for one in ticks(0, end)[first:] if one["price"] > 0]


def test_a_trimmed_stream_begins_later_and_entries_keep_their_offsets(tmp_path: Path) -> None:
    stream = put(tmp_path, ticks(0, 40))
    with client() as redis:
        assert redis.xtrim(stream, maxlen=25, approximate=False) == 15
    assert rows_of(stream) == (good(15, 40), [31], 40)
    assert rows_of(stream, 20) == (good(20, 40), [31], 40)


def test_entries_deleted_from_the_middle_are_an_error(tmp_path: Path) -> None:
    stream = put(tmp_path, ticks(0, 10))
    with client() as redis:
        third = redis.xrange(stream)[2][0]
        redis.xdel(stream, third)
    with pytest.raises(InputError, match=r"deleted out of its middle \(XDEL\)"):
        rows_of(stream)


def test_entries_may_have_the_fields_of_records(tmp_path: Path) -> None:
    stream = f"{put(tmp_path, ticks(0, 1))}:fields"
    rows = [
        {name: value for name, value in one.items() if value is not None} for one in ticks(0, 20)
    ]
    add(stream, [{**row, "name": f'"{row["name"]}"'} for row in rows[:19]])
    add(stream, [{**rows[19], "price": "dear"}, {**rows[19], "name": b"\xff"}])
    (batch,) = one_shot(open_inputs, stream, Reading("ticks", READING.shape, 100))
    names = [f'"{one["name"]}"' for one in rows[:19] if one["price"] > 0]
    assert batch.records["name"].to_pylist() == names
    assert batch.records["number"].to_pylist() == good(0, 19)
    told = {bad.offset: bad.reason for bad in batch.rejected}
    assert set(told) == {14, 19, 20}
    assert "price" in told[19]
    assert told[20] == "a field is no UTF-8"


def test_killed_server_interrupts_no_reader(server: RedisServer, tmp_path: Path) -> None:
    stream = put(tmp_path, ticks(0, 4000))
    found = []
    for count, batch in enumerate(one_shot(open_inputs, stream, READING)):
        found += batch.records["number"].to_pylist()
        if count in (3, 150):
            server.kill()
            server.start()
    assert found == good(0, 4000)


def command(folder: Path, stream: str, name: str) -> list[str]:
    environment = ["env", "-C", str(folder), f"PYTHONPATH={ROOT}"]
    more = ["run", "sizes.py", "--source", f"redis:{stream}", "--sink", f"{name}.csv"]
    return [*environment, *RIPPLE, *more, "--checkpoint-dir", name, "--batch", "50"]


def ended(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_killed_runs_equal_an_undisturbed_one(server: RedisServer, tmp_path: Path) -> None:
    """Runs are killed with -9 at random moments, and the server too, and gone on with."""
    chance = random.Random(7)
    stream = put(tmp_path, ticks(0, 6000))
    (tmp_path / "sizes.py").write_text(PIPELINE)
    for kill in range(6):
        run = subprocess.Popen(command(tmp_path, stream, "killed"), stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.3, 1.8))
        run.send_signal(signal.SIGKILL)
        run.wait(PATIENCE_S)
        if kill == 3:
            server.kill()
            server.start()
    for name in ("killed", "undisturbed"):
        last = ended(command(tmp_path, stream, name))
        assert last.returncode == 0, last.stderr
    assert (tmp_path / "killed.csv").read_bytes() == (tmp_path / "undisturbed.csv").read_bytes()


def test_another_stream_is_not_resumed(tmp_path: Path) -> None:
    stream = put(tmp_path, ticks(0, 200))
    (tmp_path / "sizes.py").write_text(PIPELINE)
    assert ended(command(tmp_path, stream, "first")).returncode == 0
    put(tmp_path, ticks(200, 300))
    with client() as redis:
        redis.xtrim(stream, maxlen=50, approximate=False)
    trimmed = ended(command(tmp_path, stream, "first"))
    assert trimmed.returncode == 1
    assert "begins at 250, and it was read up to 200: entries between were trimmed" in (
        trimmed.stderr
    )
    with client() as redis:
        redis.delete(stream)
    put(tmp_path, ticks(0, 300))
    other = ended(command(tmp_path, stream, "first"))
    assert other.returncode == 1
    assert "it is another stream, or its server has lost entries" in other.stderr
    with client() as redis:
        redis.delete(stream)
    put(tmp_path, ticks(0, 30))
    short = ended(command(tmp_path, stream, "first"))
    assert "ends at 30, and it was read up to 200" in short.stderr


def test_uris_hold_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="has no user and no password"):
        RedisUri.parse("//me:secret@host/stream")
    with pytest.raises(InputError, match="cannot tell which stream redis:a b"):
        RedisUri.parse("a b")
    monkeypatch.setenv("REDIS_PASSWORD", "secret")
    place = RedisUri.parse("//db.example.com/trades:us")
    assert place.is_secure
    assert str(place) == "redis://db.example.com:6379/trades:us"
    assert "secret" not in repr(place)
    with pytest.raises(InputError, match=r"redis://127\.0\.0\.1:1/none: "):
        list(one_shot(open_inputs, "//127.0.0.1:1/none", READING))
    monkeypatch.delenv("REDIS_PASSWORD")
    with pytest.raises(InputError, match="there is no such stream"):
        list(one_shot(open_inputs, "none", READING))
