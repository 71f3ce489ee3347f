"""What an output's topic says in the end, as ``ripple log table`` shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from ripple.cli.lib import topic_rows
from ripple.cli.log import table as log_table
from ripple.model.schema.types import Field, Float, Int64, Schema, String
from ripple.storage.log import PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk
from tests.cli.processes import ripple

SCHEMA = Schema(
    "vwap.output",
    (
        Field("op", String()),
        Field("symbol", String()),
        Field("window_start_ns", Int64()),
        Field("vwap", Float(), optional=True),
    ),
)
TRADES = "".join(
    f"{symbol},{price},10,{1_709_000_000_000_000_000 + at * 10**9},XNAS\n"
    for at, symbol, price in [
        *((second, "AB"[second % 2], 100 + second) for second in range(0, 200, 3)),
        (190, "A", 7.0),
        (150, "B", 9.0),  # late: its window is corrected
        (400, "A", 1.0),
    ]
)


def written(folder: Path, *partitions: list[tuple[object, ...]]) -> Path:
    topic = Topic.create(LiveDisk(str(folder)), "out", SCHEMA, partitions=len(partitions))
    names = [field.name for field in SCHEMA.fields]
    for partition, rows in enumerate(partitions):
        with PartitionWriter(topic, partition, LiveClock(), holder="a test") as writer:
            for row in rows:
                records = pa.table({name: [one] for name, one in zip(names, row, strict=True)})
                (batch,) = records.cast(pa.schema([*map(_column, SCHEMA.fields)])).to_batches()
                writer.append(batch)
    return folder / "out"


def _column(field: Field) -> pa.Field:
    kinds = {String(): pa.string(), Int64(): pa.int64(), Float(): pa.float64()}
    return pa.field(field.name, kinds[field.type], nullable=field.name == "vwap")


@pytest.mark.parametrize("pending_rows_max", [1, topic_rows.PENDING_ROWS_MAX])
def test_the_last_change_of_each_key_counts(
    tmp_path: Path,
    pending_rows_max: int,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.setattr(topic_rows, "PENDING_ROWS_MAX", pending_rows_max)
    written(
        tmp_path,
        [("set", "B", 60, 1.0), ("set", "A", 60, 2.0), ("set", "B", 60, 3.0), ("set", "C", 0, 1.0)],
        [("remove", "D", 0, None), ("final", "E", 0, 5.0), ("set", "A", 0, 6.0)],
        [("set", "F", 0, 1.0), ("remove", "F", 0, None)],
        [],
    )
    log_table.print_table(Topic.open(LiveDisk(str(tmp_path)), "out"))
    shown = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [(row["symbol"], row["window_start_ns"], row["vwap"]) for row in shown] == [
        ("A", 0, 6.0),
        ("A", 60, 2.0),
        ("B", 60, 3.0),
        ("C", 0, 1.0),
        ("E", 0, 5.0),
    ]


def test_key_in_two_partitions_is_reported(tmp_path: Path) -> None:
    topic = written(tmp_path, [("set", "A", 0, 1.0)], [("set", "A", 0, 2.0)])
    refused = ripple("log", "table", topic)
    assert (refused.code, refused.out) == (1, "")
    assert "{'symbol': 'A', 'window_start_ns': 0} in several partitions" in refused.only_line


def test_a_run_leaves_the_table_that_it_says(tmp_path: Path) -> None:
    (tmp_path / "trades.csv").write_text(TRADES)
    assert ripple("log", "create", "--schema", "trade", tmp_path / "trades").code == 0
    assert ripple("log", "append", tmp_path / "trades", tmp_path / "trades.csv").code == 0
    command = ["run", "examples/vwap.py", "--source", f"log:{tmp_path}/trades"]
    kept = ["--sink", f"log:{tmp_path}/out", "--checkpoint-dir", tmp_path / "state"]
    assert ripple(*command, *kept).code == 0
    assert ripple(*command, "--sink", f"jsonl:{tmp_path}/out.jsonl").code == 0
    rows = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    closed_ns = 1_709_000_400_000_000_000 // (60 * 10**9) * 60 * 10**9
    last = {(row["symbol"], row["window_start_ns"]): row for row in rows if row.pop("op")}
    shown = ripple("log", "table", tmp_path / "out")
    assert [json.loads(line) for line in shown.out.splitlines()] == [
        last[key] for key in sorted(last) if key[1] < closed_ns
    ]
    said = [line.rpartition("digest ")[2] for line in shown.err.splitlines()]
    assert said[0] == said[1] != "0" * 16


def test_other_topics_are_refused(tmp_path: Path) -> None:
    assert ripple("log", "create", "--schema", "trade", tmp_path / "trades").code == 0
    refused = ripple("log", "table", tmp_path / "trades")
    assert refused.code == 1
    assert "trades holds records, not the changes of an output" in refused.only_line
    assert refused.only_line.endswith("read them with ripple log tail")
