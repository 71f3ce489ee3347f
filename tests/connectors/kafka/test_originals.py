"""Originals of dead letters: records of a topic are stored whole, and come back unchanged."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ripple.connectors.inputs import Original, OriginalInputs, Signal
from ripple.connectors.kafka.batches import ProducerId, batches
from ripple.connectors.kafka.originals import kept_of, original_of
from ripple.connectors.kafka.record_batches import decoded
from ripple.connectors.letter import Letter, dumps_record
from ripple.core.errors import InputError
from ripple.model.batch import Batch, Rejected
from ripple.spark.streaming.sliced import Sliced
from ripple.testing import SimWorld
from ripple.testing.sim.broker import SimBroker
from ripple.world import LiveDisk
from ripple.world.broker import Record, Records, TopicPartition
from tests.connectors.kafka.playing import A, B, all_of, inputs_of, play, played
from tests.task.letter_places import kept, owned

PLACE = TopicPartition("trades", 3)
RECORDS = [
    Record(b"k", b"\xff\0v", 5, (("n", b"\xff\0"), ("é", b""))),
    Record(None, b"w", 6),
    Record(b"", None, 7, (("", b"1"),)),
]


def fetched() -> Records:
    """Return the records as a broker's answer has them."""
    ((_, body, head),) = batches(Records.of(RECORDS), PLACE, 1 << 20, "none")
    (read,) = decoded(head.with_body(body, ProducerId(1, 2), 0), 0, (), headers=True)
    return read.records


def as_letter(record: bytes | None) -> Letter:
    return Letter("trades/3", 7, None, "it is bad", None, "vwap", "f00d", b"", record, 0)


@pytest.mark.parametrize("row", range(3))
@pytest.mark.parametrize("records", [Records.of(RECORDS), fetched()])
def test_dead_letter_returns_its_original_record(records: Records, row: int) -> None:
    fields = pa.RecordBatch.from_pydict({"x": [1]})
    for known in (fields, None):
        letter = as_letter(dumps_record(known, original_of(PLACE, records, row)))
        place, (found,) = kept_of(letter.original())
        assert (place, found) == (PLACE, RECORDS[row])
        if known is not None:
            assert letter.row() == fields
        else:
            with pytest.raises(InputError, match="could not read it"):
                letter.row()


def test_missing_and_damaged_originals_are_reported() -> None:
    letter = as_letter(dumps_record(pa.RecordBatch.from_pydict({"x": [1]})))
    with pytest.raises(InputError, match="was not kept"):
        letter.original()
    data = original_of(PLACE, Records.of(RECORDS), 0).data
    for damaged in (data[:-1], data[:-1] + b"\2", b""):
        with pytest.raises(InputError, match="cannot be read"):
            kept_of(Original("trades/3", damaged))
    with pytest.raises(InputError, match="cannot be read"):
        kept_of(Original("", data))


def test_original_is_preferred_if_both_are_too_long() -> None:
    long = Records.of([Record(b"k", b"v" * 600_000)])
    fields = pa.RecordBatch.from_pydict({"x": ["v" * 600_000]})
    letter = as_letter(dumps_record(fields, original_of(PLACE, long, 0)))
    assert [*kept_of(letter.original()).records] == [*long]
    with pytest.raises(InputError):
        letter.row()
    longer = original_of(PLACE, Records.of([Record(b"k", b"v" * (1 << 20))]), 0)
    assert as_letter(dumps_record(fields, longer)).row() == fields
    assert dumps_record(None, longer) is None


def test_dead_letters_hold_originals(tmp_path) -> None:
    original = original_of(PLACE, fetched(), 0)
    nothing = Batch(pa.RecordBatch.from_pylist([], pa.schema([])), 2, ())
    with owned(LiveDisk(tmp_path), "vwap") as (log, *_):
        log.write("trades/3", [Rejected(1, None, "bad", b"")], nothing, {1: original})
    (letter,) = kept(LiveDisk(tmp_path), "vwap")
    assert letter.original() == original


@played
async def test_inputs_know_what_the_records_of_their_last_batch_were(
    broker: SimBroker, world: SimWorld, monkeypatch
) -> None:
    monkeypatch.setattr("ripple.connectors.kafka.inputs.READ_ROWS", 3)
    for place in (A, B):
        for number in range(25):
            broker.append(place, [Record(b"k%d" % number, b"%d" % number, 9, (("h", b"1"),))])
    inputs = inputs_of(world)
    assert isinstance(inputs, OriginalInputs)
    seen = []

    def looked(name: str, offsets: list[int]) -> None:
        found = inputs.originals(name, offsets)
        assert sorted(found) == offsets
        for offset, original in found.items():
            place, (record,) = kept_of(original)
            assert (str(place), record.key) == (name, b"k%d" % offset)
            seen.append((name, offset))

    await all_of(inputs, dict.fromkeys(inputs.names, 0), looked=looked)
    assert sorted(seen) == [(str(place), n) for place in (A, B) for n in range(25)]
    await inputs.close()


def test_a_micro_batch_keeps_records_as_they_were() -> None:
    async def scene(broker: SimBroker, world: SimWorld) -> None:
        broker.append(A, RECORDS)
        sliced = Sliced(inputs_of(world, 1), {"in/0": len(RECORDS)})
        cut = {"in/0": 0}
        await sliced.open(cut, 10)
        while sliced.next(cut) is Signal.WAITING:
            await sliced.more()
        found = sliced.originals("in/0", [0, 2])
        for at, original in found.items():
            place, (record,) = kept_of(original)
            assert (place, record) == (A, RECORDS[at])
        assert [*found] == [0, 2]
        await sliced.close()

    play(scene, partitions=1)
