"""A source of one iterator as the input of a task.

Tests/connectors/contract has the others.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ripple.connectors.files.csv.format import CsvFormat
from ripple.connectors.files.csv.source import CsvSource
from ripple.connectors.inputs import Inputs, Signal
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.source_inputs import SourceInputs
from ripple.model.batch import Batch, Marker
from ripple.model.schema.types import Field, Int64, Schema
from ripple.storage.log import PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk
from ripple.world.live import LiveExecutor
from ripple.world.live_disk import LiveFile
from tests.patience import PATIENCE_S

SCHEMA = Schema("tick", (Field("number", Int64()),))
ROWS = 25
BATCH_ROWS = 10


def records(first: int, end: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"number": pa.array(range(first, end), pa.int64())})


def topic_in(folder: Path) -> Topic:
    return Topic.create(LiveDisk(folder), "ticks", SCHEMA)


def append(topic: Topic, first: int, end: int) -> None:
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(records(first, end))


def csv(path: Path) -> CsvSource:
    return CsvSource(path, CsvFormat(SCHEMA), name="ticks", batch_rows=BATCH_ROWS)


def of_file(folder: Path) -> SourceInputs:
    path = folder / "ticks.csv"
    path.write_text("".join(f"{number}\n" for number in range(ROWS)))
    return SourceInputs(csv(path))


async def read(inputs: Inputs, cut: dict[str, int], until: int = ROWS) -> list[int]:
    """Return the numbers up to ``until``, as a life reads them; ``cut`` goes along."""
    found: list[int] = []
    while cut["ticks"] < until:
        entry = inputs.next(cut)
        if entry is Signal.WAITING:
            await inputs.more()
            continue
        assert not isinstance(entry, Signal), entry
        name, batch = entry
        assert isinstance(batch, Batch)
        assert not batch.rejected
        assert batch.first_offset == cut[name]
        found += batch.records["number"].to_pylist()
        cut[name] = batch.next_offset
    return found


async def next_of(inputs: Inputs, cut: dict[str, int]) -> object:
    while (entry := inputs.next(cut)) is Signal.WAITING:
        await inputs.more()
    return entry


@pytest.mark.parametrize("start", [0, 4, 20])
async def test_reading_goes_on_from_any_cut_up_to_any_other(tmp_path: Path, start: int) -> None:
    inputs: Inputs = of_file(tmp_path)
    assert inputs.names == ("ticks",)
    first, end = await inputs.bounds()
    assert first == {"ticks": 0}
    assert end == {}
    await inputs.check({"ticks": start}, {})
    cut = {"ticks": start}
    await inputs.open(cut, BATCH_ROWS, {"ticks": 23})
    assert await read(inputs, cut, 23) == list(range(start, 23))
    assert inputs.next(cut) is Signal.ENDED
    assert set(await inputs.identities(cut)) == {"ticks"}
    await inputs.sync()
    await inputs.close()
    await inputs.close()


async def test_end_of_an_input_is_returned(tmp_path: Path) -> None:
    inputs: Inputs = of_file(tmp_path)
    cut = {"ticks": 0}
    await inputs.open(cut, BATCH_ROWS)
    assert await read(inputs, cut) == list(range(ROWS))
    assert inputs.next(cut) is Signal.ENDED
    await inputs.close()


async def test_log_is_synced_outside_the_event_loop(tmp_path: Path) -> None:
    synced_in: list[threading.Thread] = []

    class SlowDisk(LiveDisk):
        def open_to_read(self, path: str) -> LiveFile:
            file = super().open_to_read(path)
            sync = file.sync
            file.sync = lambda: (synced_in.append(threading.current_thread()), sync())[1]  # type: ignore[method-assign]
            return file

    append(topic_in(tmp_path), 0, ROWS)
    topic, shape = Topic.open(SlowDisk(tmp_path), "ticks"), RecordShape(SCHEMA)
    inputs = LogInputs(topic, {"ticks": 0}, shape, BATCH_ROWS, executor=LiveExecutor())
    await inputs.open({"ticks": 0}, BATCH_ROWS)
    inputs.next({"ticks": 0})
    async with asyncio.timeout(PATIENCE_S):
        await inputs.sync()
    await inputs.close()
    assert [one is threading.main_thread() for one in synced_in] == [False]


async def test_errors_of_a_source_are_raised_by_next(tmp_path: Path) -> None:
    class Broken:
        name = "ticks"

        def batches(self, from_offset: int = 0) -> Any:
            yield Batch(records(from_offset, 10), 10)
            yield Marker(7, 11)
            raise OSError("the medium is bad")

        def close(self) -> None:
            pass

    inputs = SourceInputs(Broken())
    cut = {"ticks": 0}
    await inputs.open(cut, BATCH_ROWS)
    assert len(await read(inputs, cut, 10)) == 10
    assert await next_of(inputs, cut) == ("ticks", Marker(7, 11))
    with pytest.raises(OSError, match="medium is bad"):
        await next_of(inputs, {"ticks": 11})
    await inputs.close()
