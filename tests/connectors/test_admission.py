"""Which records count is declared, and the same for every source and for both kinds of run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.connectors.dead_letter import DeadLetters
from ripple.connectors.memory import MemorySink
from ripple.engine.machine import Engine
from ripple.model.batch import Batch
from ripple.model.schema import notation
from ripple.testing import check_pipeline
from tests.cli.processes import ripple

if TYPE_CHECKING:
    from collections.abc import Callable


@rp.record(version=1)
class Level:
    """A level of an order book: size 0 deletes it, a negative one corrects it."""

    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp


@rp.record(version=1, name="level")
class Trade:
    """A trade."""

    symbol: str = rp.field(min_length=1)
    price: float = rp.field(finite=True)
    size: int = rp.field(gt=0)
    timestamp_ns: rp.Timestamp = rp.field(ge=0)


@rp.record(version=1)
class Ticks:
    """A trade whose price is a number of ticks."""

    symbol: str
    price: int
    size: int
    timestamp_ns: rp.Timestamp


ROWS: list[dict[str, Any]] = [
    {"symbol": "A", "price": 1.5, "size": 5, "timestamp_ns": 1},
    {"symbol": "A", "price": 1.5, "size": 0, "timestamp_ns": 2},
    {"symbol": "A", "price": 1.5, "size": -3, "timestamp_ns": 3},
    {"symbol": "A", "price": 1.5, "size": 4, "timestamp_ns": -5},
    {"symbol": "", "price": 1.5, "size": 4, "timestamp_ns": 6},
]
REASONS = {"size is not positive": 2, "timestamp_ns is not at least 0": 1, "symbol is empty": 1}


def pipeline_of(record: type) -> rp.Pipeline:
    line = rp.Pipeline("p").source("s", record).partition("k", key="symbol")
    return line.fold("f", n=rp.count(), s=rp.sum("size")).sink("o")


class OwnSource:
    """A source that somebody has written, who knows nothing of checks."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.name = "own"
        self._rows = rows

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        assert from_offset == 0
        yield Batch(pa.RecordBatch.from_pylist(self._rows), len(self._rows))

    def close(self) -> None: ...


def as_csv(folder: Path, rows: list[dict[str, Any]]) -> str:
    lines = (",".join(map(str, row.values())) + "\n" for row in rows)
    (folder / "s.csv").write_text("".join(lines))
    return str(folder / "s.csv")


def as_json(folder: Path, rows: list[dict[str, Any]]) -> str:
    (folder / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / "s.jsonl")


def as_parquet(folder: Path, rows: list[dict[str, Any]]) -> str:
    pq.write_table(pa.Table.from_pylist(rows), folder / "s.parquet")
    return str(folder / "s.parquet")


def as_log(folder: Path, rows: list[dict[str, Any]]) -> str:
    schema = rp.schema_of(Ticks if isinstance(rows[0]["price"], int) else Level)
    (folder / "level.sexp").write_text(notation.dumps(schema))
    topic = folder / "log" / "s"
    made = ripple("log", "create", topic, "--schema", folder / "level.sexp")
    assert made.code == 0, made.err
    filled = ripple("log", "append", topic, as_json(folder, rows))
    assert f"appended {len(rows)} records" in filled.err
    return f"log:{topic}"


SOURCES: dict[str, Callable[[Path, list[dict[str, Any]]], Any]] = {
    "csv": as_csv,
    "json": as_json,
    "parquet": as_parquet,
    "log": as_log,
    "mappings": lambda _, rows: rows,
    "batches": lambda _, rows: [pa.RecordBatch.from_pylist(rows)],
    "own": lambda _, rows: OwnSource(rows),
}
each_source = pytest.mark.parametrize("kind", SOURCES)


def ran(record: type, source: Any) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
    sink, letters = MemorySink(), DeadLetters()
    rp.run(pipeline_of(record), source=source, sink=sink, dead_letters=letters)
    rows = [(row["symbol"], row["n"], row["s"]) for row in sink.rows()]
    return rows, {reason.removeprefix("s: "): n for reason, n in letters.counts.items()}


@each_source
def test_nothing_is_checked_because_of_its_name(tmp_path: Path, kind: str) -> None:
    assert ran(Level, SOURCES[kind](tmp_path, ROWS)) == ([("A", 4, 6), ("", 1, 4)], {})


@each_source
def test_declared_checks_are_applied(tmp_path: Path, kind: str) -> None:
    assert ran(Trade, SOURCES[kind](tmp_path, ROWS)) == ([("A", 1, 5)], REASONS)


@each_source
def test_a_price_may_be_a_whole_number(tmp_path: Path, kind: str) -> None:
    rows = [{**row, "price": 15} for row in ROWS]
    assert ran(Ticks, SOURCES[kind](tmp_path, rows)) == ([("A", 4, 6), ("", 1, 4)], {})


PIPELINE = """\
import ripple as rp
@rp.record(name="level")
class Level:
    symbol: str
    price: float
    size: int{}
    timestamp_ns: rp.Timestamp = rp.field(default=0)
line = rp.Pipeline("p").source("s", Level).partition("k", key="symbol")
pipeline = line.fold("f", n=rp.count(), s=rp.sum("size")).sink("o")
"""


def test_durable_runs_check_too_and_see_when_a_check_changes(tmp_path: Path) -> None:
    source = as_log(tmp_path, ROWS)
    code, out, state = tmp_path / "p.py", tmp_path / "o.csv", tmp_path / "state"
    arguments = ["run", code, "--source", source, "--checkpoint-dir", state]

    code.write_text(PIPELINE.format(" = rp.field(gt=0)"))
    first = ripple(*arguments, "--sink", out)
    assert first.code == 0, first.err
    assert out.read_text() == 'symbol,n,s\nA,2,9\n"",1,4\n'
    assert "2  size is not positive" in first.err
    assert "checks size gt=0" in ripple("plan", code).out

    code.write_text(PIPELINE.format(" = rp.field(ge=0)"))
    changed = "the field 'size' of source 's' was checked for gt=0 and is checked for ge=0"
    refused = ripple(*arguments, "--sink", out)
    assert refused.code == 1
    assert changed in refused.err
    assert changed in ripple("plan", code, "--checkpoint-dir", state).out
    again = ripple(*arguments, "--sink", tmp_path / "again.csv", "--rebuild", "f")
    assert again.code == 0, again.err
    assert (tmp_path / "again.csv").read_text() == 'symbol,n,s\nA,3,9\n"",1,4\n'


def test_events_driven_by_hand_are_checked_as_in_the_reference() -> None:
    rows = [*ROWS, {**ROWS[0], "price": math.nan}, {**ROWS[0], "price": math.inf}]
    check_pipeline(pipeline_of(Trade), rows, batch_sizes=(1, 3, 100))
    engine = Engine(pipeline_of(Trade).plan())
    refused = engine.apply("s", pa.RecordBatch.from_pylist(rows), len(rows))
    assert [(bad.row, bad.step, bad.reason) for bad in refused][-2:] == [
        (5, "s", "price is not finite"),
        (6, "s", "price is not finite"),
    ]
    assert engine.counters.dead_lettered == 6
    engine.check_invariants()
