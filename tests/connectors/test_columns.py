"""Records that arrive as columns are judged as CSV lines with the same values are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripple.connectors.csv_format import TRADES, CsvFormat
from ripple.connectors.csv_reader import CsvReader
from ripple.connectors.csv_source import CsvSource
from ripple.connectors.memory import MemorySink, MemorySource
from ripple.connectors.parquet import ParquetSink, ParquetSource
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.synthetic import SyntheticSource
from ripple.connectors.target import open_target
from ripple.connectors.text_sink import TextFormat, TextSink
from ripple.errors import InputError, OutputError, SchemaError
from ripple.schema.checks import Checks
from ripple.schema.types import Bool, Field, Float, Int64, Schema, String

if TYPE_CHECKING:
    from pathlib import Path

    from ripple.connectors.base import Batch, Source

SHAPE = RecordShape(
    Schema(
        "reading",
        (
            Field("name", String()),
            Field("value", Float(), optional=True),
            Field("count", Int64()),
            Field("level", Float()),
            Field("flag", Bool(), optional=True),
        ),
    ),
    {
        "name": Checks(min_length=1, max_length=3),
        "value": Checks(gt=0, lt=10, finite=True),
        "count": Checks(ge=-5, lt=5),
        "level": Checks(ge=0),
    },
)
NUMBERS = st.one_of(st.floats(-2, 12), st.sampled_from([0.0, -0.0, float("nan"), float("inf")]))
# All but the NUL character, which no line of CSV may contain.
CSV_TEXTS = st.text(
    st.one_of(
        st.sampled_from('",#\n\r\t \ufeff'),
        st.characters(codec="utf-8", exclude_characters="\0"),
    ),
    max_size=5,
)
ROWS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a", "b", "", "äöü", "äöüß"]),
        "value": st.one_of(st.none(), NUMBERS),
        "count": st.integers(-7, 7),
        "level": NUMBERS,
        "flag": st.sampled_from([None, True, False]),
    }
)


def outcome(batches: list[Batch]) -> tuple[str, list[tuple[int, str]]]:
    rows = [row for batch in batches for row in batch.records.to_pylist()]
    return repr(rows), [(bad.offset, bad.reason) for batch in batches for bad in batch.rejected]


def as_lines(rows: list[dict]) -> bytes:
    ordered = [[row[field.name] for field in SHAPE.schema.fields] for row in rows]
    cells = [["" if value is None else str(value) for value in row] for row in ordered]
    return b"".join(",".join(row).encode() + b"\n" for row in cells)


@settings(max_examples=150, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=12), st.integers(1, 5))
def test_columns_and_lines_get_the_same_verdicts(rows: list[dict], batch_rows: int) -> None:
    reader = CsvReader(CsvFormat(SHAPE.schema, SHAPE.checks), "test", 1000)
    from_lines = [b for b in reader.read([memoryview(as_lines(rows))]) if b is not None]
    source = MemorySource(rows, SHAPE, batch_rows=batch_rows)
    assert outcome(list(source.batches())) == outcome(from_lines)


def test_a_required_value_that_is_none_is_rejected_with_the_row_shown() -> None:
    rows = [{"name": "a", "count": 1, "level": 1.0}, {"name": None, "count": 2, "level": 1.5}]
    [batch] = MemorySource(rows, SHAPE).batches()
    assert batch.records.num_rows == 1
    [bad] = batch.rejected
    assert (bad.offset, bad.line_number, bad.reason) == (1, None, "name is empty")
    assert bad.raw == b'{"name": null, "value": null, "count": 2, "level": 1.5, "flag": null}'


def test_batches_and_tables_in_related_types_are_brought_over() -> None:
    batch = pa.record_batch(
        {
            "extra": [1, 2],
            "level": pa.array([1, 2], pa.int32()),
            "count": pa.array([3, 4], pa.timestamp("ns")),
            "name": pa.array(["a", "b"]).dictionary_encode(),
        }
    )
    [found] = MemorySource([batch], SHAPE).batches()
    assert found.records.schema == SHAPE.arrow_schema()
    assert found.records.to_pylist()[1] == {
        "name": "b",
        "value": None,
        "count": 4,
        "level": 2.0,
        "flag": None,
    }
    [same] = MemorySource([pa.Table.from_batches([batch])], SHAPE).batches()
    assert same == found


def test_columns_that_do_not_fit_are_named() -> None:
    with pytest.raises(SchemaError, match="no column 'count': it has name"):
        MemorySource([pa.record_batch({"name": ["a"]})], SHAPE)
    wrong = pa.record_batch({"name": ["a"], "count": ["1"], "level": [1.0]})
    with pytest.raises(SchemaError, match=r"'count' of the record batch is string, but .* int64"):
        MemorySource([wrong], SHAPE)
    with pytest.raises(SchemaError, match="field 'level' is not double"):
        MemorySource([{"name": "a", "count": 1, "level": "high"}], SHAPE)
    huge = pa.record_batch({"name": ["a"], "count": pa.array([1 << 63], pa.uint64()), "level": [1]})
    with pytest.raises(InputError, match="column 'count'"):
        MemorySource([huge], SHAPE)


def write_trades(path: Path, events: int, row_group_rows: int) -> pa.Table:
    sink = ParquetSink(open_target(path), row_group_rows=row_group_rows)
    batches = [batch.records for batch in SyntheticSource(events, batch_rows=37).batches()]
    for batch in batches:
        sink.write(batch)
    sink.finish()
    return pa.Table.from_batches(batches)


def read_all(source: Source, from_offset: int = 0) -> pa.Table:
    return pa.Table.from_batches([batch.records for batch in source.batches(from_offset)])


@pytest.mark.parametrize("batch_rows", [1, 100, 5000, None])
def test_parquet_files_give_back_what_was_written(tmp_path: Path, batch_rows: int | None) -> None:
    path = tmp_path / "trades.parquet"
    table = write_trades(path, 1234, 100)
    assert pq.ParquetFile(path).num_row_groups > 5
    source = ParquetSource(path, TRADES, batch_rows=batch_rows)
    assert read_all(source) == table
    for from_offset in (1, 111, 1233):
        assert read_all(source, from_offset) == table.slice(from_offset)
    assert list(source.batches(1234)) == []
    few = RecordShape(TRADES.schema, TRADES.checks, columns=("price", "size"))
    assert read_all(ParquetSource(path, few)) == table.select(["price", "size"])


def test_parquet_rows_that_break_a_check_are_rejected(tmp_path: Path) -> None:
    [batch] = SyntheticSource(3).batches()
    sizes = pa.array([100, 0, None], pa.int64())
    pq.write_table(
        pa.table(
            [*batch.records.columns[:2], sizes, *batch.records.columns[3:]],
            names=batch.records.schema.names,
        ),
        tmp_path / "t.parquet",
    )
    [found] = ParquetSource(tmp_path / "t.parquet", TRADES).batches()
    assert [(bad.offset, bad.reason) for bad in found.rejected] == [
        (1, "size is not positive"),
        (2, "size is empty"),
    ]


def test_parquet_files_that_do_not_fit_say_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        list(ParquetSource(tmp_path / "missing.parquet", TRADES).batches())
    (tmp_path / "text.parquet").write_text("symbol,price\n" * 9)
    with pytest.raises(InputError, match=r"cannot read .*text\.parquet"):
        list(ParquetSource(tmp_path / "text.parquet", TRADES).batches())
    pq.write_table(pa.table({"symbol": ["a"], "price": ["1"]}), tmp_path / "t.parquet")
    with pytest.raises(SchemaError, match=r"column 'price' of .* is string"):
        list(ParquetSource(tmp_path / "t.parquet", TRADES).batches())


def test_an_aborted_parquet_file_leaves_nothing(tmp_path: Path) -> None:
    [batch] = SyntheticSource(100).batches()
    sink = ParquetSink(open_target(tmp_path / "t.parquet"), row_group_rows=10)
    sink.write(batch.records)
    sink.abort()
    del sink
    assert os.listdir(tmp_path) == []


def test_parquet_without_changes_has_columns_if_they_are_known(tmp_path: Path) -> None:
    ParquetSink(open_target(tmp_path / "none.parquet")).finish()
    assert os.listdir(tmp_path) == []
    ParquetSink(open_target(tmp_path / "t.parquet"), TRADES.arrow_schema()).finish()
    assert pq.read_schema(tmp_path / "t.parquet") == TRADES.arrow_schema()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device that is always full")
def test_parquet_to_a_full_disk_names_the_target() -> None:
    [batch] = SyntheticSource(1000).batches()
    sink = ParquetSink(open_target("/dev/full"), row_group_rows=10)
    with pytest.raises(OutputError, match="cannot write /dev/full: No space left"):
        sink.write(batch.records)
    sink.abort()


def test_memory_sink_keeps_changes_until_aborted() -> None:
    sink = MemorySink()
    changes = pa.record_batch({"op": pa.array([0], pa.int8()), "k": ["a"]})
    sink.write(changes)
    assert sink.rows() == [{"op": 0, "k": "a"}]
    sink.finish()
    assert sink.finished
    sink.abort()
    assert sink.rows() == []


TEXT = Schema("text", (Field("a", String(), optional=True), Field("b", String())))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.one_of(st.none(), CSV_TEXTS), CSV_TEXTS), min_size=1))
@example([("\ufeff", "")])
def test_text_written_as_csv_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, str]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    records = pa.RecordBatch.from_pylist(
        [{"a": a, "b": b} for a, b in rows], RecordShape(TEXT).arrow_schema()
    )
    sink = TextSink(open_target(path), TextFormat())
    sink.write(records)
    sink.finish()
    assert read_all(CsvSource(path, CsvFormat(TEXT))) == pa.Table.from_batches([records])


def test_csv_written_is_csv_read(tmp_path: Path) -> None:
    table = read_all(SyntheticSource(500))
    sink = TextSink(open_target(tmp_path / "t.csv"), TextFormat())
    for batch in table.to_batches():
        sink.write(batch)
    sink.finish()
    assert read_all(CsvSource(tmp_path / "t.csv")) == table
