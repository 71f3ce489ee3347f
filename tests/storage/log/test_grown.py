"""Topics of outputs during changes of a stage's partition count, and back."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from ripple.connectors.connector import Part
from ripple.connectors.contract import Commit
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.log.grown import in_use, look_at_part, sink_of_part
from ripple.connectors.log.sink import AT_REST, LogSink, committed_in
from ripple.core.codec.crc import crc32c
from ripple.core.cut import has_reached
from ripple.core.row_ops import OP, OP_REMOVE, OP_SET
from ripple.model.schema.types import Field, Int64, Schema, String
from ripple.spark.log_stream import LogStream
from ripple.storage.log import StaleEpochError, Topic, TopicError
from ripple.world import LiveClock, LiveDisk
from tests.cli.processes import ripple

SCHEMA = Schema(
    "p.o", (Field(OP, String()), Field("key", String()), Field("n", Int64(), optional=True))
)
OWNER = Owner("p", "o")
EPOCHS = count(1)


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return Topic.create(LiveDisk(f"{tmp_path}"), "o", SCHEMA, partitions=2)


def held(topic: Topic, number: int, of: int, epoch: int | None = None) -> LogSink:
    epoch = next(EPOCHS) if epoch is None else epoch
    return sink_of_part(topic, Part(number, of), LiveClock(), OWNER, epoch=epoch)


def changes(*rows: tuple[int, str, int | None]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True))
    kinds = (pa.int8(), pa.string(), pa.int64())
    arrays = [pa.array(one, kind) for one, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [OP, "key", "n"])


def show(sink: LogSink, cut: int, *rows: tuple[int, str, int | None]) -> None:
    reached = Commit({"0/t/0": cut}, f"{cut:016x}")
    sink.write(changes(*rows), reached)
    sink.commit(reached)


def test_a_topic_takes_the_numbers_of_writers_that_it_had(topic: Topic, tmp_path: Path) -> None:
    description = (tmp_path / "o/topic").read_text()
    assert topic.divided(2) is topic
    made = topic.divided(8).divided(4).divided(1)
    assert made == Topic.open(topic.disk, "o")
    assert (made.partitions, made.before) == (8, (1, 2, 4))
    assert [count for count in range(9) if made.takes(count)] == [1, 2, 4, 8]
    assert "(format 1)" in description
    assert "(format 2)" in (tmp_path / "o/topic").read_text()
    with pytest.raises(TopicError, match="8 partitions cannot be divided among 3"):
        made.divided(3)
    assert Topic.open(topic.disk, "o") == made


def test_a_topic_by_key_does_not_grow(tmp_path: Path) -> None:
    keyed = Topic.create(LiveDisk(f"{tmp_path}"), "keyed", SCHEMA, partitions=2, key=["key"])
    with pytest.raises(TopicError, match="create another topic"):
        keyed.divided(4)


@pytest.mark.parametrize("more", ["(before (x))", "(after (1))", "(before (3))"])
def test_a_description_with_other_than_what_is_known_is_refused(
    topic: Topic, tmp_path: Path, more: str
) -> None:
    file = tmp_path / "o/topic"
    line = file.read_text().partition("\n")[0].removesuffix(")") + f" {more})"
    file.write_text(f"{line}\ncrc32c {crc32c(line.encode()):08x}\n")
    with pytest.raises(TopicError, match=r"before|partitions"):
        Topic.open(topic.disk, "o")


def test_rows_go_to_a_new_partition_and_back_and_a_table_has_each_once(
    topic: Topic, tmp_path: Path
) -> None:
    one = held(topic, 0, 2)
    show(one, 5, (OP_SET, "a", 1), (OP_SET, "b", 2))
    stream = LogStream.of({"path": f"log:{tmp_path}/o"})
    assert stream.begin() == {"0": 0, "1": 0}
    topic = topic.divided(4)
    assert in_use(topic) == 2
    show(one, 6, (OP_SET, "b", 3))  # the former owner continues
    other = held(topic, 2, 4)
    assert (other.committed, other.others, other.beside) == (None, ({"0/t/0": 6},), [])
    show(other, 7, (OP_SET, "b", 4))
    assert in_use(topic) == 4
    # Both have b until the former owner's partition is read further: the newer owner's row holds.
    assert ripple("log", "table", f"{tmp_path}/o").out == '{"key":"a","n":1}\n{"key":"b","n":4}\n'
    assert stream.ends() == {"0": 3, "1": 0, "2": 1, "3": 0}
    added = stream.splits(stream.begin(), stream.ends())[-1]
    assert (added.partition, added.first, added.end) == (2, 0, 1)
    one.close()
    one = held(topic, 0, 4)
    show(one, 7, (OP_REMOVE, "b", None))
    one.close()
    # Back: the owner of partition 0 of 2 takes over 2 of 4.
    back = held(topic, 0, 2)
    assert back.others == ({"0/t/0": 7},)
    with pytest.raises(StaleEpochError):
        show(other, 8, (OP_SET, "b", 5))
    show(back, 9, (OP_SET, "b", 5))
    (beside,) = back.beside
    beside.rest(changes((OP_REMOVE, "b", None)))
    assert (committed_in(topic, 2), in_use(topic)) == (AT_REST, 2)
    assert ripple("log", "table", f"{tmp_path}/o").out == '{"key":"a","n":1}\n{"key":"b","n":5}\n'
    back.close()
    (beside,) = held(topic, 0, 2).beside
    assert beside.is_at_rest
    # Once more; a stage with other inputs finds their positions in earlier cuts.
    assert {"0/t/0": 9} in held(topic, 2, 4).others
    assert {"0/t/0": 7} in held(topic, 2, 4).others


def test_a_partition_is_not_held_while_a_later_owner_has_one_beside_it(topic: Topic) -> None:
    topic = topic.divided(4)
    held(topic, 2, 4, epoch=1_000_000).close()
    assert look_at_part(topic, Part(0, 2), OWNER, "o", epoch=1) == 1_000_000
    with pytest.raises(StaleEpochError):
        held(topic, 0, 2, epoch=1)
    held(topic, 0, 4, epoch=2).close()


def test_cuts_by_other_paths_are_compared_by_their_inputs() -> None:
    here = {"0/t/0": 5, "1/t/0": 4, "0/t/1": 9, "1/t/1": 9}
    assert has_reached(here, {"0/t/0": 5, "1/t/0": 4, "0/t/1": 9, "1/t/1": 8})
    assert not has_reached(here, {"0/t/0": 5, "1/t/0": 5, "0/t/1": 9, "1/t/1": 9})
    assert has_reached(here, {"0/t/0": 4, "0/t/1": 9})  # of one sender, with rows perhaps in both
    assert not has_reached(here, {"0/t/0": 5, "0/t/1": 9})
    assert not has_reached(here, {"0/t/2": 1})
    assert has_reached(here, {})
