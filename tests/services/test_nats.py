"""Streams of a real server of NATS: the contracts, killed servers, killed runs."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError

from ripple.connectors import buffered_input
from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.connector import Reading, Writing
from ripple.connectors.contract import Commit
from ripple.connectors.nats.envelope import ACK, Message, dumps, dumps_message
from ripple.connectors.nats.opening import check, continue_sink, open_inputs
from ripple.connectors.nats.sink import NatsSink
from ripple.connectors.nats.uri import NatsUri
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.registry import own
from ripple.core.errors import InputError, OutputAwayError, OutputError
from ripple.model.batch import Batch
from ripple.model.records import checks_of, schema_of
from ripple.task.retrying_inputs import RetryingInputs
from ripple.testing import Tick, sink_suite, source_suite
from ripple.testing.connectors.rows import CUTS, OUTPUT, PLAN, changes, newest, reached, ticks
from ripple.world.live import LiveExecutor
from tests.cli.processes import RIPPLE, ROOT
from tests.one_shot import one_shot
from tests.patience import PATIENCE_S, comes, until
from tests.services.missing import MissingError, skip
from tests.services.nats_server import Nats

pytestmark = pytest.mark.services

RUNNING: list[Nats] = []
READING = Reading("ticks", RecordShape(schema_of(Tick), checks_of(Tick)), 10)
WRITING = Writing(PLAN, OUTPUT)
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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    try:
        server = Nats(tmp_path_factory.mktemp("nats") / "server")
    except MissingError as error:
        skip(error)
    with server, pytest.MonkeyPatch.context() as patched:
        patched.setenv("NATS_SERVER", server.address)
        RUNNING.append(server)
        yield server
    RUNNING.clear()


def unique(folder: Path) -> str:
    return f"s{zlib.crc32(str(folder).encode()):08x}"


async def asked(what: Any) -> Any:
    client = await nats.connect(f"nats://{RUNNING[0].address}", connect_timeout=PATIENCE_S)
    try:
        return await what(client.jetstream(timeout=PATIENCE_S))
    finally:
        await client.close()


def publish(stream: str, payloads: list[bytes]) -> None:
    """Make the stream if it is not there, and append."""

    async def send(js: Any) -> None:
        try:
            await js.stream_info(stream)
        except NotFoundError:
            await js.add_stream(StreamConfig(name=stream, subjects=[f"{stream}.*"]))
        end = (await js.stream_info(stream)).state.last_seq
        for first in range(0, len(payloads), 2000):  # servers hold no more than 10,000
            some = payloads[first : first + 2000]
            for one in some:
                await js._nc.publish(f"{stream}.x", one)
            end += len(some)
            async with asyncio.timeout(PATIENCE_S):
                while (await js.stream_info(stream)).state.last_seq < end:
                    await asyncio.sleep(0.005)

    asyncio.run(asked(send))


def delete(stream: str, *sequences: int) -> None:
    async def forget(js: Any) -> None:
        for sequence in sequences:
            await js.delete_msg(stream, sequence)

    asyncio.run(asked(forget))


def put(folder: Path, rows: list[dict[str, Any]]) -> str:
    publish(unique(folder), [json.dumps(row).encode() for row in rows])
    return unique(folder)


def read(stream: str) -> list[dict[str, Any]]:
    """The rows of a stream; a message without any says how far it is."""

    async def all_of(js: Any) -> list[bytes]:
        try:
            info = await js.stream_info(stream)
        except NotFoundError:
            return []
        numbers = range(max(1, info.state.first_seq), info.state.last_seq + 1)
        return [(await js.get_msg(stream, number)).data or b"" for number in numbers]

    return [json.loads(data) for data in asyncio.run(asked(all_of)) if data]


def remake(folder: Path) -> None:
    """Let another stream have the name, longer than what was read."""

    async def forget(js: Any) -> None:
        await js.delete_stream(unique(folder))

    asyncio.run(asked(forget))
    put(folder, ticks(0, 150))


def overtake(folder: Path) -> None:
    """Remove what was not read yet, and more."""

    async def purge(js: Any) -> None:
        await js.purge_stream(unique(folder), seq=131)

    asyncio.run(asked(purge))
    put(folder, ticks(130, 150))


@contextmanager
def killed(folder: Path) -> Iterator[None]:
    RUNNING[0].kill()
    yield
    RUNNING[0].start()


CHANGES = {"made anew": remake, "overtaken": overtake}

TestNats = source_suite(own()["nats"], put, changes=CHANGES, away=killed)


def unmake(folder: Path) -> None:
    """Take the stream away."""
    asyncio.run(asked(lambda js: js.delete_stream(unique(folder))))


def remake_output(folder: Path) -> None:
    """Let another stream of the same kind have the name."""

    async def anew(js: Any) -> None:
        await js.delete_stream(unique(folder))
        await js.add_stream(StreamConfig(name=unique(folder), subjects=[unique(folder)]))

    asyncio.run(asked(anew))


def purge(folder: Path) -> None:
    """Remove all that is in it."""
    asyncio.run(asked(lambda js: js.purge_stream(unique(folder))))


OF_OUTPUT = {"taken away": unmake, "made anew": remake_output, "emptied": purge}

TestNatsSink = sink_suite(own()["nats"], unique, read, changes=OF_OUTPUT)


def rows_of(stream: str) -> tuple[list[int], list[int], int]:
    """The numbers that a source gives, the offsets that it refuses, and where it ends."""
    batches = list(one_shot(open_inputs, stream, READING))
    numbers = [number for one in batches for number in one.records["number"].to_pylist()]
    return numbers, [bad.offset for one in batches for bad in one.rejected], batches[-1].next_offset


def test_removed_messages_are_holes(tmp_path: Path) -> None:
    stream = put(tmp_path, ticks(0, 40))
    delete(stream, 1, 2, 6, 7, 8, 9, 10, 11, 21, 40)
    gone = {0, 1, 5, 6, 7, 8, 9, 10, 20, 39}
    wanted = [one["number"] for one in ticks(0, 40) if one["price"] > 0]
    numbers, refused, end = rows_of(stream)
    assert numbers == [number for number in wanted if number not in gone]
    assert end == 40
    assert refused == [14, 31]


async def test_stream_with_another_last_message_is_rejected(tmp_path: Path) -> None:
    name = await asyncio.to_thread(put, tmp_path, ticks(0, 40))
    stream = open_inputs(name, READING)
    await stream.open({"ticks": 0}, 10)
    cut = {"ticks": 0}
    while isinstance(found := stream.next(cut), tuple) or cut["ticks"] < 40:
        if isinstance(found, tuple):
            cut["ticks"] = found[1].next_offset
        else:
            await stream.more()
    (known,) = (await stream.identities(cut)).values()
    await stream.check(cut, {"ticks": known})
    made, _, _ = known.partition(" behind ")
    await stream.check(cut, {"ticks": made})  # as runs before have stored it
    with pytest.raises(InputError, match="number 40 is another message"):
        await stream.check(cut, {"ticks": f"{made} behind 39 at 1700000000000000"})
    await stream.close()


def test_streams_that_remove_acknowledged_messages_are_rejected(tmp_path: Path) -> None:
    async def make(js: Any) -> None:
        name = unique(tmp_path)
        await js.add_stream(StreamConfig(name=name, subjects=[name], retention="workqueue"))

    asyncio.run(asked(make))
    with pytest.raises(InputError, match=r"retention is workqueue.*retention limits"):
        list(one_shot(open_inputs, unique(tmp_path), READING))
    assert "can be written, and not be read" in check(unique(tmp_path))


def test_envelopes_are_opened_and_plain_messages_are_as_they_are(tmp_path: Path) -> None:
    rows = [json.dumps(one).encode() for one in ticks(0, 4)]
    messages = [dumps_message(Message(one, ack_inbox="inbox")) for one in rows]
    broken = bytearray(dumps(messages[3]))
    broken[-1] ^= 1
    stream = unique(tmp_path)
    good = [rows[0], dumps(messages[1]), dumps(messages[2], checksum=False)]
    publish(stream, [*good, bytes(broken), dumps(rows[3]), dumps(b"", kind=ACK)])
    (batch,) = one_shot(open_inputs, stream, READING)
    assert isinstance(batch, Batch)
    assert batch.records["number"].to_pylist() == [0, 1, 2]
    assert [bad.offset for bad in batch.rejected] == [3, 4, 5]
    reasons = [bad.reason for bad in batch.rejected]
    assert "CRC-32C" in reasons[0]
    assert reasons[1:] == [
        "the payload of a Liftbridge envelope is no Message",
        "a Liftbridge envelope holds an acknowledgement, and no record",
    ]


def test_killed_server_interrupts_no_reader(server: Nats, tmp_path: Path) -> None:
    stream = put(tmp_path, ticks(0, 2000))
    found = []
    for count, batch in enumerate(one_shot(open_inputs, stream, READING)):
        found += batch.records["number"].to_pylist()
        if count in (3, 100):
            server.kill()
            server.start()
    assert found == [one["number"] for one in ticks(0, 2000) if one["price"] > 0]


def test_killed_server_loses_and_doubles_nothing_that_is_written(
    server: Nats, tmp_path: Path
) -> None:
    sink = continue_sink(unique(tmp_path), WRITING)
    for cut in range(CUTS):
        if cut % 2:
            server.kill()
            server.start()
        sink.write(changes(cut), reached(cut))
        sink.commit(reached(cut))
    sink.close()
    found = read(unique(tmp_path))
    assert [row["number"] for row in found] == [
        number for cut in range(CUTS) for number in changes(cut)["number"].to_pylist()
    ]
    assert {row["name"]: row["number"] for row in found} == newest(CUTS)


def test_cuts_may_follow_an_unfinished_one_before_a_commit(
    server: Nats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def headers(self: NatsSink, to: Commit, since: Commit | None, row: int, *of: int) -> Any:
        if row:
            raise InterruptedError("the writer ends in the middle of a cut")
        return whole(self, to, since, row, *of)

    whole, place = NatsSink._headers, unique(tmp_path)
    sink = continue_sink(place, WRITING)
    sink.write(changes(0), reached(0))
    with monkeypatch.context() as patched:
        patched.setattr("ripple.connectors.nats.sink.AT_ONCE", 1)
        patched.setattr("ripple.connectors.nats.sink.FAILURES", ())
        patched.setattr(NatsSink, "_headers", headers)
        with pytest.raises(InterruptedError):
            sink.commit(reached(0))
    sink.close()
    again = continue_sink(place, WRITING)
    assert (again.committed, again.unfinished) == (None, reached(0).cut)
    with pytest.raises(OutputError, match="must be completed before"):
        again.write(changes(2), reached(2))
    for cut in (0, 2):
        again.write(changes(cut), reached(cut))
    again.commit(reached(2))
    again.close()
    assert [row["number"] for row in read(place)] == [
        number for cut in (0, 2) for number in changes(cut)["number"].to_pylist()
    ]


async def test_a_commit_waits_for_a_server_that_is_away(
    server: Nats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ripple.connectors.commit_group.EMIT_FIRST_S", 0.0)
    told = asyncio.Event()
    place = unique(tmp_path)
    group = SinkGroup({"out": lambda: continue_sink(place, WRITING)}, LiveExecutor())
    await group.open(None, lambda _: told.set())
    for cut in range(3):
        group.write("out", changes(cut), reached(cut))
        if cut != 1:
            await group.commit({"out": reached(cut)})
            continue
        await asyncio.to_thread(server.kill)
        commit = asyncio.create_task(group.commit({"out": reached(cut)}))
        async with asyncio.timeout(PATIENCE_S):
            await told.wait()
        assert not commit.done()
        await asyncio.to_thread(server.start)
        await commit
    await group.close()
    found = await asyncio.to_thread(read, unique(tmp_path))
    assert [row["number"] for row in found] == [
        number for cut in range(3) for number in changes(cut)["number"].to_pylist()
    ]


def test_a_batch_may_be_larger_than_what_is_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffered_input, "AHEAD_BYTES_MAX", 1000)
    stream = put(tmp_path, ticks(0, 400))
    batches = one_shot(open_inputs, stream, Reading("ticks", READING.shape, 300))
    assert [batch.next_offset for batch in batches] == [300, 400]


def test_streams_of_others_are_refused(tmp_path: Path) -> None:
    stream = put(tmp_path, ticks(0, 1))
    with pytest.raises(OutputError, match="has the subjects"):
        continue_sink(stream, WRITING)

    async def make(js: Any) -> None:
        await js.add_stream(StreamConfig(name=f"{stream}o", subjects=[f"{stream}o"]))
        await js.publish(f"{stream}o", b"somebody's own")

    asyncio.run(asked(make))
    with pytest.raises(OutputError, match="it is of somebody else"):
        continue_sink(f"{stream}o", WRITING)


def test_uris_hold_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="has no user and no password"):
        NatsUri.parse("//me:secret@host/stream")
    with pytest.raises(InputError, match="cannot tell which stream nats:a"):
        NatsUri.parse("a.b")
    monkeypatch.setenv("NATS_PASSWORD", "secret")
    place = NatsUri.parse("//db.example.com/stream")
    assert place.is_secure
    assert str(place) == "nats://db.example.com:4222/stream"
    assert "secret" not in repr(place)
    assert not NatsUri.parse("//127.0.0.1:14222/stream").is_secure
    with pytest.raises(InputError, match=r"nats://127\.0\.0\.1:1/none: "):
        list(one_shot(open_inputs, "//127.0.0.1:1/none", READING))
    with pytest.raises(InputError, match="there is no such stream"):
        list(one_shot(open_inputs, "none", READING))


def test_killed_runs_equal_an_undisturbed_one(server: Nats, tmp_path: Path) -> None:
    """Runs are killed with -9 at random moments, and the server too, and gone on with."""
    chance = random.Random(7)
    stream = put(tmp_path, ticks(0, 6000))
    (tmp_path / "sizes.py").write_text(PIPELINE)

    def command(name: str) -> list[str]:
        environment = ["env", "-C", str(tmp_path), f"PYTHONPATH={ROOT}"]
        more = ["run", "sizes.py", "--source", f"nats:{stream}", "--sink", f"nats:{stream}{name}"]
        return [*environment, *RIPPLE, *more, "--checkpoint-dir", name, "--batch", "50"]

    for kill in range(6):
        run = subprocess.Popen(command("killed"), stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.3, 1.8))
        run.send_signal(signal.SIGKILL)
        run.wait(PATIENCE_S)
        if kill == 3:
            server.kill()
            server.start()
    for name in ("killed", "undisturbed"):
        ended = subprocess.run(
            command(name), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert ended.returncode == 0, ended.stderr
    last = [
        {row["name"]: row for row in read(f"{stream}{name}")} for name in ("killed", "undisturbed")
    ]
    assert last[0] == last[1]
    assert len(last[0]) == 7
    assert sum(row["ticks"] for row in last[0].values()) == len(
        [one for one in ticks(0, 6000) if one["price"] > 0]
    )


def test_revoked_and_restored_rights_end_no_run(
    server: Nats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection gets no answers any more once it may not hear them, and never again."""
    conf = server.folder / "nats.conf"
    before = conf.read_text()

    def write(rights: str) -> None:
        app = f'{{user: "app", password: "a"{rights}}}'
        users = f'authorization {{ users = [{{user: "root", password: "r"}}, {app}] }}'
        conf.write_text(f'{before}\nno_auth_user: "root"\n{users}\n')

    def allow(rights: str) -> None:
        def reloads() -> int:
            return server.log.read_text().count("Reloaded server configuration")

        write(rights)
        count = reloads()
        os.kill(server.pid, signal.SIGHUP)
        until(lambda: reloads() > count, server.log.read_text, 60.0)

    stream = put(tmp_path, ticks(0, 20))
    whole = len(put_numbers := [row["number"] for row in ticks(0, 40) if row["price"] > 0])

    async def story() -> None:
        sink = continue_sink(f"{stream}-out", WRITING)
        source = RetryingInputs(open_inputs(stream, replace(READING, follow=True)))
        waits, cut = list[str](), {"ticks": 0}
        source.emit = lambda event: waits.append(getattr(event, "error", ""))
        await source.open(cut, 10)
        found: list[int] = []

        async def read_all() -> None:
            while len(found) < whole:
                one = source.next(cut)
                if isinstance(one, tuple):
                    cut["ticks"] = one[1].next_offset
                    assert isinstance(one[1], Batch)
                    found.extend(one[1].records["number"].to_pylist())
                else:
                    await source.more()

        reading = asyncio.create_task(read_all())
        await comes(lambda: cut["ticks"] == 20 or reading.done())
        allow(', permissions: {publish: "nothing", subscribe: "nothing"}')
        sink.write(changes(0), reached(0))
        with pytest.raises(OutputAwayError, match="ermissions"):
            await asyncio.to_thread(sink.commit, reached(0))
        await comes(lambda: any(waits) or reading.done())
        allow("")
        await asyncio.to_thread(sink.commit, reached(0))
        await asyncio.to_thread(put, tmp_path, ticks(20, 40))
        async with asyncio.timeout(PATIENCE_S):
            await reading
        assert found == put_numbers
        await source.close()
        await asyncio.to_thread(sink.close)

    monkeypatch.setenv("NATS_USER", "app")
    monkeypatch.setenv("NATS_PASSWORD", "a")
    monkeypatch.setattr("ripple.task.retrying_inputs.EMIT_FIRST_S", 0.0)
    monkeypatch.setattr("ripple.connectors.nats.inputs.ASK_S", 0.5)
    monkeypatch.setattr("ripple.connectors.nats.sink.ASK_S", 0.5)
    server.stop()
    write("")
    server.start()
    try:
        asyncio.run(story())
    finally:
        server.stop()
        conf.write_text(before)
        server.start()
