"""Ripple's own connectors keep the contracts: those that need no server."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ripple.connectors.files.text import cut_record
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.registry import own
from ripple.model.records import schema_of
from ripple.storage.log import PartitionReader, PartitionWriter, Topic
from ripple.testing import Tick, sink_suite, source_suite
from ripple.world import LiveClock, LiveDisk
from tests.records import Trade

Row = dict[str, Any]
SCHEMA = schema_of(Tick)
COLUMNS = RecordShape(SCHEMA).arrow_schema()


def put_csv(folder: Path, rows: list[Row]) -> str:
    path = folder / "ticks.csv"
    with path.open("a", newline="") as file:
        csv.writer(file).writerows(
            ["" if value is None else value for value in row.values()] for row in rows
        )
    return str(path)


def put_gzip(folder: Path, rows: list[Row]) -> str:
    path = folder / "ticks.csv.gz"
    path.write_bytes(gzip.compress(Path(put_csv(folder, rows)).read_bytes(), 1))
    return str(path)


def put_jsonl(folder: Path, rows: list[Row]) -> str:
    path = folder / "ticks.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def put_parquet(folder: Path, rows: list[Row]) -> str:
    path = folder / "ticks.parquet"
    pq.write_table(pa.Table.from_pylist(rows, COLUMNS), path, row_group_size=1000)
    return str(path)


def put_log(folder: Path, rows: list[Row]) -> str:
    disk = LiveDisk(folder)
    is_there = disk.exists("ticks/topic")
    topic = Topic.open(disk, "ticks") if is_there else Topic.create(disk, "ticks", SCHEMA)
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        for batch in pa.Table.from_pylist(rows, COLUMNS).to_batches(max_chunksize=300):
            writer.append(batch)
    return f"{folder}/ticks"


def count(_folder: Path, rows: list[Row]) -> str:
    return str(len(rows))


CONNECTORS = own()
TestCsv = source_suite(CONNECTORS["csv"], put_csv)
TestCompressed = source_suite(CONNECTORS["csv"], put_gzip)
TestJson = source_suite(CONNECTORS["jsonl"], put_jsonl)
TestParquet = source_suite(CONNECTORS["parquet"], put_parquet)
TestLog = source_suite(CONNECTORS["log"], put_log)
TestSynthetic = source_suite(CONNECTORS["synthetic"], count, record=Trade)


def committed(path: str) -> bytes:
    """What is committed of a file, or all of one that a plain run has written."""
    folder, name = Path(path).parent, Path(path).name
    disk = LiveDisk(folder)
    if not disk.exists(name):
        return b""
    data = (folder / name).read_bytes()
    record = cut_record.read(disk, f"{name}.cut") if disk.exists(f"{name}.cut") else None
    return data if record is None else data[: record.end]


def read_csv(path: str) -> list[Row]:
    lines = csv.reader(committed(path).decode().splitlines()[1:])
    return [{"name": name, "number": number, "price": price} for name, number, price in lines]


def read_jsonl(path: str) -> list[Row]:
    return [json.loads(line) for line in committed(path).splitlines()]


def read_parquet(path: str) -> list[Row]:
    return pq.read_table(path).to_pylist() if Path(path).exists() else []


def read_log(path: str) -> list[Row]:
    disk = LiveDisk(Path(path).parent)
    if not disk.exists("out/topic"):
        return []
    with PartitionReader(Topic.open(disk, "out"), 0) as reader:
        return [row for entry in reader.read() for row in entry.records.to_pylist()]  # type: ignore[union-attr]  # no markers


def out(suffix: str) -> Any:
    return lambda folder: str(folder / f"out{suffix}")


def replaced(path: Path) -> None:
    path.rename(f"{path}.1")
    path.touch()


def of_file(suffix: str) -> dict[str, Callable[[Path], object]]:
    """What may become of a file ``out``, by what is done."""
    named = f"out{suffix}"
    return {
        "removed": lambda folder: (folder / named).unlink(),
        "renamed": lambda folder: (folder / named).rename(folder / "elsewhere"),
        "replaced": lambda folder: replaced(folder / named),
        "cut back": lambda folder: (folder / named).write_bytes(b""),
    }


OF_TOPIC: dict[str, Callable[[Path], object]] = {
    "removed": lambda folder: shutil.rmtree(folder / "out"),
    "renamed": lambda folder: (folder / "out").rename(folder / "elsewhere"),
    "robbed of a segment": lambda folder: next((folder / "out").rglob("*.log")).unlink(),
}

TestCsvContinued = sink_suite(CONNECTORS["csv"], out(".csv"), read_csv, changes=of_file(".csv"))
TestCsvWritten = sink_suite(CONNECTORS["csv"], out(".csv"), read_csv, plain=True)
TestJsonContinued = sink_suite(CONNECTORS["jsonl"], out(".jsonl"), read_jsonl)
TestJsonWritten = sink_suite(CONNECTORS["jsonl"], out(".jsonl"), read_jsonl, plain=True)
TestParquetWritten = sink_suite(CONNECTORS["parquet"], out(".parquet"), read_parquet, plain=True)
TestLogContinued = sink_suite(CONNECTORS["log"], out(""), read_log, changes=OF_TOPIC)
TestLogWritten = sink_suite(CONNECTORS["log"], out(""), read_log, plain=True)
