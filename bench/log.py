"""Appending to and reading the log, beside SQLite and a plain file with the same durability."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from bench.row import Row, beside
from bench.timing import QUICK
from bench.trades import trades
from ripple.connectors.files.csv.format import TRADE_SCHEMA
from ripple.core.codec.compression import Compression
from ripple.storage.log import LogSettings, PartitionReader, PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk

SYMBOLS = 2_000
# Rows of an append, and how many appends.
SHAPES = ((1_000, 100), (16_384, 12)) if QUICK else ((1_000, 400), (16_384, 60))
POLICIES = {"every append": 1, "every 100 appends": 100, "no append": 0}
ROUNDS = 2 if QUICK else 3
UNIT = "M records/s"

INSERT = "INSERT INTO trades VALUES (?, ?, ?, ?, ?)"
CREATE = "CREATE TABLE trades (symbol TEXT, price REAL, size INT, timestamp_ns INT, venue TEXT)"


def measure() -> list[Row]:
    return [row for rows, appends in SHAPES for row in _at(rows, appends)]


def _at(rows: int, appends: int) -> Iterator[Row]:
    batches = [trades(rows, SYMBOLS, first=rows * number) for number in range(appends)]
    records = rows * appends
    for policy, sync_appends in POLICIES.items():
        rates = _rates(batches, sync_appends)
        yield from beside(
            f"append, {rows:,} records each, sync {policy}",
            rates["log"],
            UNIT,
            {
                "SQLite, WAL, the same durability": rates["sqlite"],
                "a plain file of Arrow streams, fsync alike": rates["plain"],
            },
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for write in WRITERS.values():
            write(path, batches, 0)
        rates = {
            name: records / min(_elapsed(lambda name=name: READERS[name](path, records))) / 1e6
            for name in WRITERS
        }
    yield from beside(
        f"read, {rows:,} records a frame",
        rates["log"],
        UNIT,
        {
            "SQLite, as rows": rates["sqlite"],
            "a plain file of Arrow streams, nothing checked": rates["plain"],
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        seconds = _write_log(path, batches, 0, Compression.LZ4)
        name = f"append, {rows:,} records each, LZ4, sync no append"
        yield Row(name, records / seconds / 1e6, UNIT)
        seconds = min(_elapsed(lambda: _read_log(path, records)))
        yield Row(f"read, {rows:,} records a frame, LZ4", records / seconds / 1e6, UNIT)


def _rates(batches: list[pa.RecordBatch], sync_appends: int) -> dict[str, float]:
    """Return records per second of each, which take turns on fresh folders."""
    best = dict.fromkeys(WRITERS, 0.0)
    for _ in range(ROUNDS):
        for name, write in WRITERS.items():
            with tempfile.TemporaryDirectory() as folder:
                seconds = write(Path(folder), batches, sync_appends)
            best[name] = max(best[name], sum(map(len, batches)) / seconds / 1e6)
    return best


def _elapsed(call: Callable[[], object]) -> Iterator[float]:
    for _ in range(ROUNDS):
        started = time.perf_counter()
        call()
        yield time.perf_counter() - started


def _write_log(
    folder: Path,
    batches: list[pa.RecordBatch],
    sync_appends: int,
    compression: Compression = Compression.NONE,
) -> float:
    settings = LogSettings(sync_appends=sync_appends, compression=compression)
    topic = Topic.create(
        LiveDisk(folder), "log", TRADE_SCHEMA, time_field="timestamp_ns", settings=settings
    )
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        started = time.perf_counter()
        for batch in batches:
            writer.append(batch)
        if sync_appends:
            writer.sync()
        return time.perf_counter() - started


def _write_sqlite(folder: Path, batches: list[pa.RecordBatch], sync_appends: int) -> float:
    connection = sqlite3.connect(folder / "sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if sync_appends else 'OFF'}")
    connection.execute(CREATE)
    started = time.perf_counter()
    for first in range(0, len(batches), sync_appends or 1):
        connection.execute("BEGIN")
        for batch in batches[first : first + (sync_appends or 1)]:
            connection.executemany(INSERT, zip(*batch.to_pydict().values(), strict=True))
        connection.execute("COMMIT")
    seconds = time.perf_counter() - started
    connection.close()
    return seconds


def _write_plain(folder: Path, batches: list[pa.RecordBatch], sync_appends: int) -> float:
    started = time.perf_counter()
    with (folder / "plain").open("wb", buffering=0) as file:
        for number, batch in enumerate(batches, 1):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            file.write(sink.getvalue())
            if sync_appends and (number % sync_appends == 0 or number == len(batches)):
                os.fsync(file.fileno())
    return time.perf_counter() - started


def _read_log(folder: Path, records: int) -> None:
    with PartitionReader(Topic.open(LiveDisk(folder), "log"), 0) as reader:
        assert sum(len(entry.records) for entry in reader.read()) == records


def _read_sqlite(folder: Path, records: int) -> None:
    connection = sqlite3.connect(folder / "sqlite")
    assert len(connection.execute("SELECT * FROM trades ORDER BY rowid").fetchall()) == records
    connection.close()


def _read_plain(folder: Path, records: int) -> None:
    found = 0
    with pa.OSFile(str(folder / "plain")) as file:
        while file.tell() < file.size():
            found += sum(map(len, pa.ipc.open_stream(file)))
    assert found == records


WRITERS = {"log": _write_log, "sqlite": _write_sqlite, "plain": _write_plain}
READERS = {"log": _read_log, "sqlite": _read_sqlite, "plain": _read_plain}

if __name__ == "__main__":
    for row in measure():
        ratio = f"{row.ratio:6.2f}x {row.versus}" if row.ratio else ""
        print(f"{row.name:50} {row.value:8.2f} {row.unit} {ratio}")
