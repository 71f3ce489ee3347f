"""A pipeline of known cuts, and the sinks that it writes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ripple.connectors.contract import Commit, Sink
from ripple.connectors.files.text import cut_record
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.files.text.file import FileSink
from ripple.connectors.files.text.sink import TextFormat
from ripple.connectors.log.sink import LogSink
from ripple.model.schema.types import Field, Int, Schema, String
from ripple.storage.log import LogSettings, PartitionReader, Topic
from ripple.testing import SimWorld
from ripple.testing.sim.disk import SimDisk
from ripple.world import Clock, Disk, World
from tests.storage.log.trades import ManualClock

OWNER = Owner("vwap", "out")
SCHEMA = Schema(
    "out", (Field("op", String()), Field("symbol", String()), Field("total", Int(), True))
)
ROWS = [3, 0, 1, 40, 2, 0, 0, 5]
CUTS = len(ROWS)


def changes(number: int, rows: int | None = None) -> pa.RecordBatch:
    """The changes of a cut; every third row is a Remove."""
    count = ROWS[number] if rows is None else rows
    ops = [2 if row % 3 == 2 else 0 for row in range(count)]
    totals = [None if op else 100 * number + row for row, op in enumerate(ops)]
    return pa.record_batch(
        {
            "symbol": pa.array([f"S{row}" for row in range(count)], pa.string()),
            "op": pa.array(ops, pa.int8()),
            "total": pa.array(totals, pa.int64()),
        }
    )


def reached(number: int) -> Commit:
    return Commit({"trades": 10 * (number + 1)}, f"{number:016x}")


def number_after(commit: Commit | None) -> int:
    """The cut that comes after a commit."""
    return 0 if commit is None else commit.cut["trades"] // 10


@dataclass(frozen=True)
class Kind:
    """How a sink is opened, and what a reader finds: all of it, and what is committed of it."""

    open: Callable[[World], Sink]
    read: Callable[[Disk], Any]
    read_committed: Callable[[Disk], Any]
    is_fast: bool

    def expected(self, cuts: int = CUTS) -> Any:
        """What is there when so many cuts were committed, one after the other, undisturbed."""
        world = world_of(SimDisk())
        write(self.open(world), 0, cuts)
        return self.read(world.disk)


def world_of(disk: Disk) -> World:
    clock: Clock = ManualClock()
    return World(clock=clock, random=None, disk=disk)  # type: ignore[arg-type]  # no chance here


def write(sink: Sink, first: int, end: int, *, commit_every: int = 1) -> None:
    """Write cuts and close."""
    for number in range(first, end):
        sink.write(changes(number), reached(number))
        if (number + 1) % commit_every == 0:
            sink.commit(reached(number))
    sink.close()


def _file(text_format: TextFormat, columns: tuple[str, ...]) -> Kind:
    def open_file(world: World) -> Sink:
        return FileSink(world.disk, "out", text_format, OWNER, columns, guards=world.guards)

    def read(disk: Disk) -> bytes:
        return disk.read_bytes("out", length_max=1 << 20) if disk.exists("out") else b""

    def read_committed(disk: Disk) -> bytes:
        record = cut_record.read(disk, "out.cut")
        return read(disk)[: record.end] if record is not None else b""

    return Kind(open_file, read, read_committed, is_fast=True)


def _log(batch_bytes_max: int) -> Kind:
    def open_log(world: World) -> Sink:
        settings = LogSettings(batch_bytes_max=batch_bytes_max, sync_appends=0)
        if not world.disk.exists("out/topic"):
            Topic.create(world.disk, "out", SCHEMA, settings=settings)
        topic = Topic.open(world.disk, "out")
        return LogSink(topic, 0, world.clock, OWNER, guards=world.guards)

    def read(disk: Disk) -> list[Any]:
        if not disk.exists("out/topic"):
            return []
        with PartitionReader(Topic.open(disk, "out"), 0) as reader:
            return [row for entry in reader.read() for row in entry.records.to_pylist()]  # type: ignore[union-attr]  # no markers

    return Kind(open_log, read, read, is_fast=False)


KINDS = {
    "csv": _file(TextFormat("csv", header=True), ("symbol", "total")),
    "jsonl": _file(TextFormat("json", removes="mark"), ("op", "symbol", "total")),
    "log": _log(1 << 20),
    "log in parts": _log(1100),
}


def pipeline(kind: Kind) -> Callable[[SimWorld, int], None]:
    """A program that writes all cuts and commits every third, however often it is restarted."""
    expected = kind.expected()

    def live(world: SimWorld, _seed: int) -> None:
        sink = kind.open(world)
        number = number_after(sink.committed)
        assert number >= world.witness.get("promised", 0), "what was committed is forgotten"
        assert sink.unfinished in (None, reached(number).cut)
        while number < CUTS:
            sink.write(changes(number), reached(number))
            number += 1
            if number % 3 == 0 or number == CUTS:
                sink.commit(reached(number - 1))
                world.witness["promised"] = number
        sink.close()
        assert kind.read(world.disk) == expected, "not each cut once, in order"

    return live


def committed(kind: Kind) -> Callable[[SimWorld, int], None]:
    """What a reader finds after a crash: a beginning of the whole, with all that was promised."""
    expected = kind.expected()
    lengths = [len(kind.expected(cuts)) for cuts in range(CUTS + 1)]

    def survived(world: SimWorld, _seed: int) -> None:
        found = kind.read_committed(world.disk)
        assert found == expected[: len(found)], "what is there was never written"
        assert len(found) >= lengths[world.witness.get("promised", 0)], "a promise was broken"

    return survived


def rewrite(disk: Disk, name: str, data: bytes) -> None:
    file = disk.open(name, create=True)
    file.truncate(0)
    file.append(data)
    file.close()


def contents(disk: Disk) -> dict[str, Any]:
    """Every file but locks and the logs' indexes, which each opening may write."""
    names = [
        f"{folder}{name}" for folder in ("", "out/", "out/0/") for name in names_in(disk, folder)
    ]
    return {
        name: disk.read_bytes(name, length_max=1 << 20)
        for name in names
        if name not in ("out", "out/0") or not names_in(disk, name)
        if not name.endswith(("lock", ".index"))
    }


def names_in(disk: Disk, folder: str) -> list[str]:
    try:
        return disk.list(folder.rstrip("/"))
    except NotADirectoryError:
        return []
