"""Records that arrive as columns are judged as CSV lines with the same values are."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripple.connectors.contract import NOWHERE
from ripple.connectors.files.csv.format import TRADES, CsvFormat
from ripple.connectors.files.csv.reader import CsvReader
from ripple.connectors.files.csv.source import CsvSource
from ripple.connectors.files.parquet.files import ParquetSink, ParquetSource
from ripple.connectors.files.text.sink import TextFormat, TextSink
from ripple.connectors.memory import ROWS_AT_ONCE, IteratorSource, MemorySink, MemorySource
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.synthetic.source import SyntheticSource
from ripple.connectors.target import open_target
from ripple.core.errors import InputError, OutputError, SchemaError
from ripple.model.schema.checks import Checks
from ripple.model.schema.types import Bool, Field, Float, Int64, Schema, String
from tests.examples import EXAMPLES, SAMPLED

if TYPE_CHECKING:
    from pathlib import Path

    from ripple.connectors.contract import Source
    from ripple.model.batch import Batch

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


@settings(max_examples=36 * EXAMPLES // SAMPLED)
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
    outside = pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array(["a"]), safe=False)
    with pytest.raises(InputError, match="column 'name' of the record batch is damaged"):
        MemorySource(
            [pa.record_batch({"name": outside, "count": [1, 2], "level": [1.0, 2.0]})], SHAPE
        )
    with pytest.raises(
        SchemaError,
        match=r"no column 'name': it has Name, count, level \(is it 'Name'\? Give the field",
    ):
        MemorySource([{"Name": "a", "count": 1, "level": 1.0}], SHAPE)
    with pytest.raises(InputError, match="rows are mappings by field name"):
        MemorySource([("a", None, 1, 1.0, None)], SHAPE)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("name", b"a", "must be text, not b'a'"),
        ("name", 1, "must be text, not 1"),
        ("count", 1.0, "must be an integer, not 1.0"),
        ("count", 1.5, "must be an integer, not 1.5"),
        ("count", True, "must be an integer, not True"),
        ("count", "7", "must be an integer, not '7'$"),
        ("count", "2026-01-31T09:30:00Z", r'must .*: rp.field.format="iso". of an rp.Timestamp'),
        ("count", datetime(2026, 1, 31, tzinfo=UTC), "must .*: declare a time as datetime"),
        ("count", Decimal("1.5"), "must be an integer, not Decimal"),
        ("level", "high", "must be a number, not 'high'"),
        ("level", True, "must be a number, not True"),
        ("level", 1j, "must be a number, not 1j"),
        ("flag", 1, "must be true or false, not 1"),
        ("flag", "False", "must be true or false, not 'False'"),
    ],
)
def test_a_value_of_another_type_in_a_mapping_is_an_error_that_says_where(
    name: str, value: object, message: str
) -> None:
    good = {"name": "a", "count": 1, "level": 1.0}
    with pytest.raises(SchemaError, match=f"row 1: the field '{name}' {message}"):
        MemorySource([good, {**good, name: value}], SHAPE)


def test_row_of_an_iterator_counts_from_its_first() -> None:
    good = {"name": "a", "count": 1, "level": 1.0}
    at = ROWS_AT_ONCE + 7
    rows = ({**good, "count": 1.5} if number == at else good for number in range(at + 1))
    with pytest.raises(SchemaError, match=f"row {at}: the field 'count' must be an integer"):
        list(IteratorSource(rows, SHAPE).batches())


def test_numbers_of_numpy_are_what_they_are_in_python() -> None:
    plain = {"name": "a", "value": 1.5, "count": 3, "level": 2.0**60, "flag": True}
    numpy = {
        "name": np.str_("a"),
        "value": np.float32(1.5),
        "count": np.uint8(3),
        "level": np.int64(2**60),
        "flag": np.bool_(True),
    }
    [batch] = MemorySource([numpy, plain], SHAPE).batches()
    assert batch.records.to_pylist() == [plain, plain]


# A text that is not UTF-8, in each form that Arrow has for text.
BYTES = pa.array([b"a", b"b\xff\xfe", b"c", None], pa.binary())
TEXT = BYTES.view(pa.string())
ILL_FORMED = {
    "string": TEXT,
    "large_string": TEXT.cast(pa.large_string()),
    "string_view": TEXT.cast(pa.string_view()),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int8()), TEXT[:3]),
    "slice": pa.concat_arrays([TEXT, TEXT]).slice(4),
}


def with_name(name: pa.Array) -> pa.RecordBatch:
    return pa.record_batch({"name": name, "count": [1, 2, 3, 4], "level": [1.0] * 4})


@pytest.mark.parametrize("form", ILL_FORMED)
def test_text_that_is_not_utf8_costs_its_record(tmp_path: Path, form: str) -> None:
    batch = with_name(ILL_FORMED[form])
    found = list(MemorySource([batch], SHAPE).batches())
    assert found == list(MemorySource([pa.Table.from_batches([batch])], SHAPE).batches())
    [one] = found
    one.records.validate(full=True)
    assert one.records.column("count").to_pylist() == [1, 3]
    assert [(bad.offset, bad.reason) for bad in one.rejected] == [
        (1, "name is not valid UTF-8"),
        (3, "name is empty"),
    ]
    assert one.rejected[0].raw == (
        b'{"name": "b\xff\xfe", "value": null, "count": 2, "level": 1.0, "flag": null}'
    )
    if form not in ("string_view", "dictionary"):  # Arrow itself does not write, or read, those
        pq.write_table(pa.Table.from_batches([batch]), tmp_path / "t.parquet")
        [read] = ParquetSource(tmp_path / "t.parquet", SHAPE).batches()
        assert (read.records, read.rejected) == (one.records, one.rejected)


def test_half_a_surrogate_pair_costs_its_record() -> None:
    good = {"name": "\U0001f600", "count": 1, "level": 1.0}
    [batch] = MemorySource([good, {**good, "name": "x\ud83d"}], SHAPE).batches()
    assert batch.records.column("name").to_pylist() == ["\U0001f600"]
    [bad] = batch.rejected
    assert bad.reason == "name is not valid UTF-8"
    assert b'"name": "x\xed\xa0\xbd"' in bad.raw


BEYOND_INT64, MORE_DIGITS = "does not fit in 64 bits", "has more digits than a float holds"
LAST_NS = (1 << 63) - 1


@pytest.mark.parametrize(
    ("kind", "values", "refused"),
    [
        (pa.uint64(), [0, LAST_NS, LAST_NS + 1, (1 << 64) - 1], {2, 3}),
        (pa.timestamp("s"), [0, LAST_NS // 10**9, LAST_NS // 10**9 + 1, 1 << 52], {2, 3}),
        (pa.timestamp("us", "UTC"), [0, -(LAST_NS // 1000), -(LAST_NS // 1000) - 1, 7], {2}),
        (pa.timestamp("ms"), [-(1 << 63), (1 << 63) - 1, None, 5], {0, 1}),
    ],
)
def test_an_integer_that_does_not_fit_costs_its_record(
    tmp_path: Path, kind: pa.DataType, values: list[int | None], refused: set[int]
) -> None:
    shape = RecordShape(Schema("s", (Field("n", Int64(), optional=True),)))
    column = pa.array(values, kind)
    check_refused(tmp_path, shape, column, refused, BEYOND_INT64)
    unit_ns = {"s": 10**9, "ms": 10**6, "us": 1000}[kind.unit] if kind != pa.uint64() else 1
    good = [v and v * unit_ns for at, v in enumerate(values) if at not in refused]
    [batch] = MemorySource([pa.record_batch({"n": column})], shape).batches()
    assert batch.records.column("n").to_pylist() == good


@pytest.mark.parametrize(
    ("kind", "values", "refused"),
    [
        (pa.int64(), [1, 2**53 + 1, 2**53 + 2, -(2**53) - 1, -(2**63), 2**63 - 1], {1, 3, 5}),
        (pa.uint64(), [1, 2**53 + 1, 2**63, 2**64 - 1, 2**64 - 2048, None], {1, 3}),
    ],
)
def test_an_integer_that_a_float_would_round_costs_its_record(
    tmp_path: Path, kind: pa.DataType, values: list[int | None], refused: set[int]
) -> None:
    shape = RecordShape(Schema("s", (Field("n", Float(), optional=True),)))
    column = pa.array(values, kind)
    check_refused(tmp_path, shape, column, refused, MORE_DIGITS)
    mappings = list(MemorySource([{"n": value} for value in values], shape).batches())
    assert mappings[0].records.column("n").to_pylist() == [
        value for at, value in enumerate(values) if at not in refused
    ]


def check_refused(
    tmp_path: Path, shape: RecordShape, column: pa.Array, refused: set[int], phrase: str
) -> None:
    """Check which rows memory and Parquet refuse, and that each shows what it was."""
    table = pa.table({"n": column})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (MemorySource([table], shape), ParquetSource(tmp_path / "t.parquet", shape)):
        [batch] = source.batches()
        assert [bad.offset for bad in batch.rejected] == sorted(refused)
        assert {bad.reason for bad in batch.rejected} == {f"n {phrase}"}
        shown = [json.loads(bad.raw)["n"] for bad in batch.rejected]
        if not pa.types.is_timestamp(column.type):
            assert shown == [column[at].as_py() for at in sorted(refused)]


def test_timestamps_of_older_parquet_writers_do_not_wrap(tmp_path: Path) -> None:
    years = [1, 1677, 1678, 2024, 2262, 2263, 9999]
    times = [datetime(year, 1, 2, tzinfo=UTC) for year in years]
    table = pa.table({"name": [str(year) for year in years], "t": times})
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    shape = RecordShape(Schema("s", (Field("name", String()), Field("t", Int64()))))
    [batch] = ParquetSource(tmp_path / "t.parquet", shape).batches()
    assert batch.records.column("t").to_pylist() == [
        int(time.timestamp()) * 10**9 for time in times if 1677 < time.year < 2263
    ]
    assert [(bad.offset, bad.reason) for bad in batch.rejected] == [
        (at, "t does not fit in 64 bits") for at in (0, 1, 5, 6)
    ]


def write_trades(path: Path, events: int, row_group_rows: int) -> pa.Table:
    sink = ParquetSink(open_target(path), row_group_rows=row_group_rows)
    batches = [batch.records for batch in SyntheticSource(events, batch_rows=37).batches()]
    for batch in batches:
        sink.write(batch, NOWHERE)
    sink.commit(NOWHERE)
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


def test_a_parquet_file_that_is_not_committed_leaves_nothing(tmp_path: Path) -> None:
    [batch] = SyntheticSource(100).batches()
    sink = ParquetSink(open_target(tmp_path / "t.parquet"), row_group_rows=10)
    sink.write(batch.records, NOWHERE)
    sink.close()
    del sink
    assert os.listdir(tmp_path) == []


def test_text_that_is_not_utf8_is_not_written_to_parquet(tmp_path: Path) -> None:
    sink = ParquetSink(open_target(tmp_path / "t.parquet"))
    with pytest.raises(
        OutputError, match=r"t\.parquet: field 'name' of record 1 is not valid UTF-8"
    ):
        sink.write(with_name(TEXT), NOWHERE)
    sink.close()
    assert os.listdir(tmp_path) == []


def test_parquet_files_begin_with_what_became_of_a_row(tmp_path: Path) -> None:
    sink = ParquetSink(open_target(tmp_path / "t.parquet"))
    changes = {"k": ["a", "b", "c"], "op": pa.array([0, 2, 1], pa.int8()), "v": [1.5, None, 2.0]}
    sink.write(pa.record_batch(changes), NOWHERE)
    sink.commit(NOWHERE)
    written = pq.read_table(tmp_path / "t.parquet")
    assert written.column_names == ["op", "k", "v"]
    assert written.to_pydict() == {"op": ["set", "remove", "patch"]} | {
        name: changes[name] for name in ("k", "v")
    }


def test_parquet_without_changes_has_columns_if_they_are_known(tmp_path: Path) -> None:
    ParquetSink(open_target(tmp_path / "none.parquet")).commit(NOWHERE)
    assert os.listdir(tmp_path) == []
    ParquetSink(open_target(tmp_path / "t.parquet"), TRADES.arrow_schema()).commit(NOWHERE)
    assert pq.read_schema(tmp_path / "t.parquet") == TRADES.arrow_schema()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device that is always full")
def test_parquet_to_a_full_disk_names_the_target() -> None:
    [batch] = SyntheticSource(1000).batches()
    sink = ParquetSink(open_target("/dev/full"), row_group_rows=10)
    with pytest.raises(OutputError, match="cannot write /dev/full: No space left"):
        sink.write(batch.records, NOWHERE)
    sink.close()


def test_memory_sink_keeps_changes_that_were_committed() -> None:
    sink = MemorySink()
    changes = pa.record_batch({"k": ["a"], "op": pa.array([0], pa.int8())})
    sink.write(changes, NOWHERE)
    assert sink.rows() == [{"op": 0, "k": "a"}]
    sink.commit(NOWHERE)
    assert sink.finished
    sink.close()
    assert sink.rows() == [{"op": 0, "k": "a"}]


def test_memory_sink_discards_uncommitted_changes() -> None:
    sink = MemorySink()
    sink.write(pa.record_batch({"k": ["a"]}), NOWHERE)
    sink.close()
    assert sink.rows() == []


TEXTS = Schema("text", (Field("a", String(), optional=True), Field("b", String())))


@settings(max_examples=24 * EXAMPLES // SAMPLED)
@given(st.lists(st.tuples(st.one_of(st.none(), CSV_TEXTS), CSV_TEXTS), min_size=1))
@example([("\ufeff", "")])
def test_text_written_as_csv_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, str]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    records = pa.RecordBatch.from_pylist(
        [{"a": a, "b": b} for a, b in rows], RecordShape(TEXTS).arrow_schema()
    )
    sink = TextSink(open_target(path), TextFormat())
    sink.write(records, NOWHERE)
    sink.commit(NOWHERE)
    assert read_all(CsvSource(path, CsvFormat(TEXTS))) == pa.Table.from_batches([records])


def test_csv_written_is_csv_read(tmp_path: Path) -> None:
    table = read_all(SyntheticSource(500))
    sink = TextSink(open_target(tmp_path / "t.csv"), TextFormat())
    for batch in table.to_batches():
        sink.write(batch, NOWHERE)
    sink.commit(NOWHERE)
    assert read_all(CsvSource(tmp_path / "t.csv")) == table
