"""Frames that are as they were written, but were wrong then, cost their records and no others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.connectors.log.source import LogSource
from ripple.connectors.memory import MemorySink
from ripple.connectors.record_shape import RecordShape
from ripple.core.codec.compression import Compression
from ripple.model.batch import Batch
from ripple.model.schema.checks import Checks
from ripple.storage.log import LogDamagedError, PartitionReader, PartitionWriter, Topic
from ripple.storage.log import body as bodies
from ripple.storage.log.frame import Draft, Kind, draft_records
from ripple.storage.log.verify import verify
from ripple.testing import SimDisk
from ripple.world import LiveDisk
from tests.cli.processes import ripple
from tests.storage.log.trades import SCHEMA, ManualClock, all_of, records_of, rows_of, topic_of

NOT_UTF8 = "symbol is not valid UTF-8"


def ill_formed(rows: list[dict[str, Any]], at: set[int]) -> pa.RecordBatch:
    """Records of which some have a symbol that is not UTF-8."""
    texts = [
        row["symbol"].encode() + (b"\xff" if number in at else b"")
        for number, row in enumerate(rows)
    ]
    binary = pa.array(texts, pa.binary())
    symbols = pa.Array.from_buffers(pa.string(), len(rows), binary.buffers())
    records = records_of(rows)
    return records.set_column(0, records.schema.field(0), symbols)


def append_as_it_is(writer: PartitionWriter, records: pa.RecordBatch) -> None:
    """Append records as an older release did, which did not look at them."""
    times_ns = bodies.times_of(records, "at_ns")
    columns = bodies.columns_of(SCHEMA)
    arrays = [records.column(field.name).cast(field.type) for field in columns]
    records = pa.RecordBatch.from_arrays(arrays, schema=columns)
    draft = draft_records(bodies.dumps(records), len(records), Compression.NONE, times_ns)
    writer._append(draft)


def append_body(writer: PartitionWriter, body: bytes, count: int) -> None:
    """Append a frame with a body of any bytes."""
    writer._append(Draft(Kind.RECORDS, count, body, Compression.NONE, len(body), 0, 0))


def topic_with_ill_formed(disk: Any) -> Topic:
    """Offsets 0 to 11 in frames of three; 4 and 5 are not UTF-8."""
    topic = topic_of(disk)
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        writer.append(records_of(rows_of(0, 3)))
        append_as_it_is(writer, ill_formed(rows_of(3, 3), {1, 2}))
        writer.append(records_of(rows_of(6, 6)))
    return topic


@pytest.mark.parametrize("start", range(13))
def test_record_that_is_not_utf8_costs_itself_only(start: int) -> None:
    topic = topic_with_ill_formed(SimDisk())
    with PartitionReader(topic, 0) as reader:
        for end in range(start, 13):
            rows, reasons = all_of(reader.read(start, end))
            expected = dict(enumerate(rows_of(0, 12)[start:end], start))
            assert reasons == {at: NOT_UTF8 for at in (4, 5) if start <= at < end}
            assert rows == {at: row for at, row in expected.items() if at not in (4, 5)}


@pytest.mark.parametrize("batch_rows", [1, 2, 5, 1000, None])
def test_source_rejects_unreadable_records_and_its_own(
    batch_rows: int | None,
) -> None:
    topic = topic_with_ill_formed(SimDisk())
    not_early = Checks(ge=35)
    shape = RecordShape(SCHEMA, {"at_ns": not_early})
    rows, reasons = all_of(LogSource(topic, 0, shape=shape, batch_rows=batch_rows).batches())
    refused = {at for at, row in enumerate(rows_of(0, 12)) if row["at_ns"] < 35}
    assert {3, 4, 5} < refused
    assert reasons == {
        **dict.fromkeys(refused, f"at_ns is not {not_early.range_words}"),
        **dict.fromkeys((4, 5), NOT_UTF8),
    }
    assert set(rows) == set(range(12)).difference(reasons)


def test_refused_record_keeps_its_bytes() -> None:
    topic = topic_with_ill_formed(SimDisk())
    with PartitionReader(topic, 0) as reader:
        (entry,) = reader.read(4, 5)
    assert isinstance(entry, Batch)
    assert entry.rejected[0].raw == b'{"symbol": "ssss4\xff", "size": 4, "at_ns": 15}'


def garbage(writer: PartitionWriter) -> None:
    append_body(writer, b"these are no columns", 3)


def too_few(writer: PartitionWriter) -> None:
    records = bodies.conformed(records_of(rows_of(3, 2)), bodies.columns_of(SCHEMA))
    append_body(writer, bytes(bodies.dumps(records)), 3)


def not_compressed(writer: PartitionWriter) -> None:
    writer._append(Draft(Kind.RECORDS, 3, b"no LZ4", Compression.LZ4, 100, 0, 0))


@pytest.mark.parametrize("append", [garbage, too_few, not_compressed])
def test_frame_that_cannot_be_read_costs_its_records(append: Any) -> None:
    topic = topic_of(SimDisk())
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        writer.append(records_of(rows_of(0, 3)))
        append(writer)
        writer.append(records_of(rows_of(6, 6)))
    with PartitionReader(topic, 0) as reader:
        rows, reasons = all_of(reader.read())
        assert list(rows.values()) == rows_of(0, 3) + rows_of(6, 6)
        assert set(reasons) == {3, 4, 5}
        assert all("its frame cannot be read: " in reason for reason in reasons.values())
        assert reader.seek_time(85) == 9
    found = verify(topic, 0)
    assert (found.refused, found.records) == (3, 12)


def test_frame_of_other_columns_is_damage() -> None:
    """Then the file is one of another topic, and nothing in it is to be believed."""
    topic = topic_of(SimDisk())
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        append_body(writer, bytes(bodies.dumps(pa.record_batch({"other": [1, 2, 3]}))), 3)
    with pytest.raises(LogDamagedError, match="the columns are not as announced"):
        list(PartitionReader(topic, 0).read())
    with pytest.raises(LogDamagedError, match="the columns are not as announced"):
        verify(topic, 0)


def test_time_is_sought_among_the_records_that_can_be_read() -> None:
    topic = topic_of(SimDisk())
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        late = [dict(row, at_ns=1000) for row in rows_of(0, 3)]
        append_as_it_is(writer, ill_formed(late, {0, 1, 2}))
        writer.append(records_of(late))
    with PartitionReader(topic, 0) as reader:
        assert reader.seek_time(999) == 3


@rp.record(version=1)
class Tick:
    symbol: str
    at_ns: rp.Timestamp


def test_run_accounts_for_unreadable_records(tmp_path: Any) -> None:
    topic_with_ill_formed(LiveDisk(tmp_path))
    pipeline = (
        rp.Pipeline("p").source("ticks", Tick).partition("by", key="symbol").fold("f", n=rp.count())
    ).sink("out")
    sink = MemorySink()
    with pytest.warns(rp.LostRecordsWarning, match="2 rejected"):
        rp.run(pipeline, source=f"log:{tmp_path}/ticks", sink=sink)
    assert len(sink.rows()) == 10


def test_commands_report_unreadable_records_and_continue_after_them(tmp_path: Any) -> None:
    topic_with_ill_formed(LiveDisk(tmp_path))
    tail = ripple("log", "tail", tmp_path / "ticks")
    assert (tail.code, len(tail.rows)) == (0, 10)
    assert f"ticks, offset 4: {NOT_UTF8}: " in tail.err
    assert "Rejected records: 2" in tail.err
    verified = ripple("log", "verify", tmp_path / "ticks")
    assert verified.code == 1
    assert f"2 records cannot be read, the first at offset 4: {NOT_UTF8}" in verified.out
    assert "count them as rejected and continue" in verified.out
