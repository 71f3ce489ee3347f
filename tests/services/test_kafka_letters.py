"""Dead letters of a topic are retried there, each once, after any interruption."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from coordinator.dashboard.letter_retry import Retry, retry
from ripple.cli.main import main
from ripple.connectors.kafka import retries
from ripple.connectors.kafka.producer import KafkaProducer
from ripple.world.broker import Record, TopicPartition, UnknownOutcomeError
from tests.services.kafka import Broker
from tests.services.kafka_topics import Topics

pytestmark = pytest.mark.services

PIPELINE = """
import ripple as rp

@rp.record(version=1)
class Number:
    x: int = rp.field(gt=0)

pipeline = (
    rp.Pipeline("{name}")
    .source("numbers", Number)
    .partition("by-x", key="x")
    .fold("seen", count=rp.count())
    .sink("out")
)
"""
GOOD = [Record(b"g", b"1"), Record(None, b"2")]
BAD = [
    Record(b"k%d" % number, value, 5, (("n", b"\xff%d" % number),))
    for number, value in enumerate((b"-1", b"no number", b"\xff\0", b"-2", b"-3"))
]


async def written(broker: Broker, topic: str, partitions: Sequence[Sequence[Record]]) -> None:
    async with Topics(broker.bootstrap) as topics:
        await topics.create(topic, len(partitions))
        for number, records in enumerate(partitions):
            await topics.append(TopicPartition(topic, number), records)


async def read(broker: Broker, topic: str, partition: int) -> list[tuple[object, ...]]:
    """Return what is committed there, as aiokafka reads it."""
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with consumer:
        (place,) = (one for one in consumer.assignment() if one.partition == partition)
        end = (await consumer.end_offsets([place]))[place]
        found: list[tuple[object, ...]] = []
        while await consumer.position(place) < end:
            for records in (await consumer.getmany(place, timeout_ms=500)).values():
                found += [(one.key, one.value, tuple(one.headers)) for one in records]
        return found


def test_dead_letters_are_retried_into_their_topic_once(
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    name = topic[-40:]
    (tmp_path / "pipe.py").write_text(PIPELINE.format(name=name))
    deletion = Record(b"gone", None)
    asyncio.run(written(broker, topic, [[*GOOD, *BAD[:2]], [*BAD[2:], deletion]]))
    place = f"kafka:{broker.bootstrap}/{topic}?format=csv"
    given = ["--source", place, "--sink", "out.csv", "--checkpoint-dir", "state"]
    assert main(["run", "pipe.py", *given]) == 0

    # The second commit is done, and nobody hears of it; the third ends the process before it.
    monkeypatch.setattr(retries, "LETTERS_MAX", 1)
    commit, calls = KafkaProducer.commit, Counter[str]()

    async def troubled(self: KafkaProducer) -> None:
        calls["commit"] += 1
        if calls["commit"] == 3:
            raise RuntimeError("killed")
        await commit(self)
        if calls["commit"] == 2:
            raise UnknownOutcomeError("lost")

    monkeypatch.setattr(KafkaProducer, "commit", troubled)
    again = ["dead-letter", "retry", "--checkpoint-dir", "state", "--source", place]
    with pytest.raises(RuntimeError, match="killed"):
        main(again)
    monkeypatch.setattr(KafkaProducer, "commit", commit)

    # A leader that was replaced, and does not know it, tells an older end, once.
    find_end, older_ends = retries.end_what_hangs, [0]

    async def told(
        broker: Any, producer: Any, alone: TopicPartition, others: Iterable[TopicPartition]
    ) -> int:
        end = await find_end(broker, producer, alone, others)
        return older_ends.pop() if older_ends else end

    monkeypatch.setattr(retries, "end_what_hangs", told)
    capfd.readouterr()
    assert main(again) == 0
    said = capfd.readouterr()
    assert said.out.splitlines()[:2] == [f"{name}/0: 3 retried", "         2  were retried before"]
    assert "it is a deletion" in said.err
    for number, bad in enumerate((BAD[:2], BAD[2:])):
        found = asyncio.run(read(broker, topic, number))
        expected = [(record.key, record.value, record.headers) for record in bad]
        assert found[-len(bad) :] == expected
        assert Counter(found) == Counter(expected * 2) + Counter(
            (record.key, record.value, record.headers)
            for record in (GOOD if number == 0 else [deletion])
        )
    assert main(["dead-letter", "list", "--checkpoint-dir", "state"]) == 0
    assert capfd.readouterr().out.count("(retried)") == len(BAD)
    # The next run reads them again, and refuses them at new offsets; the dashboard retries these.
    assert main(["run", "pipe.py", *given]) == 0
    asked = Retry(name, 0, "numbers/1", None, "is not", "once more")
    done = asyncio.run(retry(asked, store="state", source=place))["done"]
    assert done == f"{name}/0: 2 retried, 2 were retried before: once more"
