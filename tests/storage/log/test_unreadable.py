"""What stands in the place of a log's files: a hint is done without, the truth is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from ripple.cli.main import main
from ripple.storage.log import LogDamagedError, LogSettings, PartitionWriter, Topic, TopicError
from ripple.storage.log.verify import verify
from ripple.world import LiveDisk
from tests.storage.log.trades import SCHEMA, ManualClock, read_all, records_of, rows_of

ROWS = rows_of(0, 40)


def topic_in(folder: Path, settings: LogSettings | None = None) -> Topic:
    return Topic.create(LiveDisk(folder), "ticks", SCHEMA, partitions=2, settings=settings)


def written(folder: Path, *, epoch: int | None = None) -> Topic:
    """A topic of two partitions; the first one has segments and their indexes."""
    settings = LogSettings(segment_bytes_max=1024)
    topic = topic_in(folder, settings)
    for partition in (0, 1):
        with PartitionWriter(topic, partition, ManualClock(), epoch=epoch) as writer:
            for at in range(0, 40, 10):
                writer.append(records_of(ROWS[at : at + 10]))
    return topic


def stand_in(path: Path) -> None:
    """Put a folder in the place of a file."""
    path.unlink()
    path.mkdir()


def test_hints_that_cannot_be_read_are_done_without(tmp_path: Path) -> None:
    topic = written(tmp_path)
    folder = tmp_path / topic.path
    hints = [*(folder / "0").glob("*.index"), folder / "0.durable"]
    assert len(hints) > 2
    for path in hints:
        stand_in(path)
    assert read_all(topic) == ROWS
    assert verify(topic, 0).records == 40
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        for number in range(4):  # segments are sealed whose indexes find a folder in their place
            writer.append(records_of(rows_of(40 + 10 * number, 10)))
    assert read_all(topic) == rows_of(0, 80)


def test_a_segment_in_whose_place_a_folder_stands_is_named_and_what_is_lost_is_given_up(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = written(tmp_path)
    second = sorted((tmp_path / topic.path / "0").glob("*.log"))[1]
    stand_in(second)
    for read in (read_all, lambda topic: verify(topic, 0)):
        with pytest.raises(LogDamagedError, match=rf"{second.name} is .*: move it away"):
            read(topic)
    second.rmdir()
    place = f"log:{tmp_path / topic.path}"
    assert main(["log", "verify", place]) == 1
    advice = capfd.readouterr().out.split("ripple log repair ")[-1].splitlines()[0]
    assert main(["log", "repair", *advice.split()]) == 0
    assert main(["log", "verify", place]) == 0


@pytest.mark.parametrize("damage", ["folder", "bytes"])
def test_a_description_is_put_back_from_a_topic_that_is_made_alike(
    tmp_path: Path, damage: str
) -> None:
    topic = written(tmp_path)
    description = tmp_path / topic.path / "topic"
    if damage == "folder":
        stand_in(description)
    else:
        description.write_bytes(description.read_bytes()[:-2])
    with pytest.raises(TopicError, match="put there the file `topic` of a new topic"):
        Topic.open(topic.disk, topic.path)
    if damage == "folder":
        description.rmdir()
    alike = Topic.create(
        topic.disk,
        "alike",
        topic.schema,
        partitions=topic.partitions,
        key=topic.key,
        time_field=topic.time_field,
        settings=topic.settings,
    )
    (tmp_path / alike.path / "topic").replace(description)
    assert read_all(Topic.open(topic.disk, topic.path)) == ROWS


@pytest.mark.parametrize("epoch", [None, 3])
def test_a_partition_of_which_nothing_is_left_is_not_called_whole(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], epoch: int | None
) -> None:
    topic = written(tmp_path, epoch=epoch)
    place = f"log:{tmp_path / topic.path}"
    assert main(["log", "verify", place]) == 0
    (tmp_path / topic.path / "1").rename(tmp_path / "gone")
    capfd.readouterr()
    assert main(["log", "verify", place]) == 1  # the notes of its owner are beside it
    assert "partition 1: DAMAGED" in capfd.readouterr().out
    for notes in (tmp_path / topic.path).glob("1*.durable"):
        notes.unlink()
    assert main(["log", "verify", place]) == 1
    assert "though other partitions were written to" in capfd.readouterr().out


def test_topic_without_any_writes_is_intact(tmp_path: Path) -> None:
    topic = topic_in(tmp_path)
    assert main(["log", "verify", f"log:{tmp_path / topic.path}"]) == 0
