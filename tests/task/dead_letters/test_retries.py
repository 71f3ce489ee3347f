"""Letters go back to their source once each, whatever ends the attempt."""

from __future__ import annotations

from functools import partial

import pytest

from ripple.connectors import retries
from ripple.connectors.retries import Retries, Target, read_journal, retries_path
from ripple.core.errors import InputError
from ripple.core.hashing import partition_of
from ripple.engine.machine import RejectedRow
from ripple.model.batch import Batch
from ripple.model.schema.types import Field, Float, Int, Int64, Schema, String
from ripple.storage.log import LogSettings, PartitionReader, PartitionWriter, Topic, TopicError
from ripple.task.drive import refused
from ripple.testing import Chance, SimulationError, SimWorld, enumerate_crashes
from ripple.world import Disk, DiskLockedError, LiveClock, LiveDisk
from tests.examples import EXAMPLES, SAMPLED, THINNED
from tests.storage.log.trades import SCHEMA, read_all, records_of, rows_of
from tests.task.letter_places import kept, owned, simulated

JOURNAL = retries_path("ticks")
ROWS = rows_of(0, 12)


def write_letters(disk: Disk, *rows, **world) -> None:
    """Refuse these rows, which stand one after the other in the input."""
    batch = Batch(records_of(list(rows)), len(rows))
    failed = [RejectedRow(at, "map", "no") for at in range(len(rows))]
    with owned(disk, "ticks", **world) as (log, *_):
        log.write("ticks", refused(batch, failed), batch)


def pulled_out(*_: object) -> None:
    raise OSError("pulled out")


def retry(disk: Disk, topic: Topic, name: str = "here") -> retries.Outcome:
    with Target(topic, LiveClock()) as target:
        journal = Retries(disk, JOURNAL, target, name, clock=LiveClock(), random=Chance(1))
        try:
            journal.finish(partial(kept, disk, "ticks", superseded=True))
            journal.send(kept(disk, "ticks"))
        finally:
            journal.close()
    return journal.outcome


def test_letters_go_to_the_partition_of_their_key_and_only_once(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    write_letters(disk, *ROWS)
    topic = Topic.create(disk, "ticks", SCHEMA, partitions=3, key=["symbol"])
    assert retry(disk, topic).sent == len(ROWS)
    again = retry(disk, topic)
    assert (again.sent, again.before) == (0, len(ROWS))
    for partition in range(3):
        assert read_all(topic, partition=partition) == [
            row for row in ROWS if partition_of(row["symbol"].encode(), 3) == partition
        ]


def test_only_partitions_that_get_letters_are_opened_and_held_ones_are_noted_nowhere(
    tmp_path,
) -> None:
    disk = LiveDisk(tmp_path)
    write_letters(disk, ROWS[0])
    topic = Topic.create(disk, "ticks", SCHEMA, partitions=3, key=["symbol"])
    chosen = partition_of(ROWS[0]["symbol"].encode(), 3)
    with (
        PartitionWriter(topic, chosen, LiveClock(), holder="feed"),
        pytest.raises(DiskLockedError, match="feed"),
    ):
        retry(disk, topic)
    assert not read_journal(disk, JOURNAL).retried
    with PartitionWriter(topic, (chosen + 1) % 3, LiveClock(), holder="feed"):
        assert retry(disk, topic).sent == 1


def test_journal_knows_records_not_letters(tmp_path) -> None:
    """What two versions refused is one record."""
    disk = LiveDisk(tmp_path)
    write_letters(disk, *ROWS[:2])
    topic = Topic.create(disk, "ticks", SCHEMA)
    retry(disk, topic)
    batch = Batch(records_of(ROWS[:3]), 3)
    with owned(disk, "ticks", version="v2") as (log, *_):
        log.begin({"ticks": 0})
        log.write("ticks", refused(batch, [RejectedRow(at, "map", "no") for at in (1, 2)]), batch)
    assert retry(disk, topic).sent == 1
    assert read_all(topic) == ROWS[:3]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ((Field("symbol", String()), Field("at_ns", Int64())), "no field 'size'"),
        ((*SCHEMA.fields, Field("venue", String())), "lack ['venue']"),
        ((Field("symbol", Float()), *SCHEMA.fields[1:]), "'symbol' is double, not string"),
    ],
)
def test_record_that_no_longer_fits_is_told(tmp_path, fields, reason) -> None:
    disk = LiveDisk(tmp_path)
    write_letters(disk, ROWS[0])
    topic = Topic.create(disk, "ticks", Schema("tick", fields))
    outcome = retry(disk, topic)
    assert outcome.sent == 0
    ((letter, why),) = outcome.refused
    assert letter.offset == 0
    assert reason in why
    assert read_all(topic) == []


def test_new_optional_field_is_none(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    write_letters(disk, ROWS[0])
    schema = Schema("tick", (*SCHEMA.fields, Field("lots", Int(), optional=True)))
    topic = Topic.create(disk, "ticks", schema)
    assert retry(disk, topic).sent == 1
    assert read_all(topic) == [{**ROWS[0], "lots": None}]


def test_appends_are_as_short_as_the_topic_wants_them(tmp_path) -> None:
    disk = LiveDisk(tmp_path)
    long = {**ROWS[0], "symbol": "x" * 3000}
    write_letters(disk, *ROWS[:3], long)
    topic = Topic.create(disk, "ticks", SCHEMA, settings=LogSettings(batch_bytes_max=1500))
    outcome = retry(disk, topic)
    assert outcome.sent == 3
    ((letter, why),) = outcome.refused
    assert (letter.offset, why.endswith("exceed the limit, 1500")) == (3, True)
    with PartitionReader(topic, 0) as reader:
        assert [entry.span for entry in reader.read() if isinstance(entry, Batch)] == [2, 1]


def test_retry_that_was_cut_short_is_finished_where_it_began(tmp_path, monkeypatch) -> None:
    disk = LiveDisk(tmp_path)
    write_letters(disk, *ROWS[:3])
    topic = Topic.create(disk, "ticks", SCHEMA)
    with monkeypatch.context() as patched:
        patched.setattr(Retries, "_append", pulled_out)
        with pytest.raises(OSError, match="pulled out"):
            retry(disk, topic)
    with pytest.raises(InputError, match="retry to here was cut short"):
        retry(disk, Topic.create(disk, "other", SCHEMA), name="there")
    outcome = retry(disk, topic)
    assert (outcome.finished, outcome.sent, outcome.before) == (3, 0, 3)
    assert read_all(topic) == ROWS[:3]


def test_topic_made_anew_during_a_retry_is_told(tmp_path, monkeypatch) -> None:
    disk = LiveDisk(tmp_path)
    monkeypatch.setattr(retries, "LETTERS_MAX", 1)
    write_letters(disk, *ROWS[:3])
    topic = Topic.create(disk, "ticks", SCHEMA)

    def cut_short(_self: Retries, step: retries.Step, _rows: object) -> None:
        if step.sequence == 1:
            raise OSError("pulled out")

    with monkeypatch.context() as patched:
        patched.setattr(Retries, "_append", cut_short)
        with pytest.raises(OSError, match="pulled out"):
            retry(disk, topic)
    with pytest.raises(InputError, match="recreated"):
        retry(disk, topic)


# --- crashes ---


def scenario(world: SimWorld, seed: int) -> None:
    """A few letters, retried by a command that is run until it has finished."""
    if not world.witness.get("written"):
        write_letters(world.disk, *ROWS[:6], **simulated(world))
        world.witness["written"] = True
    try:
        topic = Topic.create(world.disk, "ticks", SCHEMA, settings=LogSettings(sync_appends=0))
    except TopicError:
        topic = Topic.open(world.disk, "ticks")
    with Target(topic, world.clock) as target:
        journal = Retries(
            world.disk,
            JOURNAL,
            target,
            "here",
            clock=world.clock,
            random=world.random,
            guards=world.guards,
        )
        letters = partial(kept, world.disk, "ticks", run=world.loop.run_until_complete)
        journal.finish(partial(letters, superseded=True))
        journal.send(letters())
        journal.close()
    assert read_all(topic) == ROWS[:6]


def nothing_twice(world: SimWorld, seed: int) -> None:
    if world.disk.exists("ticks/topic"):
        found = read_all(Topic.open(world.disk, "ticks"))
        assert found == ROWS[: len(found)]
    read_journal(world.disk, JOURNAL)


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize("safeguards", [(), ("retry_intent",), ("fsync_file",)])
def test_letters_are_retried_once_whatever_crashes(monkeypatch, safeguards) -> None:
    monkeypatch.setattr(retries, "LETTERS_MAX", 3)
    if not safeguards:
        report = enumerate_crashes(
            scenario, check=nothing_twice, pairs=10 * EXAMPLES // SAMPLED, every=THINNED
        )
        assert report.lives > report.runs > 50
        return
    with pytest.raises(SimulationError):
        enumerate_crashes(scenario, check=nothing_twice, pairs=20, without=safeguards)
