"""A cut remembers which log it was of: another one, or less of it, is refused."""

from __future__ import annotations

import pytest

from ripple.connectors.log.source import LogSource
from ripple.core.errors import InputError
from ripple.storage.log import LogChangedError, OffsetOutOfRangeError, PartitionWriter, Topic
from ripple.testing.sim.disk import SimDisk
from tests.storage.log.trades import ManualClock, records_of, rows_of, topic_of


def written(first: int = 0, appends: int = 6, disk: SimDisk | None = None) -> Topic:
    topic = topic_of(disk or SimDisk(), segment_bytes_max=1500)
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        for number in range(appends):
            writer.append(records_of(rows_of(first + 3 * number, 3)))
            if number % 4 == 2:
                writer.mark(number)
    return topic


def test_same_log_is_known_again_at_every_cut() -> None:
    source, again = LogSource(written(), 0), LogSource(written(), 0)
    identities = [source.identity_at(offset) for offset in range(20)]
    for offset, identity in enumerate(identities):
        again.check_identity(offset, identity)
    # One frame has one identity, whichever of its records the cut is behind.
    assert len(set(identities)) == 1 + 7


def test_asking_does_not_move_the_reading() -> None:
    source = LogSource(written(), 0, batch_rows=2)
    reading = source.batches()
    first = next(reading)
    source.check_identity(9, source.identity_at(9))
    assert next(reading).next_offset == first.next_offset + 2


def test_reading_remembers_what_the_disk_says() -> None:
    topic = written()
    source = LogSource(topic, 0, batch_rows=2)
    asked = 0
    for entry in source.batches():
        for offset in range(entry.next_offset + 1):
            assert source.identity_at(offset) == LogSource(topic, 0).identity_at(offset)
            asked += 1
    assert asked > 100


def test_log_that_lost_records_is_refused() -> None:
    identity = LogSource(written(), 0).identity_at(15)
    with pytest.raises(LogChangedError, match="ends at offset 6, but records up to 15 were read"):
        LogSource(written(appends=2), 0).check_identity(15, identity)
    assert issubclass(LogChangedError, InputError)


@pytest.mark.parametrize("offset", range(1, 20))
def test_recreated_log_is_rejected(offset: int) -> None:
    identity = LogSource(written(), 0).identity_at(offset)
    with pytest.raises(LogChangedError, match=f"other records before offset {offset}"):
        LogSource(written(first=1), 0).check_identity(offset, identity)


def test_retention_is_no_other_log() -> None:
    topic = topic_of(SimDisk(), segment_bytes_max=1500, retention_bytes_max=4000)
    source = LogSource(topic, 0)
    identities = {0: ""}
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        for number in range(12):
            offset = writer.append(records_of(rows_of(3 * number, 3))).next_offset
            identities[offset] = source.identity_at(offset)
        first = writer.first_offset
    assert 3 < first < 33
    for offset, identity in identities.items():
        if offset < first:
            with pytest.raises(OffsetOutOfRangeError, match="removed by retention"):
                source.check_identity(offset, identity)
        else:
            source.check_identity(offset, identity)
    # Nothing is left of what was read before the first offset.
    source.check_identity(first, "0:00000000")
    with pytest.raises(LogChangedError):
        source.check_identity(first + 3, "0:00000000")
