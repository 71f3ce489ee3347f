"""Streams of all kinds of clients: slow ones, silent ones, and those that mean harm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from ripple.client.flight.barrage.columns import check_known
from ripple.client.flight.barrage.exchange import Held
from ripple.client.flight.barrage.messages import Options, request_in
from ripple.client.flight.barrage.session import EXPORTS_MAX, SESSIONS_MAX, Sessions
from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.messages.flight_pb2 import FlightData
from ripple.client.flight.reader import read_as
from ripple.core.access import Caller, access_of
from ripple.world import LiveClock
from ripple.world.live import LiveRandom
from tests.client.flight.barrage.asking import PUBLICATION, SNAPSHOT, request
from tests.client.flight.barrage.serving import ROLES, TOKEN, Line, Served, begin, serving
from tests.client.flight.barrage.workload import Workload

# As pydeephaven-ticking 42.7 sends it, for the ticket e 1.
ASKED_BY_CPP = bytes.fromhex(
    "1000000000000a001000080007000c000a000000000000056470686e0400000044000000100000000c000c0004000000000008000c000000080000002000000005000000650100000000000010000c00000006000000080000000700100000000000010100100000"
)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as served:
        yield served


def streamed(served: Served, line: Line) -> asyncio.Task[None]:
    session = served.sessions.enter(Caller(None), "Anonymous")
    read_as(session.known)
    return asyncio.create_task(served.exchanges.serve(session, line))


async def until(holds: Callable[[], Any]) -> None:
    while not holds():
        await asyncio.sleep(0.005)


def test_the_request_of_a_real_client_is_understood() -> None:
    asked = request_in(ASKED_BY_CPP)
    assert (asked.ticket, asked.once, asked.columns, asked.viewport) == (
        b"e\1\0\0\0", False, None, None,
    )  # fmt: skip
    assert asked.options == Options(sentinels=True, as_list=True, batch_rows=4096)


def test_bytes_that_are_no_request_are_refused_whatever_they_are() -> None:
    random = Random(7)
    whole = FlightData.FromString(request(columns=b"\1", viewport=b"\x0c\0\x20")).app_metadata
    assert request_in(whole).columns == frozenset([0])
    for _ in range(5000):
        broken = bytearray(whole[: random.randrange(len(whole) + 1)])
        for _ in range(random.choice([0, 1, 3])):
            if broken:
                broken[random.randrange(len(broken))] = random.choice([0, 1, 127, 128, 255])
        with suppress(FlightError):  # and nothing else
            request_in(bytes(broken))


@pytest.mark.parametrize(
    ("message", "why", "problem"),
    [
        (b"\xff", Why.WRONG, "this is not a FlightData"),
        (
            FlightData(app_metadata=b"\0" * 16).SerializeToString(),
            Why.WRONG,
            "not a request of Barr",
        ),
        (FlightData(app_metadata=bytes(2 << 20)).SerializeToString(), Why.WRONG, "2097152 bytes"),
        (request(kind=PUBLICATION), Why.NOT_OFFERED, "use DoPut"),
        (request(b"s/other"), Why.UNKNOWN, "no output 'other': there are live"),
        (request(b"e\1\0\0\0"), Why.UNKNOWN, "stands for no table"),
        (request(columns=b"\0\0\0\x80"), Why.WRONG, "no column 31"),
        (request(columns=b"\xff" * 10_000), Why.WRONG, "columns beyond"),
        (request(viewport=b"\x0c"), Why.WRONG, "its end is missing"),
        (request(conversion=2), Why.NOT_OFFERED, "Stringify and ThrowError are"),
        (request(conversion=9, kind=SNAPSHOT), Why.NOT_OFFERED, "column_conversion_mode 9"),
        (request(message_bytes=64), Why.TOO_MUCH, "a row takes .* bytes of a message"),
    ],
)
async def test_a_client_that_asks_wrongly_is_told_what_is_wrong(
    served: Served, message: bytes, why: Why, problem: str
) -> None:
    begin(Workload(1), served.seen)
    line = Line()
    line.says.put_nowait(message)
    with pytest.raises(FlightError, match=problem) as refused:
        await streamed(served, line)
    assert refused.value.why is why


def test_columns_that_clients_cannot_know_are_text_or_refused_as_is_asked() -> None:
    schema = pa.schema(
        {"n": pa.int64(), "s": pa.large_string(), "l": pa.list_(pa.string()), "u": pa.uint64()}
    )
    asked = request_in(FlightData.FromString(request(conversion=3)).app_metadata)
    assert not asked.options.as_text
    assert request_in(FlightData.FromString(request(conversion=1)).app_metadata).options.as_text
    check_known(schema, frozenset([0, 1, 2]))
    for columns in (None, frozenset([3])):
        with pytest.raises(FlightError, match=r"the column 'u' .uint64. can only be") as refused:
            check_known(schema, columns)
        assert refused.value.why is Why.INTERNAL
    with pytest.raises(FlightError, match="column 'r'"):
        check_known(pa.schema({"r": pa.list_(pa.struct({"x": pa.int64()}))}), None)


async def test_a_viewport_of_all_rows_there_could_ever_be_is_the_table(served: Served) -> None:
    workload, line = Workload(1), Line()
    begin(workload, served.seen)
    everything = bytes.fromhex("0c000b020000000000008020")
    line.says.put_nowait(request(kind=SNAPSHOT, viewport=everything, reverse=True))
    await streamed(served, line)
    rows = sum(len(table) for table in workload.tables)
    headers = [FlightData.FromString(each).data_header for each in line.heard]
    messages = [pa.ipc.read_message(_whole(header)) for header in headers[:1]]
    assert messages[0].type == "schema"
    assert rows > 0
    assert len(line.heard) == 2


def _whole(header: bytes) -> bytes:
    return b"\xff\xff\xff\xff" + len(header).to_bytes(4, "little") + header


async def test_a_slow_client_is_told_once_of_all_that_has_changed() -> None:
    async with serving(interval_s=0.02) as served:
        workload, line = Workload(2), Line(stops_after=2)
        begin(workload, served.seen)
        line.says.put_nowait(request())
        task = streamed(served, line)
        await until(lambda: len(line.heard) == 2)
        served.seen.emit(*workload.step())
        await until(lambda: served.held.nbytes)
        held = served.held.nbytes
        for _ in range(30):
            served.seen.emit(*workload.step())
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        assert served.held.nbytes == held, "nothing is queued for somebody who takes nothing"
        line.takes.set()
        await until(lambda: not served.held.nbytes and len(line.heard) > 3)
        await asyncio.sleep(0.1)
        told = [FlightData.FromString(each).app_metadata != b"" for each in line.heard]
        assert sum(told) == 3, "the table, the change that it was slow to take, and the rest"
        line.says.put_nowait(None)
        await task


async def test_stalled_client_is_dropped_without_delaying_others() -> None:
    async with serving(send_s=0.2) as served:
        workload, stuck, well = Workload(2), Line(stops_after=1), Line()
        begin(workload, served.seen)
        for line in (stuck, well):
            line.says.put_nowait(request())
        task, other = streamed(served, stuck), streamed(served, well)
        await until(lambda: len(well.heard) == 2)
        with pytest.raises(FlightError, match="not taken within") as refused:
            await task
        assert refused.value.why is Why.TOO_SLOW
        served.seen.emit(*workload.step())
        await until(lambda: len(well.heard) > 2)
        assert not served.held.nbytes
        well.says.put_nowait(None)
        await other


async def test_memory_held_for_slow_clients_is_bounded() -> None:
    async with serving(held_bytes=1) as served:
        begin(Workload(2), served.seen)
        lines = [Line(stops_after=1) for _ in range(20)]
        tasks = []
        for line in lines:
            line.says.put_nowait(request())
            tasks.append(streamed(served, line))
        await until(lambda: all(len(line.heard) == 1 for line in lines) and served.held.nbytes)
        one = served.held.nbytes
        await asyncio.sleep(0.1)
        assert served.held.nbytes == one, "the others wait"
        for line in lines:
            line.takes.set()
        await until(lambda: all(len(line.heard) == 2 for line in lines))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_stream_that_asks_for_nothing_is_closed() -> None:
    async with serving(asked_s=0.1) as served:
        line = Line()
        line.says.put_nowait(FlightData().SerializeToString())
        with pytest.raises(FlightError, match="no request within"):
            await streamed(served, line)
        line.says.put_nowait(None)
        await streamed(served, line)


async def test_a_partition_that_was_never_heard_is_named(served: Served) -> None:
    served.feeds._heard_s = 0.1
    line = Line()
    line.says.put_nowait(request())
    with pytest.raises(FlightError, match=r"3 of 3 partitions did not answer .* 0 first"):
        await streamed(served, line)


async def test_a_stream_is_for_one_table(served: Served) -> None:
    begin(Workload(1), served.seen)
    line = Line()
    line.says.put_nowait(request())
    task = streamed(served, line)
    await until(lambda: len(line.heard) == 2)
    line.says.put_nowait(request(columns=b"\1", viewport=None))
    await until(lambda: len(line.heard) == 3)
    line.says.put_nowait(request(b"s/other"))
    with pytest.raises(FlightError, match="this stream is for 'live' alone"):
        await task


async def test_error_that_ends_a_table_is_reported_and_the_next_begins_anew(served: Served) -> None:
    workload, line = Workload(1), Line()
    begin(workload, served.seen)
    line.says.put_nowait(request())
    task = streamed(served, line)
    await until(lambda: len(line.heard) == 2)
    served.seen.emit(0, pa.RecordBatch.from_pydict({"key": [1]}))
    with pytest.raises(Exception, match="lack"):
        await task
    line = Line()
    line.says.put_nowait(request())
    task = streamed(served, line)
    begin(workload, served.seen)
    await until(lambda: len(line.heard) == 2)
    line.says.put_nowait(None)
    await task


async def test_a_session_ends_where_nobody_says_anything() -> None:
    async with serving(session_s=0.2) as served:
        workload, line = Workload(2), Line()
        begin(workload, served.seen)
        line.says.put_nowait(request())
        task = streamed(served, line)
        await until(lambda: len(line.heard) == 2)
        await asyncio.sleep(0.25)
        served.seen.emit(*workload.step())
        with pytest.raises(FlightError, match="the session has expired") as refused:
            await task
        assert refused.value.why is Why.STRANGER


def basic(text: str) -> str:
    import base64

    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "token", "comes_in"),
    [
        ("Anonymous", None, False),
        ("", None, False),
        (basic(f"alice:{TOKEN}"), None, True),
        (basic(f"bob:{TOKEN}"), None, False),
        (basic("alice:x"), None, False),
        ("Basic %%%", None, False),
        (f"Bearer {TOKEN}", TOKEN, True),
        ("Bearer x", "x", False),
        (f"io.deephaven.authentication.psk.PskAuthenticationHandler {TOKEN}", None, True),
    ],
)
def test_sessions_admit_known_tokens(header: str, token: str | None, comes_in: bool) -> None:
    sessions = Sessions(access_of(ROLES.encode(), "roles"), LiveClock(), LiveRandom())
    if not comes_in:
        with pytest.raises(FlightError) as refused:
            sessions.enter(Caller(token), header)
        assert refused.value.why is Why.STRANGER
        return
    session = sessions.enter(Caller(token), header)
    assert session.known.name == "alice"
    assert sessions.enter(Caller(session.token), f"Bearer {session.token}") is session
    assert sessions.known(Caller(session.token)).name == "alice"
    sessions.close(session)
    with pytest.raises(FlightError):
        sessions.enter(Caller(session.token), f"Bearer {session.token}")


def test_there_are_so_many_sessions_and_tables_of_one() -> None:
    sessions = Sessions(None, LiveClock(), LiveRandom(), session_s=300)
    first = sessions.enter(Caller(), "Anonymous")
    for _ in range(SESSIONS_MAX - 1):
        sessions.enter(Caller(), "Anonymous")
    with pytest.raises(FlightError, match="there are 4096 sessions"):
        sessions.enter(Caller(), "Anonymous")
    sessions.close(first)
    session = sessions.enter(Caller(), "Anonymous")
    for number in range(1, EXPORTS_MAX + 1):
        session.export(b"e" + number.to_bytes(4, "little"), "live")
    with pytest.raises(FlightError, match="1024 tables are open"):
        session.export(b"e" + (0x7000).to_bytes(4, "little"), "live")
    session.release(b"e\1\0\0\0")
    session.export(b"e" + (0x7000).to_bytes(4, "little"), "live")
    assert session.output(b"s/vwap") == "vwap"
    with pytest.raises(FlightError, match="is not a client's ticket"):
        session.export(b"h\0", "live")


async def test_less_is_held_when_some_is_taken() -> None:
    held = Held(10)
    async with held.turn():
        held.add(11)

    async def next_one() -> str:
        async with held.turn():
            return "next"

    waiting = asyncio.create_task(next_one())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    held.add(-11)
    assert await waiting == "next"
