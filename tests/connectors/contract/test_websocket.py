"""A feed of a real server that drops connections, repeats messages and skips some."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSCloseCode, web
from websockets.sync.server import ServerConnection, serve

from ripple.connectors.connector import Reading
from ripple.connectors.formats.json import JsonValues
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.registry import own
from ripple.connectors.websocket import source as websocket_source
from ripple.connectors.websocket.sequence import Gap, Sequence, Verdict
from ripple.connectors.websocket.source import (
    MISSING,
    UNNUMBERED,
    WebsocketSource,
    check_plain,
    check_secure,
    open_plain,
    open_secure,
)
from ripple.connectors.websocket.uri import Feed
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.model.records import checks_of, schema_of
from ripple.testing import Tick, source_suite
from ripple.testing.connectors.rows import ticks
from tests.patience import PATIENCE_S
from tests.services.certificate import certified

SHAPE = RecordShape(schema_of(Tick), checks_of(Tick))
ROWS = [json.dumps({"seq": number, **tick}) for number, tick in enumerate(ticks(0, 60))]


@contextmanager
def serving(
    talk: Callable[[int, Any, str], Any], secured: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Serve: ``talk(connection's number, websocket, first message)``; yield the place's path."""
    loop, count, ready = asyncio.new_event_loop(), 0, threading.Event()
    port = 0

    async def handle(request: web.Request) -> web.WebSocketResponse:
        nonlocal count
        count += 1
        number = count
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        await talk(number, websocket, await websocket.receive_str())
        return websocket

    async def start() -> web.AppRunner:
        nonlocal port
        app = web.Application()
        app.router.add_get("/feed", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.2)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=secured)
        await site.start()
        port = runner.addresses[0][1]
        ready.set()
        return runner

    def run() -> None:
        runner = loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(PATIENCE_S)
    try:
        yield f"//127.0.0.1:{port}/feed"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def test_lost_repeated_and_skipped_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    async def talk(number: int, websocket: Any, first: str) -> None:
        told.append(first)
        if number == 1:
            await websocket.send_str('{"type": "hello"}')
            for row in ROWS[:20]:
                await websocket.send_str(row)
            await asyncio.sleep(0.2)
            websocket._req.transport.abort()  # no farewell
        elif number == 2:
            for row in (*ROWS[19:25], *ROWS[28:40], "{", '{"name": "A"}'):
                await websocket.send_str(row)
            await websocket.close(code=WSCloseCode.GOING_AWAY)
        else:
            for row in ROWS[40:]:
                await websocket.send_str(row)
            await websocket.close()

    monkeypatch.setenv("WS_SUBSCRIBE", "begin")
    monkeypatch.setenv("WS_RESUME", "go on behind {sequence}")
    monkeypatch.setenv("WS_SEQUENCE", "seq")
    reading = Reading("ticks", SHAPE, 10)
    with serving(talk) as path, closing(open_plain(path, reading)) as source:
        batches = list(source.batches())
    assert told == ["begin", "go on behind 19", "go on behind 39"]
    numbers = [n for batch in batches for n in batch.records["number"].to_pylist()]
    rejected = [bad for batch in batches for bad in batch.rejected]
    bad_ticks = {n for n, row in enumerate(ticks(0, 60)) if row["price"] <= 0}
    assert numbers == [n for n in range(60) if n not in bad_ticks and n not in {25, 26, 27}]
    missing = [bad for bad in rejected if bad.reason == MISSING]
    assert [bad.raw for bad in missing] == [b"25 to 27"]
    assert sum(bad.reason == UNNUMBERED for bad in rejected) == 2  # the greeting, and one without
    taken = 60 - 3 + 1 + 3
    assert batches[-1].next_offset == len(numbers) + len(rejected) == taken
    ends = [batch.next_offset for batch in batches]
    assert ends == sorted(set(ends))


def test_other_messages_are_no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(number: int, websocket: Any, first: str) -> None:
        for row in ticks(0, 3):
            await websocket.send_str('{"type": "heartbeat"}')
            await websocket.send_str(json.dumps({"type": "trade", **row}))
        await websocket.close()

    monkeypatch.setenv("WS_SUBSCRIBE", "begin")
    monkeypatch.setenv("WS_ONLY", "type=trade")
    with serving(talk) as path:
        with closing(open_plain(path, Reading("ticks", SHAPE, 10))) as source:
            batches = list(source.batches())
        with pytest.raises(InputError, match="can be read once"):
            next(source.batches())
        assert check_plain(path) == "a server of websockets answers"
    assert sum(batch.records.num_rows for batch in batches) == 3
    assert not any(batch.rejected for batch in batches)


FEEDS: dict[str, list[Any]] = {}


async def feed(_: int, websocket: Any, first: str) -> None:
    """Whoever names a folder gets its records, and the farewell."""
    with suppress(ConnectionError):  # who has heard enough
        for row in FEEDS[first]:
            await websocket.send_str(json.dumps(row))
        await websocket.close()


@pytest.fixture(scope="module")
def fed() -> Iterator[str]:
    with serving(feed) as path:
        yield path


@pytest.fixture(autouse=True)
def where(fed: str) -> None:
    FEEDS["place"] = [fed]


def put(folder: Path, rows: list[Any]) -> str:
    FEEDS[str(folder)] = rows
    os.environ["WS_SUBSCRIBE"] = str(folder)  # which a test's end puts back
    return str(FEEDS["place"][0])


@pytest.fixture(autouse=True)
def subscribes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WS_SUBSCRIBE", "")


TestFeed = source_suite(own()["ws"], put, once=True)


def test_a_feed_by_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = certified(tmp_path)
    secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secured.load_cert_chain(certificate, key)
    put(tmp_path, ticks(0, 5))
    with serving(feed, secured) as path:
        for authority, says in {
            None: "certificate verify failed",
            str(tmp_path / "none.pem"): "cannot read WS_CA, .*none.pem: No such file",
            str(key): "cannot read WS_CA, ",
        }.items():
            if authority is not None:
                monkeypatch.setenv("WS_CA", authority)
            source = open_secure(path, Reading("ticks", SHAPE, 10))
            with pytest.raises(InputError, match=says):  # at once, and not in half a minute
                next(source.batches())
            source.close()
            with pytest.raises(InputError, match=says):
                check_secure(path)
        monkeypatch.setenv("WS_CA", str(certificate))
        assert check_secure(path) == "a server of websockets answers"
        with closing(open_secure(path, Reading("ticks", SHAPE, 10))) as source:
            assert sum(batch.records.num_rows for batch in source.batches()) == 5


def test_first_connection_that_fails_is_an_error_of_one_line() -> None:
    source = WebsocketSource(
        Feed.parse("ws", "//127.0.0.1:1/feed"),
        JsonValues(SHAPE),
        name="t",
        batch_rows=1,
        wait=lambda _: pytest.fail("it waits"),
    )
    with pytest.raises(InputError, match=r"cannot read ws://127.0.0.1:1/feed: .*refused"):
        list(source.batches())
    source.close()


@pytest.mark.parametrize(
    ("path", "variables", "says"),
    [
        ("//me:hidden@host/feed", {}, "which others could read there"),
        ("host", {}, "it must be wss://"),
        ("//host/", {"WS_AUTHORIZATION": "hidden"}, "by TLS alone"),
        ("//host/", {"WS_RESUME": "from {sequence}"}, "and WS_SEQUENCE"),
        ("//host/", {"WS_ONLY": "trade"}, "not MEMBER=TEXT"),
    ],
)
def test_invalid_uris_and_settings(
    path: str, variables: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=says) as refused:
        open_plain(path, Reading("ticks", SHAPE, 10))
    assert "hidden" not in str(refused.value)


def test_numbers_that_start_over_end_the_run() -> None:
    sequence = Sequence()

    def taken(*numbers: int) -> list[Verdict | Gap]:
        return [sequence.take(n) for n in numbers]

    new, repeated = Verdict.NEW, Verdict.REPEATED
    sequence.connected(None)
    assert taken(5, 6, 6, 9, 8, 10) == [new, new, repeated, Gap(7, 8), repeated, new]
    for number in (1, 5):
        with pytest.raises(InputError, match=r"numbers start over: number . comes after 10"):
            sequence.take(number)
    sequence.connected(10)  # to go on behind it
    assert taken(10, 11) == [repeated, new]
    sequence.connected(None)
    with pytest.raises(InputError, match="numbers start over"):
        sequence.take(11)
    sequence.connected(11)
    with pytest.raises(InputError, match="numbers start over"):
        sequence.take(10)
    assert taken(14) == [Gap(12, 13)]


def test_a_connection_whose_numbers_start_over_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def talk(number: int, websocket: Any, first: str) -> None:
        for row in ROWS[:20] if number == 1 else ROWS[:40]:
            await websocket.send_str(row)
        await websocket.close(code=WSCloseCode.GOING_AWAY)

    monkeypatch.setenv("WS_SUBSCRIBE", "begin")
    monkeypatch.setenv("WS_SEQUENCE", "seq")
    with serving(talk) as path, closing(open_plain(path, Reading("t", SHAPE, 10))) as source:
        batches = source.batches()
        assert [next(batches).next_offset for _ in range(2)] == [10, 20]
        with pytest.raises(InputError, match="numbers start over: number 0 comes after 19"):
            next(batches)


def test_oversized_message_is_a_dead_letter_and_ends_the_run_when_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []

    async def talk(number: int, websocket: Any, first: str) -> None:
        for row in ROWS[: 2 if number > 1 else 1]:
            await websocket.send_str(row)
        with suppress(ConnectionError):
            await websocket.send_str("x" * (1 << 20) + "x")
            await websocket.receive()

    monkeypatch.setenv("WS_SUBSCRIBE", "begin")
    with serving(talk) as path:
        source = WebsocketSource(
            Feed.parse("ws", path), JsonValues(SHAPE), name="t", batch_rows=1, wait=waited.append
        )
        found = []
        with pytest.raises(InputError, match=r"too big|1009"):
            found += source.batches()
        source.close()
    refused = [bad.reason for one in found if isinstance(one, Batch) for bad in one.rejected]
    assert refused == ["message has more than 1048576 bytes"] * (len(waited) + 1)
    assert waited == [websocket_source.DELAYS_S[0], *websocket_source.DELAYS_S]


def test_messages_before_an_early_close_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A greeting that comes too late is no loss of what was sent without it."""
    sent = [json.dumps(row) for row in ticks(0, 2)]

    def talk(connection: ServerConnection) -> None:
        for row in sent:
            connection.send(row)
        connection.close()
        closed.set()

    closed = threading.Event()
    monkeypatch.setenv("WS_SUBSCRIBE", "begin")
    with serve(talk, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        path = f"//127.0.0.1:{server.socket.getsockname()[1]}/"
        greeting = Feed.greeting

        def slow(feed: Feed, last: int | None) -> str | None:
            closed.wait(PATIENCE_S)
            return greeting(feed, last)

        monkeypatch.setattr(Feed, "greeting", slow)
        with closing(open_plain(path, Reading("t", SHAPE, 10))) as source:
            batches = list(source.batches())
        server.shutdown()
        thread.join(PATIENCE_S)
    assert sum(one.records.num_rows for one in batches) == 2
