"""Plain lines are read apart and faster, and as the careful way reads them: to the last bit."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.connectors.files.csv import parser
from ripple.connectors.files.csv.format import TRADES, CsvFormat
from ripple.connectors.files.csv.reader import CsvReader
from ripple.connectors.line_blocks import line_blocks
from ripple.model.schema.checks import Checks
from ripple.model.schema.types import Bool, Field, Float, Int, Schema, String
from tests.connectors.bytes_input import BytesInput
from tests.examples import EXAMPLES, SAMPLED

if TYPE_CHECKING:
    from ripple.connectors.base import Rejected

WIDE = pytest.mark.skipif(
    not parser.HAS_WIDE, reason="this processor has no AVX-512 with VBMI2: nothing is read so"
)
FAST = ["vectors", "words", *(["wide"] if parser.HAS_WIDE else [])]
EACH_FAST = ["vectors", "words", pytest.param("wide", marks=WIDE)]
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
NOTHING = CsvFormat(Schema("nothing", ()))
ONE_TEXT = CsvFormat(Schema("one", (Field("text", String()),)))
ONE_NUMBER = CsvFormat(Schema("one", (Field("value", Float()),)))
ONE_INTEGER = CsvFormat(Schema("one", (Field("value", Int()),)))
TWO_OPTIONAL = CsvFormat(
    Schema(
        "two",
        (Field("float", Float(), optional=True), Field("integer", Int(), optional=True)),
    ),
    {"float": Checks(ge=-1000), "integer": Checks(le=10**17)},
)
FIVE_TEXTS = CsvFormat(
    Schema("texts", tuple(Field(name, String(), optional=name < "d") for name in "abcde"))
)
FIVE_OPTIONAL = CsvFormat(
    Schema(
        "five",
        (
            Field("text", String(), optional=True),
            Field("price", Float(), optional=True),
            Field("count", Int(), optional=True),
            Field("unread", Int()),
            Field("note", String(), optional=True),
        ),
    ),
    {"note": Checks(max_length=16), "price": Checks(lt=500_000)},
    columns=("text", "price", "count", "note"),
)


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


@settings(max_examples=72 * EXAMPLES // SAMPLED)
@given(st.lists(st.tuples(LINES, ENDS).map(b"".join), max_size=40).map(b"".join), BLOCKS)
def test_lines_of_any_kind_are_read_alike(data: bytes, block_bytes: int) -> None:
    for csv_format in (TRADES, OPTIONAL, ONE_TEXT):
        assert_all_ways_agree(data, csv_format, block_bytes)


@settings(max_examples=48 * EXAMPLES // SAMPLED)
@given(st.binary(max_size=800), BLOCKS)
def test_bytes_of_any_kind_are_read_alike(data: bytes, block_bytes: int) -> None:
    for csv_format in (TRADES, OPTIONAL, ONE_TEXT):
        assert_all_ways_agree(data, csv_format, block_bytes)


@settings(max_examples=72 * EXAMPLES // SAMPLED)
@given(
    st.lists(st.tuples(st.integers(0, 1999), st.integers(0, 255)), max_size=6),
    st.integers(80, 3000),
)
def test_any_byte_may_stand_anywhere(changes: list[tuple[int, int]], block_bytes: int) -> None:
    data = bytearray((PLAIN + b"\n") * 42)
    for at, byte in changes:
        data[at] = byte
    assert_all_ways_agree(bytes(data), TRADES, block_bytes)


@settings(max_examples=48 * EXAMPLES // SAMPLED)
@given(st.lists(NUMBERS, min_size=20, max_size=60))
def test_numbers_of_any_length_are_read_alike(numbers: list[str]) -> None:
    for csv_format in (ONE_NUMBER, ONE_INTEGER):
        assert_all_ways_agree("\n".join([*numbers, "0" * 90]).encode(), csv_format, 1 << 20)


def _forms(length: int) -> list[str]:
    """Return numbers, and what is nearly one, of so many characters besides a sign."""
    if not length:
        return ["", "-", "-.", "."]
    digits = ("9" * length, "0" * (length - 1) + "7", ("1234567890" * 4)[:length])
    pointed = [text[:at] + "." + text[at + 1 :] for text in digits for at in range(length)]
    twice = [text[:at] + "." + text[at + 1 :] for text in pointed[::5] for at in (0, length - 1)]
    return [sign + text for sign in ("", "-", "+") for text in (*digits, *pointed, *twice)]


@pytest.mark.parametrize("length", [*range(22), 31, 32, 40])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_numbers_of_every_form_are_read_alike(length: int, end: str) -> None:
    forms = _forms(length)
    for csv_format, plain in (
        (ONE_NUMBER, ("4.5", "-6", "1234567.0625")),
        (ONE_INTEGER, ("4", "-65", "1234567")),
        (TWO_OPTIONAL, ("4", "-65", "1234567")),
    ):
        # Four that follow each other may be read at once: each form is each of the four.
        lines = [
            *forms,
            *(text for at, form in enumerate(forms) for text in (*plain[: at % 4], form, *plain)),
        ]
        both = csv_format is TWO_OPTIONAL
        data = end.join(f"{text},{text}" if both else text for text in lines)
        assert_all_ways_agree(data.encode(), csv_format, 1 << 20)


@pytest.mark.parametrize("full", [0, 0.1, 0.5, 0.9, 0.99, 1])
def test_fields_of_no_or_one_character_are_read_alike(full: float) -> None:
    rng = random.Random(full)

    def fields(count: int) -> str:
        return ",".join("7" if rng.random() < full else "" for _ in range(count))

    for csv_format, count in ((TWO_OPTIONAL, 2), (FIVE_OPTIONAL, 5), (FIVE_TEXTS, 5)):
        data = "\n".join([*(fields(count) for _ in range(200)), "end"]).encode()
        assert_all_ways_agree(data, csv_format, 1 << 20)


NEARLY_PLAIN = st.tuples(
    st.text(st.sampled_from("SYM0 #"), max_size=40),
    st.one_of(
        st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), DIGITS, DIGITS),
        st.decimals(0, 10**6, places=3).map(str),
    ),
    st.one_of(DIGITS, st.integers(-(10**6), 10**6).map(str)),
    st.one_of(st.integers(0, 1 << 63).map(str), st.integers(0, 10**20).map(lambda n: f"{n:020}")),
    st.text(st.sampled_from("XNAS"), max_size=20),
).map(",".join)


@settings(max_examples=72 * EXAMPLES // SAMPLED)
@given(
    st.lists(
        st.tuples(NEARLY_PLAIN, st.integers(1, 9), st.sampled_from(["", "", "\r", "\r ", " "])),
        min_size=4,
        max_size=30,
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\r", "\r\n"]),
    st.integers(64, 6000),
)
def test_lines_that_are_nearly_plain_are_read_alike(
    lines: list[tuple[str, int, str]], end: str, last_end: str, block_bytes: int
) -> None:
    """Some times each, so that many follow each other that are plain, or none."""
    text = end.join(line + odd for line, times, odd in lines for _ in range(times)) + last_end
    for csv_format in (TRADES, FIVE_OPTIONAL):
        assert_all_ways_agree(text.encode(), csv_format, block_bytes)


@pytest.mark.parametrize("first", range(0, 256, 16))
def test_every_byte_is_judged_alike_wherever_it_is_in_a_word(first: int) -> None:
    for byte in range(first, first + 16):
        lines = [PLAIN[:at] + bytes([byte]) + PLAIN[at + 1 :] for at in range(len(PLAIN))]
        assert_all_ways_agree(b"\n".join(lines), TRADES, 1 << 20)


@pytest.mark.parametrize("way", EACH_FAST)
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


@pytest.mark.parametrize("way", EACH_FAST)
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


def test_a_line_without_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        CsvReader(NOTHING, "test", LENGTH_MAX)
