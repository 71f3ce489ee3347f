"""``ripple run`` reads topics of real brokers as it reads files and logs."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition

import ripple as rp
from ripple.cli.main import main
from ripple.connectors.identity import check_not_read
from ripple.connectors.kafka.broker import KafkaBroker
from ripple.connectors.kafka.settings import Security
from ripple.connectors.kafka.source_opening import check
from ripple.connectors.locate import open_source
from ripple.core.errors import InputError, OutputError
from ripple.engine.machine import Engine
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.file import load_plan
from ripple.spark.options import Bound
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.streaming.hints import HintReceiver
from ripple.spark.streaming.resident import here
from ripple.spark.streaming.stream import Stream
from ripple.spark.streaming.turn import Turn
from ripple.world.broker import Record, Records, TopicPartition
from tests.connectors.kafka.issuer import Issuer
from tests.patience import PATIENCE_S, until
from tests.services.certificate import certified
from tests.services.kafka import Broker, Secure
from tests.services.kafka_topics import Topics
from tests.services.missing import MissingError, skip
from tests.spark.backfilled import backfilled
from tests.spark.here import replayed

pytestmark = pytest.mark.services

ROWS = 6_000
PARTITIONS = 4
PIPELINE = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    price: float = rp.field(finite=True)
    size: int = rp.field(gt=0)
    timestamp_ns: rp.Timestamp

pipeline = (
    rp.Pipeline("vwap")
    .source("trades", Trade)
    .partition("by-symbol", key="symbol")
    .window("1min", rp.Tumbling("60s"), lateness="60s")
    .fold("vwap", vwap=rp.vwap("price", "size"), total=rp.sum("size"))
    .sink("output")
)
"""


def trades(first: int = 0, rows: int = ROWS) -> list[tuple[str, float, int, int]]:
    """Return trades in order of time, of which 50 are of one symbol before the next begins."""
    return [
        (f"S{number // 50 % 8}", 100 + number % 997 / 10, 1 + number % 9, number * 50_000_000)
        for number in range(first, first + rows)
    ]


def as_csv(row: Sequence[object]) -> bytes:
    return ",".join(map(str, row)).encode()


def as_json(row: Sequence[object]) -> bytes:
    names = ("symbol", "price", "size", "timestamp_ns")
    return json.dumps(dict(zip(names, row, strict=True)), indent=1).encode()


def records(rows, form: Callable[[Sequence[object]], bytes] = as_csv) -> list[Record]:
    return [Record(row[0].encode(), form(row), 1 + row[3] // 1_000_000) for row in rows]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vwap.py").write_text(PIPELINE)
    lines = b"\n".join(as_csv(row) for row in trades())
    (tmp_path / "trades.csv").write_bytes(lines + b"\n")
    return tmp_path


def started(
    folder: Path, *given: str, stderr: int | IO[str] = subprocess.PIPE, **environment: str
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ripple.cli.main", "run", "vwap.py", *given]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def ran(folder: Path, *given: str, **environment: str) -> str:
    """Run to the end; return what was said."""
    process = started(folder, *given, **environment)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    return said


def refused(folder: Path, *given: str, code: int = 1, **environment: str) -> str:
    """Run, and return the only line of what was said."""
    process = started(folder, "--sink", "none.csv", *given, **environment)
    out, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, said
    assert not out
    (line,) = said.splitlines()
    assert "Traceback" not in said
    return line


def story(bootstrap: str, told: Callable[[Topics], Awaitable[None]], **security: object) -> None:
    async def main() -> None:
        async with Topics(bootstrap, **security) as topics:
            await told(topics)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def filled(bootstrap: str, topic: str, rows, partitions: int = 1, **how: object) -> None:
    async def told(topics: Topics) -> None:
        await topics.create(topic, partitions)
        await added(topics, topic, rows, partitions, **how)

    story(bootstrap, told)


async def added(topics: Topics, topic: str, rows, partitions: int, form=as_csv, **how) -> None:
    for number in range(partitions):
        own = [row for row in rows if int(row[0][1:]) % partitions == number]
        await topics.append(TopicPartition(topic, number), records(own, form), **how)


def test_one_shot_run_equals_that_of_a_file(broker: Broker, topic: str, folder: Path) -> None:
    async def told(topics: Topics) -> None:
        await topics.create(topic, 1)
        for number, codec in enumerate((None, "gzip", "snappy", "lz4", "zstd")):
            part = trades(number * ROWS // 5, ROWS // 5)
            how = {"compression_type": codec, "linger_ms": 20}
            await topics.append(TopicPartition(topic, 0), records(part), **how)

    story(broker.bootstrap, told)
    ran(folder, "--source", "trades.csv", "--sink", "file.csv")
    place = f"kafka:{broker.bootstrap}/{topic}?format=csv"
    ran(folder, "--source", place, "--sink", "topic.csv")
    written = (folder / "topic.csv").read_bytes()
    assert written == (folder / "file.csv").read_bytes()
    assert written.count(b"\n") > 30
    sinks = {"output": f"kafka:{broker.bootstrap}/{topic}"}
    for continues in (True, False):  # its results would be records, without end
        with pytest.raises(
            OutputError, match=f"cannot write .*/{topic}: it is the run's own source"
        ):
            check_not_read(place, sinks, continues=continues)


def test_plain_run_reads_all_partitions(broker: Broker, topic: str, folder: Path) -> None:
    filled(broker.bootstrap, topic, trades(), PARTITIONS)
    ran(folder, "--source", "trades.csv", "--sink", "file.csv")
    place = f"kafka:{broker.bootstrap}/{topic}?format=csv"
    said = ran(folder, "--source", place, "--sink", "topic.csv")
    assert f"Events processed:  {ROWS}\n" in said
    written = last_of_each(folder / "topic.csv")
    assert len(written) > 30
    assert written == last_of_each(folder / "file.csv")


def test_values_of_json_are_read_with_brokers_of_the_environment(
    broker: Broker, topic: str, folder: Path
) -> None:
    filled(broker.bootstrap, topic, trades(), form=as_json)
    ran(folder, "--source", "trades.csv", "--sink", "file.csv")
    given = {"RIPPLE_KAFKA_BROKERS": broker.bootstrap}
    ran(folder, "--source", f"kafka:{topic}", "--sink", "topic.csv", **given)
    assert (folder / "topic.csv").read_bytes() == (folder / "file.csv").read_bytes()


def test_undecodable_record_is_a_dead_letter_and_the_run_continues(
    broker: Broker, topic: str, folder: Path
) -> None:
    good = records(trades(rows=3))

    async def told(topics: Topics) -> None:
        await topics.create(topic, 1)
        wrong = [Record(b"k", b"no trade"), Record(b"k", None), Record(b"k", b"S1,1,2,3\nS1,1,2,3")]
        await topics.append(TopicPartition(topic, 0), [good[0], *wrong, *good[1:]])

    story(broker.bootstrap, told)
    place = f"kafka:{broker.bootstrap}/{topic}?format=csv"
    said = ran(folder, "--source", place, "--sink", "topic.csv", "--dead-letter", "letters.jsonl")
    letters = [json.loads(line) for line in (folder / "letters.jsonl").read_text().splitlines()]
    assert [(letter["offset"], letter["reason"]) for letter in letters] == [
        (1, "too few fields"),
        (2, "the value is null"),
        (3, "not one CSV record"),
    ]
    assert "Events processed:  6" in said


def test_aborted_transactions_and_marks_are_passed_over(
    broker: Broker, topic: str, folder: Path
) -> None:
    rows = trades()

    async def told(topics: Topics) -> None:
        await topics.create(topic, 1)
        producer = await topics.producer("p")
        for first in range(0, ROWS, ROWS // 6):
            for commits in (False, True):
                producer.begin()
                part = rows[first : first + ROWS // 6]
                await producer.send(TopicPartition(topic, 0), Records.of(records(part)))
                await (producer.commit() if commits else producer.abort())

    story(broker.bootstrap, told)
    ran(folder, "--source", "trades.csv", "--sink", "file.csv", "--batch", "100000")
    place = f"kafka:{broker.bootstrap}/{topic}?format=csv"
    said = ran(folder, "--source", place, "--sink", "topic.csv", "--batch", "100000")
    assert f"Events processed:  {ROWS}\n" in said
    assert (folder / "topic.csv").read_bytes() == (folder / "file.csv").read_bytes()


def test_run_that_is_killed_goes_on_and_writes_each_cut_once(
    broker: Broker, topic: str, folder: Path
) -> None:
    rows, half = trades(), ROWS // 2
    filled(broker.bootstrap, topic, rows[:half], PARTITIONS)
    source = ("--source", f"kafka:{broker.bootstrap}/{topic}?format=csv")
    lasting = ("--sink", "lives.csv", "--checkpoint-dir", "lives", "--commit-interval", "50ms")
    often = ("--checkpoint-interval", "200ms", "--follow", "--batch", "100")
    for number in range(4):
        process = started(folder, *source, *lasting, *often)
        before = (folder / "lives.csv").stat().st_size if number else 0
        grown(folder / "lives.csv", before, PATIENCE_S if number in (0, 2) else 2)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if number == 1:
            story(broker.bootstrap, lambda topics: added(topics, topic, rows[half:], PARTITIONS))
    ran(folder, *source, *lasting, "--batch", "100")
    ran(folder, *source, "--sink", "once.csv", "--checkpoint-dir", "once", "--batch", "100")
    assert last_of_each(folder / "lives.csv") == last_of_each(folder / "once.csv")
    ran(folder, "--source", "trades.csv", "--sink", "file.csv")
    closed = last_of_each(folder / "once.csv")
    assert len(closed) > 30
    assert closed.items() <= last_of_each(folder / "file.csv").items()


def grown(path: Path, beyond: int = 0, within_s: float = PATIENCE_S) -> None:
    """Wait until a file has more than so many bytes."""
    until = time.monotonic() + within_s
    while (path.stat().st_size if path.exists() else 0) <= beyond and time.monotonic() < until:
        time.sleep(0.05)


def last_of_each(path: Path) -> dict[str, str]:
    """Return the last row of each window and symbol."""
    found = {}
    for line in path.read_text().splitlines():
        *key, vwap, total = line.split(",")
        found[",".join(key)] = f"{vwap},{total}"
    return found


def test_run_goes_on_when_its_broker_comes_back(tmp_path: Path, folder: Path) -> None:
    try:
        own = Broker(tmp_path / "kafka")
    except MissingError as error:
        skip(error)
    rows, half = trades(), ROWS // 2
    with own:
        filled(own.bootstrap, "t", rows[:half])
        place = f"kafka:{own.bootstrap}/t?format=csv"
        lasting = ("--sink", "topic.csv", "--checkpoint-dir", "state", "--commit-interval", "50ms")
        with (folder / "said").open("w") as said:
            process = started(folder, "--source", place, *lasting, "--follow", stderr=said)
        grown(folder / "topic.csv")
        own.kill()
        until(lambda: outages(folder)[-1:] == ["does not answer"])
        assert process.poll() is None, (folder / "said").read_text()
        before = (folder / "topic.csv").stat().st_size
        own.start()
        story(own.bootstrap, lambda topics: added(topics, "t", rows[half:], 1))
        until(lambda: outages(folder)[-1:] == ["is available again"])
        grown(folder / "topic.csv", before)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        ran(folder, "--source", place, *lasting)
        assert all(one != other for one, other in pairwise(outages(folder)))
    ran(folder, "--source", "trades.csv", "--sink", "file.csv")
    closed = last_of_each(folder / "topic.csv")
    assert len(closed) > 30
    assert closed.items() <= last_of_each(folder / "file.csv").items()


def outages(folder: Path) -> list[str]:
    """Return what a run has said of its broker."""
    said = (folder / "said").read_text().replace("answers again", "is available again")
    return re.findall("does not answer|is available again", said)


def test_errors_are_one_line(broker: Broker, topic: str, folder: Path) -> None:
    filled(broker.bootstrap, topic, trades(rows=500), 2)
    at = f"kafka:{broker.bootstrap}"
    said = refused(folder, "--source", "kafka:127.0.0.1:1/t", code=2)
    assert "cannot reach Kafka: 127.0.0.1:1: " in said
    given = {"RIPPLE_KAFKA_SECURITY_PROTOCOL": "SSL"}
    there = ("--source", f"kafka:{broker.bootstrap}/t")
    assert "is SSL what it takes there?" in refused(folder, *there, **given)
    said = refused(folder, "--source", f"{at}/none")
    assert said.endswith("/none: " + broker.bootstrap + " has no topic 'none'")
    schema = load_plan(str(folder / "vwap.py")).source.schema
    with pytest.raises(InputError, match="choose one of its 2 partitions, as in"):
        open_source(f"{at}/{topic}", schema, name="trades")
    said = refused(folder, "--source", f"{at}/{topic}?partition=2")
    assert said.endswith("it has 2 partitions, and none '2'")
    assert "there is no format 'xml'" in refused(folder, "--source", f"{at}/{topic}?format=xml")
    said = refused(folder, "--source", f"{at}/{topic}?from=end")
    assert "it says from, and there are" in said


def test_check_says_whether_a_topic_is_there(broker: Broker, topic: str) -> None:
    filled(broker.bootstrap, topic, trades(rows=8), PARTITIONS)
    place = f"{broker.bootstrap}/{topic}"
    assert check(place) == f"a topic of {PARTITIONS} partitions"
    assert check(f"{place}?partition=1") == f"partition 1 of {PARTITIONS}"
    with pytest.raises(InputError, match="4 partitions, and none '4'"):
        check(f"{place}?partition=4")
    answers = f"Kafka answers at {broker.bootstrap}; there is no topic {topic}-2 yet"
    assert check(f"{place}-2") == answers


def test_backfilled_history_is_resumed_in_a_topic(broker: Broker, topic: str, folder: Path) -> None:
    rows, ends, since = trades(), 4_000, 3_000
    until_ns = rows[ends][3]

    def keyed(name: str, given: Sequence[tuple[str, float, int, int]], early_ms: int = 0) -> str:
        async def told(topics: Topics) -> None:
            await topics.create(name, 2)
            names = pa.RecordBatch.from_pydict({"symbol": [row[0] for row in given]})
            found = partition_numbers(names, ("symbol",), 2).tolist()
            for number in range(2):
                own = [row for row, one in zip(given, found, strict=True) if one == number]
                stamped = [
                    one._replace(timestamp_ms=one.timestamp_ms - early_ms) for one in records(own)
                ]
                await topics.append(TopicPartition(name, number), stamped)

        story(broker.bootstrap, told)
        return f"kafka:{broker.bootstrap}/{name}?format=csv&key=symbol"

    def went_on(place: str, state: str) -> str:
        said = ran(
            folder, "--source", place, "--sink", f"log:{state}/out", "--checkpoint-dir", state
        )
        return next(line for line in said.splitlines() if line.startswith("Digest"))

    lines = [as_csv(row) for row in rows[:ends]]
    (folder / "history.csv").write_bytes(b"\n".join(reversed(lines)))
    history, file = f"csv:{folder}/history.csv", f"{folder}/vwap.py"
    place = keyed(f"{topic}-live", rows[since:])
    receipt = backfilled(file, history, place, folder / "state", until_ns, partitions=1)
    assert receipt.rows == ends
    assert not [*receipt.broken(), *receipt.unproven()]
    assert went_on(place, "state") == went_on(keyed(f"{topic}-whole", rows), "whole")
    (folder / "history.csv").write_bytes(b"\n".join(lines[:-1]))
    (gap,) = backfilled(
        file, history, place, folder / "other", until_ns, partitions=1, adopts=False
    ).broken()
    assert "1 records of the log are missing in history" in gap
    early = keyed(f"{topic}-early", rows[since:], early_ms=50_000)
    with pytest.raises(InputError, match="dated before its event"):
        backfilled(file, history, early, folder / "early", until_ns, partitions=1)


def test_truncated_and_recreated_topics_are_errors(
    broker: Broker, topic: str, folder: Path
) -> None:
    filled(broker.bootstrap, topic, trades(rows=500))
    place = f"kafka:{broker.bootstrap}/{topic}?format=csv"
    given = ("--source", place, "--checkpoint-dir", "state")
    ran(folder, *given, "--sink", "none.csv")

    async def removed(topics: Topics) -> None:
        await topics.append(TopicPartition(topic, 0), records(trades(500, 500)))
        await topics.remove_before(TopicPartition(topic, 0), 700)

    story(broker.bootstrap, removed)
    said = refused(folder, *given)
    assert "begins at offset 700, and the run has read up to 500" in said
    assert "start over in another --checkpoint-dir" in said

    async def anew(topics: Topics, rows: int) -> None:
        await topics.delete(topic)
        while True:
            await asyncio.sleep(0.1)
            try:
                await topics.create(topic, 1)
                break
            except AssertionError:  # it is being removed still
                continue
        await topics.append(TopicPartition(topic, 0), records(trades(7, rows)))

    story(broker.bootstrap, lambda topics: anew(topics, 300))
    said = refused(folder, *given)
    assert "is of a topic with the id" in said
    story(broker.bootstrap, lambda topics: anew(topics, 600))
    assert "it is another topic of this name" in refused(folder, *given)


def test_cut_records_that_are_gone_are_missed_where_a_checkpoint_tells_of_them(
    broker: Broker, topic: str, folder: Path
) -> None:
    """What lies in the output is not written there again."""
    (folder / "vwap.py").write_text(PIPELINE.replace('"vwap")', f'"{topic}")'))
    filled(broker.bootstrap, topic, trades(rows=500))
    at = f"kafka:{broker.bootstrap}/{topic}"
    given = ("--source", f"{at}?format=csv", "--sink", f"{at}-out", "--checkpoint-dir", "state")
    ran(folder, *given)

    async def removed(topics: Topics) -> None:
        await topics.delete(f"{topic}.cuts")

    def said() -> str:
        process = started(folder, *given)
        _, found = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1, found
        return found

    story(broker.bootstrap, removed)
    until(lambda: check(f"{broker.bootstrap}/{topic}.cuts").endswith("yet"))
    assert "has no record of how far it was committed" in said()
    assert "has no record of how far it was committed" in said()


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[Broker, Path]]:
    key, certificate = certified(tmp_path)
    try:
        broker = Broker(tmp_path / "kafka", secure=Secure(key, certificate, "u", "secret-word"))
    except MissingError as error:
        skip(error)
    with broker:
        yield broker, certificate


def test_tls_and_passwords_are_used_and_never_shown(secure, folder: Path) -> None:
    broker, certificate = secure
    filled(broker.bootstrap, "t", trades())
    place = f"kafka:{broker.secure_bootstrap}/t?format=csv"
    (folder / "password").write_text("secret-word\n")
    (folder / "ripple.toml").write_text(
        '[kafka]\nsecurity_protocol = "SASL_SSL"\nsasl_mechanism = "SCRAM-SHA-256"\n'
        f'sasl_username = "u"\nsasl_password_file = "password"\nca_file = "{certificate}"\n'
    )
    given = {"RIPPLE_CONFIG": "ripple.toml"}
    said = ran(folder, "--source", place, "--sink", "topic.csv", **given)
    ran(folder, "--source", "trades.csv", "--sink", "file.csv")
    assert (folder / "topic.csv").read_bytes() == (folder / "file.csv").read_bytes()
    assert "secret-word" not in said
    (folder / "password").write_text("guessed-word\n")
    said = refused(folder, "--source", place, **given)
    assert "Authentication" in said
    assert "guessed-word" not in said
    (folder / "password").write_text("secret-word\n")
    (folder / "ripple.toml").write_text((folder / "ripple.toml").read_text().split("ca_file")[0])
    said = refused(folder, "--source", place, **given)
    assert "certificate verify failed" in said
    assert "secret-word" not in said


async def read_by(bootstrap: str, group: str) -> dict[TopicPartition, int]:
    """Return how far a group has read, as tools that show lag ask for it."""
    broker = KafkaBroker(bootstrap, Security())
    try:
        return await broker.read_by(group)
    finally:
        await broker.close()


def unsigned(**claims: object) -> str:
    """Return a token that nobody has signed."""
    parts = ({"alg": "none"}, {"sub": "u", **claims})
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return b".".join([*coded, b""]).decode()


def test_oauth_tokens_are_used_and_never_shown(tmp_path: Path, folder: Path) -> None:
    try:
        broker = Broker(tmp_path / "kafka", takes_tokens=True)
    except MissingError as error:
        skip(error)
    given = {
        "RIPPLE_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "RIPPLE_KAFKA_SASL_MECHANISM": "OAUTHBEARER",
        "RIPPLE_KAFKA_SASL_TOKEN_FILE": "token",
    }
    now, token = int(time.time()), folder / "token"
    with broker:
        filled(broker.bootstrap, "t", trades())
        place = f"kafka:{broker.secure_bootstrap}/t?format=csv"
        token.write_text(unsigned(iat=now, exp=now + 600))
        said = ran(folder, "--source", place, "--sink", "topic.csv", **given)
        ran(folder, "--source", "trades.csv", "--sink", "file.csv")
        assert (folder / "topic.csv").read_bytes() == (folder / "file.csv").read_bytes()
        assert token.read_text() not in said
        token.write_text(unsigned(iat=now - 900, exp=now - 600))
        said = refused(folder, "--source", place, **given)
        assert "Authentication" in said
        assert token.read_text() not in said
        token.unlink()
        said = refused(folder, "--source", place, **given)
        assert "kafka_sasl_token_file: cannot read token" in said


def test_sessions_that_end_with_their_tokens_are_renewed_before(
    tmp_path: Path, folder: Path
) -> None:
    """Nothing is told, and nothing waits, while tokens of half a minute come and go."""
    try:
        sessions = {"connections.max.reauth.ms": "60000"}
        broker = Broker(tmp_path / "kafka", sessions, takes_tokens=True)
    except MissingError as error:
        skip(error)
    good_s = 30
    end_s: list[float] = []

    def token() -> str:
        now = int(time.time())
        end_s.append(now + good_s)
        return unsigned(iat=now, exp=now + good_s)

    with broker, Issuer(token, good_s) as issuer:
        threading.Thread(target=issuer.serve_forever, daemon=True).start()
        given = {
            "RIPPLE_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "RIPPLE_KAFKA_SASL_MECHANISM": "OAUTHBEARER",
            "RIPPLE_KAFKA_SASL_TOKEN_URL": issuer.url,
            "RIPPLE_KAFKA_SASL_CLIENT_ID": "id",
            "RIPPLE_KAFKA_SASL_CLIENT_SECRET": "s3cret/",
        }
        filled(broker.bootstrap, "t", trades(rows=ROWS // 2))
        place = f"kafka:{broker.secure_bootstrap}"
        ends = ("--source", f"{place}/t?format=csv", "--sink", f"{place}/out")
        process = started(folder, *ends, "--checkpoint-dir", "state", "-f", **given)
        until(lambda: len(end_s) > 1 and time.time() > end_s[0])

        async def more(topics: Topics) -> None:
            await added(topics, "t", trades(ROWS // 2, ROWS // 2), 1)

        story(broker.bootstrap, more)
        read = {TopicPartition("t", 0): ROWS}
        until(lambda: asyncio.run(read_by(broker.bootstrap, "vwap")) == read)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
        issuer.shutdown()
    assert f"Events processed:  {ROWS}," in said
    assert "does not answer" not in said
    assert "s3cret" not in said


@pytest.mark.parametrize("key", ["", "&key="])
def test_shares_of_a_replay_are_partitions_that_tasks_read_themselves(
    key: str, broker: Broker, topic: str, folder: Path
) -> None:
    plan = load_plan(str(folder / "vwap.py"))
    parcel = Parcel.of(str(folder / "vwap.py"), lambda plan: b"")
    filled(broker.bootstrap, topic, trades(), PARTITIONS)
    place = f"kafka:{broker.bootstrap}/{topic}?format=csv{key}"
    source = sources_at(place, plan)
    assert [share.rows for share in source.shares] == [ROWS // PARTITIONS] * PARTITIONS
    assert (source.divided_anew(plan) is None) == (not key)
    report, rows, _ = replayed(parcel, plan, source)
    other, expected, _ = replayed(parcel, plan, sources_at(str(folder / "trades.csv"), plan))
    assert (report.digest, rows) == (other.digest, expected)
    part = sources_at(place, plan, start=Bound.parse("100", ""), stop=Bound.parse("300", ""))
    assert replayed(parcel, plan, part)[0].counters["consumed"] == 200 * PARTITIONS
    minute = (Bound.parse("1970-01-01T00:01:00Z", ""), Bound.parse("120000000000ns", ""))
    timed = sources_at(place, plan, start=minute[0], stop=minute[1])
    assert replayed(parcel, plan, timed)[0].counters["consumed"] == 1200
    later = sources_at(place, plan, start=Bound.parse("2200-01-01", ""))
    assert [share.rows for share in later.shares] == [0] * PARTITIONS
    with pytest.raises(InputError, match="ends at offset 1500, and 9000 was requested"):
        sources_at(place, plan, stop=Bound.parse("9000", ""))


MARKET = (
    PIPELINE.split("pipeline = (", maxsplit=1)[0]
    + """
start = rp.Pipeline("market")
both = rp.union("both", start.source("trades", Trade), start.source("quotes", Trade))
bars = both.partition("by", key="symbol").window("m", rp.Tumbling("10s"))
pipeline = bars.fold("bars", n=rp.count(), last=rp.last("price")).sink("out").also(
    both.sink("events"))
"""
)


@pytest.mark.parametrize("key", ["", "&key=symbol"])
def test_topics_of_several_sources_are_read_by_tasks_as_by_a_run(
    key: str, broker: Broker, topic: str, folder: Path
) -> None:
    file = folder / "market.py"
    file.write_text(MARKET)
    plan, places = load_plan(str(file)), {}

    async def told(topics: Topics) -> None:
        for name, count in (("trades", 4), ("quotes", 2)):
            rows = trades(rows=900) if name == "trades" else trades(300, 900)
            symbols = pa.RecordBatch.from_pydict({"symbol": [row[0] for row in rows]})
            numbers = partition_numbers(symbols, ["symbol"], count).tolist()
            await topics.create(f"{topic}-{name}", count)
            for number in range(count):
                own = [row for row, at in zip(rows, numbers, strict=True) if at == number]
                part = TopicPartition(f"{topic}-{name}", number)
                await topics.append(part, records(own, as_csv))
            places[name] = f"kafka:{broker.bootstrap}/{topic}-{name}?format=csv{key}"

    story(broker.bootstrap, told)
    sources, seen = sources_at(places, plan), []
    assert len(sources.portions(plan)) == (2 if key else 1)
    report, shown, _ = replayed(Parcel.of(str(file), lambda plan: b""), plan, sources)
    rp.run(
        plan,
        source=places,
        sink={"events": f"{folder}/events.csv"},
        on_batch=lambda engine, _: seen.append(engine),
    )
    assert report.digests == seen[-1].digests
    assert len(shown["events"]) == report.counters["consumed"] == 1800


async def found_in(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Return keys and values of what is in a topic of one partition now."""
    place, found = KafkaPartition(topic, 0), []
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        end = (await consumer.end_offsets([place]))[place]
        while await consumer.position(place) < end:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += [(record.key, record.value) for record in records]
    return found


def test_compacted_topic_is_read_across_holes(broker: Broker, topic: str, folder: Path) -> None:
    """Null values are told, and keys may be others than the pipeline's."""
    given, place = trades(rows=900), TopicPartition(topic, 0)
    left: list[tuple[bytes | None, bytes | None]] = []

    async def told(topics: Topics) -> None:
        compacts = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        await topics.create(topic, 1, **compacts, **{"segment.ms": "50"})
        for part in (given[:400], given[400:800], given[800:]):
            rows = [one._replace(key=b"%d" % (n % 90)) for n, one in enumerate(records(part))]
            await topics.append(place, [*rows, Record(b"7", None, rows[-1].timestamp_ms)])
            await asyncio.sleep(0.1)
        while not left or len(left) > 400:  # all but the segment that is written is compacted
            await asyncio.sleep(0.2)
            left[:] = await found_in(broker.bootstrap, topic)

    story(broker.bootstrap, told)
    said = ran(
        folder, "--source", f"kafka:{broker.bootstrap}/{topic}?format=csv", "--sink", "topic.csv"
    )
    values = [value for _, value in left if value is not None]
    assert f"Rejected:          {len(left) - len(values)}" in said
    (folder / "left.csv").write_bytes(b"\n".join([*values, b""]))
    ran(folder, "--source", "left.csv", "--sink", "file.csv")
    assert (folder / "topic.csv").read_bytes() == (folder / "file.csv").read_bytes()


def test_micro_batches_go_on_from_a_run_over_a_topic(
    broker: Broker, topic: str, folder: Path
) -> None:
    pipeline = str(folder / "vwap.py")
    plan, given = load_plan(pipeline), trades()
    filled(broker.bootstrap, topic, given[: ROWS // 2], PARTITIONS)
    place, out = f"kafka:{broker.bootstrap}/{topic}?format=csv", f"log:{folder}/out"
    ran(folder, "--source", place, "--sink", out, "--checkpoint-dir", f"{folder}/state")

    async def more(topics: Topics) -> None:
        await added(topics, topic, given[ROWS // 2 :], PARTITIONS)

    story(broker.bootstrap, more)
    stream = Stream.of(
        Parcel.of(pipeline, lambda plan: b""),
        place,
        {"output": out},
        f"{folder}/state",
        partitions=1,
        batch_rows=1000,
        keep=3,
    )
    (number,) = range(stream.partitions)
    end = stream.bounds()[1]
    steps = [{name: offset - back for name, offset in end.items()} for back in (300, 100, 0)]
    turns = [
        Turn(stream, number, stop, HintReceiver("127.0.0.1", 9, str(folder))) for stop in steps
    ]
    found = [turn.run() for turn in turns]
    here().drop(turns[0])
    assert [one["events"] for one in found] == [ROWS // 2 - 1200, 800, 400]
    assert "the beginning" not in found[0]["restored"]
    shares = sources_at(place, plan)
    report, _, _ = replayed(Parcel.of(pipeline, lambda plan: b""), plan, shares, closes=False)
    assert found[-1]["counters"]["consumed"] == report.counters["consumed"] == ROWS
    whole = Engine(plan, inputs=list(end))
    for share in shares.shares:
        for entry in share.entries(plan):
            whole.apply(share.name, entry.records, entry.next_offset)
    whole.stabilize()
    assert found[-1]["digests"] == whole.digests


def test_a_letter_of_a_micro_batch_can_be_retried(
    broker: Broker, topic: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = Record(b"S1", b"no trade")

    async def told(topics: Topics) -> None:
        await topics.create(topic, 1)
        await topics.append(TopicPartition(topic, 0), [*records(trades(rows=3)), bad])

    story(broker.bootstrap, told)
    place, state = f"kafka:{broker.bootstrap}/{topic}?format=csv", f"{folder}/state"
    stream = Stream.of(
        Parcel.of(str(folder / "vwap.py"), lambda plan: b""),
        place,
        {"output": f"log:{folder}/out"},
        state,
        partitions=1,
        batch_rows=1000,
        keep=3,
    )
    turn = Turn(stream, 0, stream.bounds()[1], HintReceiver("127.0.0.1", 9, str(folder)))
    turn.run()
    here().drop(turn)
    assert main(["dead-letter", "retry", "--checkpoint-dir", state, "--source", place]) == 0
    assert "1 retried" in capsys.readouterr().out
    said = ran(folder, "--source", place, "--sink", "o.csv", "--dead-letter", "letters.jsonl")
    assert "Events processed:  5" in said
    assert (folder / "letters.jsonl").read_text().count("too few fields") == 2
