"""Plain lines are read apart and faster, and as the careful way reads them: to the last bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.connectors.csv import parser
from ripple.connectors.csv.format import TRADES, CsvFormat
from ripple.connectors.csv.reader import CsvReader
from ripple.connectors.line_blocks import line_blocks
from ripple.schema.checks import Checks
from ripple.schema.types import Bool, Field, Float, Int, Schema, String
from tests.connectors.test_csv_source import BytesInput
from tests.examples import EXAMPLES

if TYPE_CHECKING:
    from ripple.connectors.base import Rejected

FAST = ["vector", "portable"]
LENGTH_MAX = 150

OPTIONAL = CsvFormat(
    Schema(
        "optional",
        (
            Field("text", String(), optional=True),
            Field("price", Float(), optional=True),
            Field("count", Int(), optional=True),
            Field("flag", Bool(), optional=True),
            Field("note", String()),
            Field("last", Float()),
        ),
    ),
    {
        "text": Checks(min_length=2, max_length=17),
        "price": Checks(gt=-1e9, lt=1e9),
        "count": Checks(ge=-(10**15)),
    },
    columns=("text", "price", "flag", "note", "last"),
)
ONE_TEXT = CsvFormat(Schema("one", (Field("text", String()),)))
ONE_NUMBER = CsvFormat(Schema("one", (Field("value", Float()),)))
ONE_INTEGER = CsvFormat(Schema("one", (Field("value", Int()),)))


def read(
    data: bytes, csv_format: CsvFormat, block_bytes: int, way: str
) -> tuple[list[pa.RecordBatch], list[tuple[Rejected, ...]], list[int]]:
    blocks = line_blocks(BytesInput(data, [7919]), block_bytes, LENGTH_MAX)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "WAY", way)
        reader = CsvReader(csv_format, "test", LENGTH_MAX)
        batches = [batch for batch in reader.read(blocks) if batch is not None]
    for batch in batches:
        batch.records.validate(full=True)
    return (
        [batch.records for batch in batches],
        [batch.rejected for batch in batches],
        [batch.next_offset for batch in batches],
    )


def bits(batch: pa.RecordBatch) -> list[object]:
    """Its values, floats as their bits: -0.0 is not 0.0, and one NaN not another."""
    return [
        column.view(pa.int64()).to_pylist() if column.type == pa.float64() else column.to_pylist()
        for column in batch.columns
    ]


def assert_all_ways_agree(data: bytes, csv_format: CsvFormat, block_bytes: int) -> None:
    records, *others = read(data, csv_format, block_bytes, "careful")
    expected = [bits(batch) for batch in records]
    for way in FAST:
        found, *found_others = read(data, csv_format, block_bytes, way)
        assert [bits(batch) for batch in found] == expected
        assert found_others == others


# Plain fields, and what is nearly one.

DIGITS = st.text(st.sampled_from("0123456789"), max_size=20)
NUMBERS = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["", "", "-"]), DIGITS),
    st.builds("{}{}.{}".format, st.sampled_from(["", "", "-"]), DIGITS, DIGITS),
    st.decimals(-(10**6), 10**6, places=4).map(str),
    st.floats().map(repr),
    st.integers(-(1 << 64), 1 << 64).map(str),
    st.sampled_from(["", " 1", "1 ", "+1", "1e5", "nan", "-inf", "-", ".", "1..2", "1.2.3", "--1"]),
)
WORDS = st.one_of(
    st.text(st.sampled_from("abcXYZ019 _.#'~"), max_size=40),
    st.text(st.sampled_from('ab,"\t\r\x00\x1f\x7fé€'), max_size=4),
)
FLAGS = st.sampled_from(["true", "False", "0", "1", "", " true", "yes"])
LINES = st.one_of(
    st.tuples(WORDS, NUMBERS, NUMBERS, FLAGS, WORDS, NUMBERS).map(",".join).map(str.encode),
    st.tuples(WORDS, NUMBERS, NUMBERS, NUMBERS, WORDS).map(",".join).map(str.encode),
    st.sampled_from([b"", b"\r", b"#", b",", b"\xff", b'"a\n"', b"x" * 151, b"a,b\rc,1,1,d"]),
)
PLAIN = b"SYM0042,178.7374,15112,1700000000000706333,XNAS"
ENDS = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n"])
BLOCKS = st.integers(1, 600)


@settings(max_examples=72 * EXAMPLES)
@given(st.lists(st.tuples(LINES, ENDS).map(b"".join), max_size=40).map(b"".join), BLOCKS)
def test_lines_of_any_kind_are_read_alike(data: bytes, block_bytes: int) -> None:
    for csv_format in (TRADES, OPTIONAL, ONE_TEXT):
        assert_all_ways_agree(data, csv_format, block_bytes)


@settings(max_examples=48 * EXAMPLES)
@given(st.binary(max_size=800), BLOCKS)
def test_bytes_of_any_kind_are_read_alike(data: bytes, block_bytes: int) -> None:
    for csv_format in (TRADES, OPTIONAL, ONE_TEXT):
        assert_all_ways_agree(data, csv_format, block_bytes)


@settings(max_examples=72 * EXAMPLES)
@given(
    st.lists(st.tuples(st.integers(0, 1999), st.integers(0, 255)), max_size=6),
    st.integers(80, 3000),
)
def test_any_byte_may_stand_anywhere(changes: list[tuple[int, int]], block_bytes: int) -> None:
    data = bytearray((PLAIN + b"\n") * 42)
    for at, byte in changes:
        data[at] = byte
    assert_all_ways_agree(bytes(data), TRADES, block_bytes)


@settings(max_examples=48 * EXAMPLES)
@given(st.lists(NUMBERS, min_size=20, max_size=60))
def test_numbers_of_any_length_are_read_alike(numbers: list[str]) -> None:
    for csv_format in (ONE_NUMBER, ONE_INTEGER):
        assert_all_ways_agree("\n".join([*numbers, "0" * 90]).encode(), csv_format, 1 << 20)


@pytest.mark.parametrize("byte", range(256))
def test_every_byte_is_judged_alike_wherever_it_is_in_a_word(byte: int) -> None:
    lines = [PLAIN[:at] + bytes([byte]) + PLAIN[at + 1 :] for at in range(len(PLAIN))]
    assert_all_ways_agree(b"\n".join(lines), TRADES, 1 << 20)


@pytest.mark.parametrize("way", FAST)
def test_decimals_are_the_doubles_next_to_them(way: str) -> None:
    texts = [
        f"{sign}{whole}.{fraction}"
        for sign in ("", "-")
        for whole in ("0", "7", "00012", "123456", "99999999", "123456789", "9007199254740993")
        for fraction in ("0", "1", "25", "000001", "1234567", "99999999", "123456789")
    ]
    data = "\n".join([*texts, *(text.replace(".", "") for text in texts)]).encode()
    [records], _, _ = read(data, ONE_NUMBER, 1 << 20, way)
    expected = [float(text) for text in data.decode().split("\n")]
    assert [value.hex() for value in records.column(0).to_pylist()] == [
        value.hex() for value in expected
    ]


@pytest.mark.parametrize("way", FAST)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_only_lines_that_are_not_plain_go_the_careful_way(way: str, end: bytes) -> None:
    odd = {50: b'"SYM0042",1,1,1,X', 51: b"\xc3\xa4,1,1,1,X", 90: b"", 400: b"A,1e1,1, 1,X"}
    lines = [odd.get(number, PLAIN) for number in range(1000)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "WAY", way)
        reader = CsvReader(TRADES, "test", LENGTH_MAX)
    [batch] = reader.read([memoryview(end.join([*lines, b""]))])
    assert batch is not None
    assert (batch.records.num_rows, batch.rejected) == (999, ())
    assert reader._parser is not None
    # Two in a row take two plain ones with them; the last 80 bytes are read carefully, too.
    assert reader._parser.careful_lines - 5 in (1, 2)
