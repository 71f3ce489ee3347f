"""Small topics and records for the tests of the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ripple.model.batch import Batch, Marker
from ripple.model.schema.types import Field, Int, Int64, Schema, String
from ripple.storage.log import LogSettings, PartitionReader, Topic
from ripple.storage.log.durable import notes_path
from ripple.world.ports import Disk

SCHEMA = Schema(
    "tick", (Field("symbol", String()), Field("size", Int(), True), Field("at_ns", Int64()))
)


@dataclass(frozen=True)
class StoredFile:
    """A file of a disk, to look at and to damage."""

    disk: Disk
    path: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def read_bytes(self) -> bytes:
        return self.disk.read_bytes(self.path, length_max=1 << 20)

    def write_bytes(self, data: bytes) -> None:
        file = self.disk.open(self.path, create=True)
        file.truncate(0)
        file.append(data)
        file.close()

    def unlink(self) -> None:
        self.disk.remove(self.path)


def files_of(topic: Topic, suffix: str = ".log") -> list[StoredFile]:
    folder = topic.folder(0)
    names = [name for name in topic.disk.list(folder) if name.endswith(suffix)]
    return [StoredFile(topic.disk, f"{folder}/{name}") for name in names]


def forget_notes(topic: Topic) -> None:
    """Take what a killed writer noted as durable, as a power failure may."""
    path = notes_path(topic, 0)
    if topic.disk.exists(path):
        topic.disk.remove(path)


@dataclass
class ManualClock:
    """A clock that moves when it is told to, or when somebody sleeps."""

    time_ns: int = 1_000

    def now_ns(self) -> int:
        return self.time_ns

    def monotonic_ns(self) -> int:
        return self.time_ns

    async def sleep(self, seconds: float) -> None:
        self.time_ns += int(seconds * 1e9)


def topic_of(disk: Disk, **settings: Any) -> Topic:
    return Topic.create(disk, "ticks", SCHEMA, time_field="at_ns", settings=LogSettings(**settings))


def rows_of(first: int, count: int) -> list[dict[str, Any]]:
    """Rows that tell where they stand, with some text of odd lengths and some nulls."""
    return [
        {
            "symbol": "s" * (number % 5) + str(number),
            "size": None if number % 7 == 3 else number,
            "at_ns": 10 * number - 25 * (number % 3),
        }
        for number in range(first, first + count)
    ]


def records_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    columns = {name: [row[name] for row in rows] for name in ("symbol", "size", "at_ns")}
    types = {"symbol": pa.string(), "size": pa.int64(), "at_ns": pa.int64()}
    return pa.record_batch({name: pa.array(columns[name], types[name]) for name in columns})


def listed(entry: Batch | Marker) -> list[Any]:
    return [entry.watermark_ns] if isinstance(entry, Marker) else entry.records.to_pylist()


def read_all(topic: Topic, from_offset: int | None = None, partition: int = 0) -> list[Any]:
    """Rows as dicts and markers as numbers, having checked that the offsets leave no gap."""
    found: list[Any] = []
    with PartitionReader(topic, partition) as reader:
        position = reader.range()[0] if from_offset is None else from_offset
        for entry in reader.read(from_offset):
            held = listed(entry)
            position += len(held)
            assert entry.next_offset == position
            found += held
    return found


def all_of(batches: Iterable[Batch | Marker]) -> tuple[dict[int, Any], dict[int, str]]:
    """Rows, and reasons of rejected ones, by offset, having checked that all adds up."""
    rows: dict[int, Any] = {}
    reasons: dict[int, str] = {}
    for batch in batches:
        assert isinstance(batch, Batch)
        offsets = batch.offsets()
        rows.update(zip(map(int, offsets), batch.records.to_pylist(), strict=True))
        reasons.update((bad.offset, bad.reason) for bad in batch.rejected)
        assert sorted((*map(int, offsets), *(bad.offset for bad in batch.rejected))) == list(
            range(batch.first_offset, batch.next_offset)
        )
    return rows, reasons
