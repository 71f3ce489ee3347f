"""Batches that are written are what the slow twin says, and read back as they were."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.connectors.kafka.batches import COMPRESSIONS, Compression, ProducerId, batches
from ripple.connectors.kafka.record_batches import decoded
from ripple.world.broker import Record, Records, TooLargeError, TopicPartition
from tests.examples import EXAMPLES, SAMPLED

PLACE = TopicPartition("t", 0)
WHO = ProducerId(7, 3)
TEXTS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=70)), max_size=2).map(tuple)
ROWS = st.lists(st.builds(Record, TEXTS, TEXTS, st.integers(0, 1 << 50), HEADERS), min_size=1)


def written(records: Records, bytes_max: int, compression: Compression = "none") -> list[bytes]:
    found, sequence = [], 0
    for count, body, head in batches(records, PLACE, bytes_max, compression):
        found.append(head.with_body(body, WHO, sequence))
        sequence += count
    return found


@given(ROWS, st.sampled_from(COMPRESSIONS), st.integers(700, 5000))
@settings(max_examples=30 * EXAMPLES // SAMPLED, deadline=None)
def test_batches_are_read_back_as_they_were(
    rows: list[Record], compression: Compression, bytes_max: int
) -> None:
    data = written(Records.of(rows), bytes_max, compression)
    found: list[Record] = []
    for batch in data:
        assert len(batch) <= bytes_max
        for read in decoded(batch, 0, [], headers=True):
            found += read.records
    assert found == rows


@given(ROWS)
@settings(max_examples=20 * EXAMPLES // SAMPLED, deadline=None)
def test_aiokafka_reads_the_same(rows: list[Record]) -> None:
    (data,) = written(Records.of(rows), 1 << 20)
    batch = MemoryRecords(data).next_batch()
    assert batch.validate_crc()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, 0)
    assert batch.is_transactional
    found = [Record(r.key, r.value, r.timestamp, tuple(r.headers)) for r in batch]
    assert found == rows


def test_slices_of_columns_are_written_as_they_are() -> None:
    rows = [Record(None if n % 3 else b"%d" % n, b"v%d" % n, n) for n in range(100)]
    whole = Records.of(rows)
    part = Records(whole.keys[40:60], whole.values[40:60], whole.timestamps_ms[40:60])
    (data,) = written(part, 1 << 20)
    (read,) = decoded(data, 0, [])
    assert list(read.records) == rows[40:60]


def test_record_that_does_not_fit_is_named_and_those_before_it_go() -> None:
    records = Records.of([Record(b"a", b"x"), Record(b"b" * 300, b"x" * 5000)])
    found = batches(records, PLACE, 1000, "none")
    assert next(found)[0] == 1
    with pytest.raises(TooLargeError, match=r"key b'b+'\.\.\. takes 5\d\d\d bytes, and topic t "):
        next(found)
    assert [count for count, _, _ in batches(records, PLACE, 1000, "zstd")] == [1, 1]


def test_keys_without_any_bytes_are_written() -> None:
    nothing = pa.array([b"", None], pa.binary())
    (data,) = written(Records(nothing, nothing, np.array([1, 2])), 1000)
    (read,) = decoded(data, 0, [])
    assert list(read.records) == [Record(b"", b"", 1), Record(None, None, 2)]
