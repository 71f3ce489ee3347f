"""One lane: whole cuts, each once, whoever died in between."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ripple.core.errors import InputError
from ripple.storage.log import PartitionReader, Topic
from ripple.task.repartition.lane import LaneReader
from ripple.task.repartition.rows import KIND, MARK, VOID, Mark, lane_schema
from ripple.task.repartition.topics import SETTINGS, LaneTopic
from ripple.testing import sim_world
from tests.examples import EXAMPLES, SAMPLED
from tests.task.repartition.sending import FIELDS, SCHEMA, Sender, cut_of

SMALL = replace(SETTINGS, segment_bytes_max=4096)


def read_from(topic: Topic, cut: Any) -> list[tuple[list[str], int]]:
    with LaneReader(topic, 0) as reader:
        reader.seek(cut)
        found = []
        while (section := reader.next()) is not None:
            found.append((section.rows.column("name").to_pylist(), section.mark.watermark_ns))
    return found


@pytest.mark.parametrize("seed", range(10 * EXAMPLES // SAMPLED))
def test_a_reader_gets_whole_cuts_from_any_of_them_on(seed: int) -> None:
    random, sender = Random(seed), Sender(sim_world(), SMALL)
    for _ in range(12):
        if random.random() < 0.3:
            sender.die_halfway(random.randrange(1, 4))
            sender.come_back()
            assert (sender.lane.mark is None) == (not sender.sent)
        sender.send(random.choice([0, 0, 1, 3, 50]))
    for at in range(len(sender.sent) + 1):
        cut = cut_of(at) if at else None
        assert read_from(sender.topic, cut) == sender.sent[at:], at
        between = {**cut_of(at), "in/2": 2 * at + 1}  # the reader of one input is further
        assert read_from(sender.topic, between) == sender.sent[at:], at


def test_owner_after_a_death_knows_which_rows_count() -> None:
    sender = Sender(sim_world())
    assert sender.lane.mark is None
    sender.die_halfway(2)
    sender.come_back()
    assert sender.lane.mark is None
    sender.send(3)
    sender.lane.close()
    sender.come_back()
    assert sender.lane.mark == Mark(None, cut_of(1), 0)
    sender.die_halfway(1)
    for _ in range(3):
        sender.come_back()
        assert sender.lane.mark == Mark(None, cut_of(1), 0)
        sender.lane.close()
    with PartitionReader(sender.topic, 0) as reader:
        kinds = [kind for batch in reader.read() for kind in batch.records.column(KIND).to_pylist()]
    assert kinds == ["set", "set", VOID, "set", "set", "set", MARK, "set", VOID]


def test_without_a_void_a_dead_sender_s_rows_would_count_twice() -> None:
    sender = Sender(sim_world())
    sender.die_halfway(2)
    sender.come_back(guards=lambda safeguard: safeguard != "void")
    sender.send(1)
    assert read_from(sender.topic, None) != sender.sent


def test_rows_too_long_for_one_frame_are_one_cut() -> None:
    sender = Sender(sim_world(), replace(SETTINGS, batch_bytes_max=4096))
    sender.send(500)
    sender.send(1)
    assert read_from(sender.topic, None) == sender.sent
    assert read_from(sender.topic, cut_of(1)) == sender.sent[1:]


def test_released_cuts_are_removed_and_the_rest_can_be_read() -> None:
    sender = Sender(sim_world(), SMALL)
    for _ in range(30):
        sender.send(20)
    assert sender.lane.has_sealed
    sender.lane.release(cut_of(20))
    with PartitionReader(sender.topic, 0) as reader:
        first, _ = reader.range()
    assert first > 0
    for at in range(20, 31):
        assert read_from(sender.topic, cut_of(at)) == sender.sent[at:]
    with pytest.raises(InputError, match="its reader's checkpoints are lost"):
        read_from(sender.topic, None)
    with pytest.raises(InputError, match="its reader's checkpoints are lost"):
        read_from(sender.topic, cut_of(3))
    sender.lane.close()
    sender.come_back()  # another owner finds the same
    sender.send(2)
    sender.lane.release(cut_of(31))
    assert read_from(sender.topic, cut_of(30)) == sender.sent[30:]
    with LaneReader(sender.topic, 0) as reader:
        since, last = reader.range()
    assert since is not None
    assert last == cut_of(31)


def test_lanes_of_another_plan_are_refused() -> None:
    world = sim_world()
    lanes = LaneTopic("edges/p/records", SCHEMA, 3, 2)
    assert lanes.open(world.disk).partitions == 6
    assert [lanes.lane(sender, receiver) for receiver in (0, 1) for sender in (0, 1, 2)] == [
        *range(6)
    ]
    for other in (
        LaneTopic("edges/p/records", SCHEMA, 3, 3),
        LaneTopic("edges/p/records", lane_schema("p.records", FIELDS[:1]), 3, 2),
    ):
        with pytest.raises(Exception, match="begin with another folder"):
            other.open(world.disk)
