"""The CSV source accepts exactly the lines that a slow, obvious reader accepts."""

from __future__ import annotations

import gzip
import math
import os
import re
import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.connectors.cutting import recut
from ripple.connectors.files.csv.format import TRADES, Comments, CsvFormat
from ripple.connectors.files.csv.reader import CsvReader
from ripple.connectors.files.csv.source import CsvSource, _Numbered
from ripple.connectors.line_blocks import line_blocks
from ripple.core.errors import InputError, SchemaError
from ripple.model.batch import Batch, Rejected
from ripple.model.schema.checks import Checks
from ripple.model.schema.types import Bool, Field, Float, Int, Int64, List, Option, Schema, String
from tests.connectors.bytes_input import BytesInput
from tests.examples import EXAMPLES, SAMPLED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVERYTHING = CsvFormat(
    Schema(
        "everything",
        (
            Field("name", String()),
            Field("note", String(), optional=True),
            Field("count", Int(), optional=True),
            Field("ratio", Option(Float())),
            Field("flag", Bool()),
            Field("bounded", Int64()),
        ),
    ),
    {
        "name": Checks(max_length=3),
        "note": Checks(min_length=2, max_length=4),
        "count": Checks(le=1 << 40),
        "ratio": Checks(gt=0, le=0.5e300),
        "bounded": Checks(ge=-5, lt=100),
    },
)
LENGTH_MAX = 60


def read(data: bytes, csv_format: CsvFormat, block_bytes: int, sizes: list[int]) -> list[Batch]:
    lines = line_blocks(BytesInput(data, sizes), block_bytes, LENGTH_MAX)
    return list(recut(CsvReader(csv_format, "test", LENGTH_MAX).read(lines), None))


# The twin: one line at a time, in plain Python.


def twin(data: bytes, csv_format: CsvFormat) -> tuple[list[dict], list[Rejected]]:
    rows: list[dict] = []
    rejected: list[Rejected] = []
    data = data.removeprefix(b"\xef\xbb\xbf")
    lines = data.split(b"\n")
    begun = csv_format.comments == "none"
    at = 0
    while at < len(lines):
        number, line = at + 1, lines[at].removesuffix(b"\r")
        at += 1
        if not line or is_comment(line, csv_format, begun=begun):
            continue
        begun = True
        for upto in range(at, len(lines) + 1):
            text = b"\n".join(lines[number - 1 : upto]).removesuffix(b"\r")
            ending = how_it_ends(text)
            if ending != "in quotes":
                if ending == "well" and len(text) <= LENGTH_MAX:
                    line, at = text, upto
                break
        row, reason = judge(line, csv_format)
        if row is None:
            kept = line[: LENGTH_MAX + 6]
            rejected.append(Rejected(len(rows) + len(rejected), number, reason, kept))
        else:
            rows.append(row)
    return rows, rejected


def is_comment(line: bytes, csv_format: CsvFormat, *, begun: bool) -> bool:
    if csv_format.comments == "anywhere" or not line.startswith(b"#"):
        return line.startswith(b"#")
    return not begun and judge(line, csv_format)[0] is None


def how_it_ends(text: bytes) -> str:
    """Whether a record can end here: a field that begins with a quote ends with one."""
    rest: bytes | None = text
    while rest is not None:
        if rest.startswith(b'"'):
            found = re.match(rb'"(?:[^"]|"")*"(?!")', rest)
            if not found:
                return "in quotes"
            rest = rest[found.end() :]
            if rest and not rest.startswith(b","):
                return "badly"
        field, comma, after = rest.partition(b",")
        if b'"' in field:
            return "badly"
        rest = after if comma else None
    return "well"


QUOTED = r'"((?:[^"]|"")*)"(?!")(,|\Z)'
UNQUOTED = r"([^,]*)(,|\Z)"


def judge(line: bytes, csv_format: CsvFormat) -> tuple[dict | None, str]:
    if len(line) > LENGTH_MAX:
        return None, f"line is longer than {LENGTH_MAX} bytes"
    if b"\0" in line:
        return None, "line contains a NUL byte"
    try:
        rest: str | None = line.decode()
    except UnicodeDecodeError:
        return None, "line is not valid UTF-8"
    row = {}
    for field in csv_format.schema.fields:
        if rest is None:
            return None, "too few fields"
        is_text, begins = field.type == String(), rest.startswith('"')
        quoted = is_text and begins
        found = re.match(QUOTED if begins else UNQUOTED, rest)
        if not found or ('"' in found[1] and is_text != begins):
            return None, f"{field.name} is badly quoted"
        text = found[1].replace('""', '"') if quoted else found[1]
        rest = rest[found.end() :] if found[2] else None
        value, reason = convert(text, field, quoted, csv_format)
        if reason:
            return None, f"{field.name} {reason}"
        row[field.name] = value
    if rest is not None:
        return None, "too many fields"
    return row, ""


def convert(text: str, field: Field, quoted: bool, csv_format: CsvFormat) -> tuple[object, str]:
    kind = field.type.of if isinstance(field.type, Option) else field.type
    optional = field.optional or isinstance(field.type, Option)
    checks = csv_format.checks.get(field.name, Checks())
    text = text if kind == String() else text.strip(" \t")
    if text == "" and optional and not quoted:
        return None, ""
    if kind == String():
        return text, ill_measured(text, checks)
    if text == "":
        return None, "is empty"
    if kind == Bool():
        return to_bool(text)
    value, reason = to_float(text) if kind == Float() else to_integer(text)
    return (None, reason) if value is None else (value, broken(value, checks))


def to_bool(text: str) -> tuple[bool | None, str]:
    if text.lower() not in ("true", "false", "0", "1") or not text.isascii():
        return None, "is not true or false"
    return text.lower() in ("true", "1"), ""


def to_float(text: str) -> tuple[float | None, str]:
    if re.fullmatch(r"[-+]?(nan|inf|infinity)", text, re.ASCII | re.IGNORECASE):
        return float(text), ""
    if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII):
        return None, "is not a number"
    if math.isinf(float(text)):
        return None, "is too large for a float"
    if float(text) == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        return None, "is too close to 0 for a float"
    return float(text), ""


def to_integer(text: str) -> tuple[int | None, str]:
    if not re.fullmatch(r"[-+]?\d+", text, re.ASCII):
        return None, "is not an integer"
    value = int(text)
    return (value, "") if -(1 << 63) <= value < 1 << 63 else (None, "does not fit in 64 bits")


def ill_measured(text: str, checks: Checks) -> str:
    if text == "" and checks.min_length:
        return "is empty"
    too_short = checks.min_length is not None and len(text) < checks.min_length
    too_long = checks.max_length is not None and len(text) > checks.max_length
    return f"is not {checks.length_words}" if too_short or too_long else ""


def broken(value: float, checks: Checks) -> str:
    if checks.finite and not math.isfinite(value):
        return "is not finite"
    for passes, bound in (
        (value.__gt__, checks.gt),
        (value.__ge__, checks.ge),
        (value.__lt__, checks.lt),
        (value.__le__, checks.le),
    ):
        if bound is not None and not passes(bound):
            return f"is not {checks.range_words}"
    return ""


# Fields and lines of every kind, good ones often enough.

NUMBER_TEXTS = st.one_of(
    st.integers(-(1 << 65), 1 << 65).map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=0, max_value=999).map(
        str
    ),
    st.from_regex(r"[ \t]?-?[0-9]{0,22}\.?[0-9]{0,4}([eE][-+]?[0-9]{1,3})?[ \t]?", fullmatch=True),
    st.sampled_from(
        [
            "0",
            "-0",
            "007",
            "+1",
            "1_0",
            "0x1",
            "1e5",
            "1e400",
            "1e-400",
            "1" + "0" * 30 + "e280",
            "0." + "0" * 20 + "1e-310",
            "0." + "0" * 20 + "1e340",
            "1e-99999999999",
            "1e999999999999",
            '"1.5"',
            '"7"',
            '"1,5"',
            '""',
            '" 1 "',
            '"1',
            '"1""',
            '"1"2',
            "-1e-400",
            "0e999",
            "5.",
            ".5",
            ".",
            "-",
            "--",
            "1e",
            "1e+",
            "nan",
            "NaN",
            "inf",
            "-inf",
            "infinity",
            "-nan",
            "NAN",
            "INF",
            "+inf",
            "-Infinity",
            "INFINITY",
            "infinit",
            "+1.5",
            "+7",
            "+.5e+3",
            "+1e400",
            "+-1",
            "++1",
            "+",
            "+ 1",
            "nan(1)",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "4611686018427387903",
            "4611686018427387904",
            "1.7976931348623157e308",
            "1.7976931348623159e308",
            "5e-324",
            "2e-324",
            "0.1000000000000000055511151231257827",
            "9007199254740993",
            "123456789012345",
            "1234567890123456",
            "00000000000000000000000001",
            "٣",
        ]
    ),
    st.just(""),
    st.just(" "),
)
TEXTS = st.one_of(
    st.sampled_from(
        ["AAPL", "XNAS", "", '""', '"a,b"', '"a""b"', '"a"b', '"a', 'a"b', '"', "ü", "#x"]
    ),
    # Lines in quotes, or quotes that were never closed.
    st.sampled_from(['"a\nb"', '"a\r\nb"', '"\n#b\n"', '"a\n1,1,1,1,x\nb"', '"a\nb"c', '"a\n\0"']),
    st.text(st.sampled_from('ab,"# \t\r\x00é€😀'), max_size=6),
)
FLAGS = st.sampled_from(
    ['"true"', '"0"', '""', "true", "FALSE", "True", "1", "0", "yes", "", " false ", "truth", "tru"]
)
TRADE_LINES = st.one_of(
    st.tuples(
        st.sampled_from(["AAPL", "SPY", "Ä"]),
        st.decimals(min_value=1, max_value=999, places=2).map(str),
        st.integers(1, 10**6).map(str),
        st.integers(0, (1 << 62) - 1).map(str),
        st.sampled_from(["XNAS", ""]),
    ).map(",".join),
    st.tuples(TEXTS, NUMBER_TEXTS, NUMBER_TEXTS, NUMBER_TEXTS, TEXTS).map(",".join),
)
EVERYTHING_LINES = st.one_of(
    st.tuples(TEXTS, TEXTS, NUMBER_TEXTS, NUMBER_TEXTS, FLAGS, st.integers(-9, 110).map(str)).map(
        ",".join
    ),
    st.tuples(
        st.just("n"), TEXTS, st.sampled_from(["", "-3"]), NUMBER_TEXTS, FLAGS, st.just("7")
    ).map(",".join),
)
ODD_LINES = st.one_of(
    st.sampled_from(
        [b"", b"\r", b"# comment", b"#" * 100, b" # no comment", b",,,,", b",,,,,", b"\xff,1,1,1,x"]
    ),
    st.binary(max_size=20),
    st.integers(LENGTH_MAX - 30, LENGTH_MAX + 30).map(lambda n: b"x" * n + b",1.5,10,1,v"),
    # Every kind of ill-formed UTF-8: overlong, surrogate, beyond the last code point, cut short.
    st.sampled_from(
        [
            b"\xc0\x80",
            b"\xe0\x9f\xbf",
            b"\xed\xa0\x80",
            b"\xf0\x8f\xbf\xbf",
            b"\xf4\x90\x80\x80",
            b"\xe2\x82",
            b"\x80",
            b"\xf5\x80\x80\x80",
            b"\xef\xbf\xbf",
            b"\xf4\x8f\xbf\xbf",
        ]
    ).map(lambda symbol: symbol + b",1.5,10,1,v"),
)


def files(lines: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    encoded = st.one_of(lines.map(str.encode), lines.map(str.encode), ODD_LINES)
    ends = st.sampled_from([b"\n", b"\n", b"\r\n"])
    body = st.lists(st.tuples(encoded, ends).map(b"".join), max_size=12).map(b"".join)
    return st.tuples(
        st.sampled_from([b"", b"", b"\xef\xbb\xbf"]), body, st.one_of(st.just(b""), encoded)
    ).map(b"".join)


BLOCKS = st.integers(1, 200)
SIZES = st.lists(st.integers(1, 90), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("csv_format", "lines"), [(TRADES, TRADE_LINES), (EVERYTHING, EVERYTHING_LINES)]
)
def test_any_lines_in_any_blocks_equal_the_twin(
    csv_format: CsvFormat, lines: st.SearchStrategy
) -> None:
    @settings(max_examples=28 * EXAMPLES // SAMPLED)
    @given(files(lines), BLOCKS, SIZES)
    def compare(data: bytes, block_bytes: int, sizes: list[int]) -> None:
        rows, rejected = twin(data, csv_format)
        batches = read(data, csv_format, block_bytes, sizes)
        found = [row for batch in batches for row in batch.records.to_pylist()]
        # repr tells -0.0 from 0.0 and calls NaN equal to NaN.
        assert repr(found) == repr(rows)
        seen = [bad for batch in batches for bad in batch.rejected]
        assert [(b.offset, b.line_number, b.reason) for b in seen] == [
            (b.offset, b.line_number, b.reason) for b in rejected
        ]
        for mine, other in zip(seen, rejected, strict=True):
            assert mine.raw[:LENGTH_MAX] == other.raw[:LENGTH_MAX]
            assert len(mine.raw) <= LENGTH_MAX + 8 or len(mine.raw) <= block_bytes + 90
        offsets = [offset for batch in batches for offset in batch.offsets()]
        assert sorted([*offsets, *(b.offset for b in seen)]) == list(
            range(len(rows) + len(rejected))
        )
        for batch in batches:
            batch.records.validate(full=True)

    compare()


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def good_and_bad(source: CsvSource) -> tuple[list[dict], list[Rejected]]:
    rows: list[dict] = []
    rejected: list[Rejected] = []
    for batch in source.batches():
        rows += batch.records.to_pylist()
        rejected += batch.rejected
    return rows, rejected


def until_error(source: CsvSource) -> tuple[list[Batch], str]:
    batches: list[Batch] = []
    try:
        batches.extend(source.batches())
    except InputError as error:
        return batches, str(error)
    raise AssertionError("no error")


def trades(count: int) -> bytes:
    return b"".join(b"S%d,%d.25,%d,%d,XNAS\n" % (i % 7, i, i + 1, i) for i in range(count))


class TricklingInput(BytesInput):
    """One whose next piece comes when everybody has seen that nothing is waiting."""

    def is_ready(self, timeout_ms: int) -> bool:
        assert timeout_ms == 0, "nobody waits while there are lines to hand on"
        return False


def test_lines_are_handed_on_when_nothing_more_is_waiting() -> None:
    blocks = line_blocks(TricklingInput(b"a\nb\nc,d\n", [4, 1, 1, 3]), 1 << 20, LENGTH_MAX)
    found = [None if block is None else bytes(block) for block in blocks]
    assert found == [b"a\nb\n", None, b"c,d\n", None]


class DriedInput(BytesInput):
    """One in which nothing is waiting."""

    def is_ready(self, timeout_ms: int) -> bool:
        return False


def test_pause_that_is_over_when_it_is_noticed_is_none(tmp_path: Path) -> None:
    blocks = ["one", None, "two", None]
    source = CsvSource(tmp_path / "trades.csv")
    read = _Numbered(iter(blocks), BytesInput(b"", [1]))
    slow = list(read)  # all of it came while the consumer was busy
    assert list(source._noting(iter(slow), read)) == ["one", "two", None]
    read = _Numbered(iter(blocks), BytesInput(b"", [1]))
    assert list(source._noting(iter(read), read)) == blocks


def test_a_block_and_the_pause_after_it_wake_the_consumer_once(tmp_path: Path) -> None:
    source = CsvSource(tmp_path / "trades.csv")
    read = _Numbered(iter(["one", None, "two", "three", None]), DriedInput(b"", [1]))
    items = []
    for item in read:
        items.append(item)
        assert list(source._noting(iter([item]), read)) == [item[2], None][: 1 + item[3]]
    assert [(block, pauses) for _, _, block, pauses in items] == [
        ("one", True),
        ("two", False),
        ("three", True),
    ]


@pytest.mark.parametrize("is_ready", [True, False])
def test_records_before_damage_come_before_its_error(tmp_path: Path, is_ready: bool) -> None:
    def damaged() -> Iterator[str]:
        yield "one"
        raise InputError("damaged")

    read = _Numbered(damaged(), (BytesInput if is_ready else DriedInput)(b"", [1]))
    found = []
    with pytest.raises(InputError, match="damaged"):
        found.extend(block for _, _, block, _ in read)
    assert found == ["one"]


@pytest.mark.parametrize("batch_rows", [1, 7, 1000, 10**6, None])
def test_batches_of_any_size_hold_the_same_records(tmp_path: Path, batch_rows: int | None) -> None:
    lines = trades(2500).splitlines(keepends=True)
    lines[3] = b"broken\n"
    lines[999:1002] = [b"AAPL,1,0,0,X\n", b"# comment\n", b"AAPL,nan,1,0,X\n"]
    path = write(tmp_path / "trades.csv", b"".join(lines))
    batches = list(CsvSource(path, batch_rows=batch_rows, block_bytes=4096).batches())
    records = pa.Table.from_batches([batch.records for batch in batches])
    whole = pa.Table.from_batches([b.records for b in CsvSource(path, batch_rows=None).batches()])
    assert records.equals(whole)
    assert [bad.offset for batch in batches for bad in batch.rejected] == [3, 999, 1000, 1001]
    assert [bad.line_number for batch in batches for bad in batch.rejected] == [4, 1000, 1001, 1002]
    if batch_rows is not None:
        assert [batch.span for batch in batches[:-1]] == [batch_rows] * (len(batches) - 1)
    first = 0
    for batch in batches:
        assert batch.first_offset == first
        first = batch.next_offset
    assert first == 2500


@settings(max_examples=14 * EXAMPLES // SAMPLED)
@given(st.integers(1, 50), st.integers(0, 60), st.integers(1, 90), st.sets(st.integers(0, 49)))
def test_reading_from_an_offset_leaves_out_what_is_before(
    batch_rows: int, from_offset: int, block_bytes: int, bad: set[int]
) -> None:
    lines = [b"bad" if i in bad else b"S,1,1,%d,X" % i for i in range(50)]
    raw = line_blocks(BytesInput(b"\n".join(lines), [17]), block_bytes, LENGTH_MAX)
    batches = list(recut(CsvReader(TRADES, "test", LENGTH_MAX).read(raw), batch_rows, from_offset))
    offsets = [int(offset) for batch in batches for offset in batch.offsets()]
    times = [time for batch in batches for time in batch.records.column("timestamp_ns").to_pylist()]
    assert offsets == times == [i for i in range(from_offset, 50) if i not in bad]
    assert all(batch.span for batch in batches)


def test_a_line_of_100_megabytes_is_rejected_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    with path.open("wb") as file:
        file.write(b"A,1,1,1,X\n")
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b"\nB,1,1,1,X\n")
    before = pa.total_allocated_bytes()
    source = CsvSource(path)
    [batch] = source.batches()
    assert batch.records.column("symbol").to_pylist() == ["A", "B"]
    [bad] = batch.rejected
    assert (bad.offset, bad.line_number) == (1, 2)
    assert bad.reason == "line is longer than 1048576 bytes"
    assert bad.raw == b"x" * 4096
    assert pa.total_allocated_bytes() - before < 8 << 20


TEXT_AND_NUMBER = CsvFormat(Schema("note", (Field("text", String()), Field("n", Int()))))


def notes(tmp_path: Path, text: str) -> tuple[list[tuple[str, int]], list[tuple[int, int, str]]]:
    path = write(tmp_path / "t.csv", text.encode())
    rows, rejected = good_and_bad(CsvSource(path, TEXT_AND_NUMBER, line_length_bytes_max=40))
    return (
        [(row["text"], row["n"]) for row in rows],
        [(bad.offset, bad.line_number, bad.reason) for bad in rejected],
    )


def test_quoted_field_may_look_like_records(tmp_path: Path) -> None:
    rows, rejected = notes(tmp_path, 'a,1\n"b\nforged,2\r\n#c",3\nd,4\n')
    assert rows == [("a", 1), ("b\nforged,2\r\n#c", 3), ("d", 4)]
    assert rejected == []


def test_a_record_of_several_lines_is_refused_as_a_whole_at_its_first_line(tmp_path: Path) -> None:
    rows, rejected = notes(tmp_path, 'a,1\n"b\nforged,2\nc",x\nd,4\n\n"e\n"\nf,5\n')
    assert rows == [("a", 1), ("d", 4), ("f", 5)]
    assert rejected == [(1, 2, "n is not an integer"), (3, 7, "too few fields")]


@pytest.mark.parametrize(
    "line", ['"b,2', '"b"c,2', 'b",2', 'b"b"b,2', '"b, "2', '"' + "x" * 50 + '\ny",2']
)
def test_a_stray_quote_costs_one_line(tmp_path: Path, line: str) -> None:
    good = [(f"row {number}", number) for number in range(5)]
    text = "".join(f"{text},{number}\n" for text, number in good)
    rows, rejected = notes(tmp_path, f"{text}{line}\n{text}")
    assert rows == good + good
    assert [offset for offset, _, _ in rejected] == list(range(5, 6 + line.count("\n")))


def test_stray_quotes_cost_no_more_time_than_their_lines() -> None:
    reader = CsvReader(TEXT_AND_NUMBER, "test", 1 << 20)

    def took_s(block: bytes) -> float:
        started = time.process_time()
        list(reader.read([memoryview(block)]))
        return time.process_time() - started

    # Each of these lines leaves quotes open, or would if what is in it opened and closed them.
    for line in (b'"a\n', b'x,"\n', b'a","\n', b'"a"",\n', b'"""\n', b'a"b,"c\n'):
        few = line * ((1 << 12) // len(line))
        # Of eight times as many lines: 64 times as long if each looked at all behind it. The clock
        # may go on in steps of some milliseconds.
        least_s, most_s = (min(took_s(block) for _ in range(3)) for block in (few, 8 * few))
        assert most_s < 20 * max(least_s, 0.005), line


def test_quoted_numbers_are_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", b'"a","ab","-7","1.5","true","3"\n"b",xx,"","",0,"-1e1"\n')
    rows, rejected = good_and_bad(CsvSource(path, EVERYTHING))
    assert rows == [
        {"name": "a", "note": "ab", "count": -7, "ratio": 1.5, "flag": True, "bounded": 3}
    ]
    assert [bad.reason for bad in rejected] == ["bounded is not an integer"]


TAGS = Schema("tags", (Field("tag", String()), Field("n", Int())))
TAG_LINES = b"# tag and n\n\n#,x\n#python,1\nrust,2\n# ten\n#python,5\n"


@pytest.mark.parametrize(
    ("comments", "lines", "tags", "refused"),
    [
        ("ahead", TAG_LINES, ["#python", "rust", "#python"], [6]),
        ("ahead", b"a,1\n" + TAG_LINES, ["a", "#python", "rust", "#python"], [2, 4, 7]),
        ("ahead", b"nothing\n" + TAG_LINES, ["#python", "rust", "#python"], [1, 2, 4, 7]),
        ("none", TAG_LINES, ["#python", "rust", "#python"], [1, 3, 6]),
        ("anywhere", TAG_LINES, ["rust"], []),
    ],
)
def test_a_line_that_begins_like_a_comment_and_is_a_record_is_one(
    tmp_path: Path, comments: Comments, lines: bytes, tags: list[str], refused: list[int]
) -> None:
    path = write(tmp_path / "t.csv", lines)
    for block_bytes in (1, 1000):
        source = CsvSource(path, CsvFormat(TAGS, comments=comments), block_bytes=block_bytes)
        rows, rejected = good_and_bad(source)
        assert [row["tag"] for row in rows] == tags
        assert [bad.line_number for bad in rejected] == refused


@pytest.mark.parametrize("block_bytes", [1, 1000])
def test_no_line_after_a_header_is_a_comment(tmp_path: Path, block_bytes: int) -> None:
    path = write(tmp_path / "t.csv", b"# tags\nn,tag\n#,a\n1,#python\n")
    source = CsvSource(path, CsvFormat(TAGS, header=True), block_bytes=block_bytes)
    rows, rejected = good_and_bad(source)
    assert rows == [{"tag": "#python", "n": 1}]
    assert [(bad.line_number, bad.reason) for bad in rejected] == [(3, "n is not an integer")]
    path.write_bytes(b"tag,n\n#python,1\n# 2\nrust,1\n#python,2\n")
    rows, rejected = good_and_bad(source)
    assert [row["n"] for row in rows if row["tag"] == "#python"] == [1, 2]
    assert [bad.line_number for bad in rejected] == [3]


def test_headers_give_columns_in_any_order(tmp_path: Path) -> None:
    csv_format = CsvFormat(EVERYTHING.schema, EVERYTHING.checks, header=True)
    text = b'\xef\xbb\xbf# comment\n\n"bounded",flag,extra,name,ratio\r\n'
    text += b'1,true,"x,",a,0.5\n2,0,,b,\n3,1\n'
    for block_bytes in (1, 20, 1000):
        path = write(tmp_path / "t.csv", text)
        rows, rejected = good_and_bad(CsvSource(path, csv_format, block_bytes=block_bytes))
        assert rows == [
            {"name": "a", "note": None, "count": None, "ratio": 0.5, "flag": True, "bounded": 1},
            {"name": "b", "note": None, "count": None, "ratio": None, "flag": False, "bounded": 2},
        ]
        assert rejected == [Rejected(2, 6, "too few fields", b"3,1")]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"symbol,price,size,venue\n", "no column 'timestamp_ns'"),
        (b"symbol,price,size,timestamp_ns,venue,price\n", "column 'price' twice"),
        (b"\xff\n", "not readable"),
        (b'"a\n', "not readable"),
    ],
)
def test_a_header_that_does_not_fit_is_an_error(
    tmp_path: Path, header: bytes, message: str
) -> None:
    path = write(tmp_path / "t.csv", header + b"A,1,1,1,X\n")
    with pytest.raises(InputError, match=message):
        list(CsvSource(path, CsvFormat(TRADES.schema, header=True)).batches())


def test_fewer_columns_do_not_change_which_lines_are_records(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", b"A,1,1,1,X\nA,1,1,-1,X\nA,1,x,1,X\n\xff,1,1,1,X\nB,1,1,1,\xff\n"
    )
    few = CsvFormat(TRADES.schema, TRADES.checks, columns=("price", "size"))
    rows, rejected = good_and_bad(CsvSource(path, few))
    assert rows == [{"price": 1.0, "size": 1}]
    assert rejected == good_and_bad(CsvSource(path))[1]


def test_formats_that_cannot_be_are_refused() -> None:
    with pytest.raises(SchemaError, match="no field 'prize': it has symbol, price"):
        CsvFormat(TRADES.schema, columns=("prize",))
    with pytest.raises(SchemaError, match="field 'size' is Int, but finite is a check of floats"):
        CsvFormat(TRADES.schema, {"size": Checks(finite=True)})
    with pytest.raises(SchemaError, match="'tags' has type List"):
        CsvFormat(Schema("s", (Field("tags", List(List(String()))),)))


def test_compressed_files_read_like_plain_ones(tmp_path: Path) -> None:
    data = trades(5000)
    plain = good_and_bad(CsvSource(write(tmp_path / "t.csv", data)))
    two_members = gzip.compress(data[:777]) + b"\0" * 9 + gzip.compress(data[777:]) + b"\0" * 512
    assert good_and_bad(CsvSource(write(tmp_path / "t.csv.gz", two_members))) == plain
    zstd = pa.compress(data, codec="zstd", asbytes=True)
    assert good_and_bad(CsvSource(write(tmp_path / "t.csv.zst", zstd))) == plain
    assert good_and_bad(CsvSource(write(tmp_path / "u.csv.zst", zstd + zstd)))[0] == 2 * plain[0]


@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.parametrize("cut", [10, 5000])
def test_a_cut_archive_gives_what_came_before_and_then_an_error(
    tmp_path: Path, suffix: str, cut: int
) -> None:
    rng = np.random.default_rng(5)
    data = b"".join(b"S,%d,%d,%d,X\n" % (*rng.integers(1, 10**9, 2), i) for i in range(40_000))
    packed = (
        gzip.compress(data) if suffix == "gz" else pa.compress(data, codec="zstd", asbytes=True)
    )
    path = write(tmp_path / f"t.csv.{suffix}", packed[:-cut])
    batches, error = until_error(CsvSource(path))
    times = [time for b in batches for time in b.records.column("timestamp_ns").to_pylist()]
    assert times == list(range(len(times)))
    # A block of Zstandard is decoded whole or not at all.
    assert len(times) > (40_000 - cut if suffix == "gz" else 20_000)
    assert f"t.csv.{suffix}" in error
    assert "\n" not in error


def test_a_damaged_archive_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv.gz", gzip.compress(trades(10)) + b"garbage")
    batches, error = until_error(CsvSource(path))
    assert "not sound gzip data" in error
    assert [batch.span for batch in batches] == [10]
    with pytest.raises(InputError, match="not sound Zstandard data"):
        list(CsvSource(write(tmp_path / "t.csv.zst", b"garbage")).batches())


def test_inputs_that_cannot_be_read_say_so_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*missing\.csv: No such file"):
        list(CsvSource(tmp_path / "missing.csv").batches())
    with pytest.raises(InputError, match="it is a directory"):
        list(CsvSource(tmp_path).batches())
    with pytest.raises(InputError, match="batch_rows must be at least 1, not 0"):
        CsvSource(tmp_path, batch_rows=0)
    assert list(CsvSource(write(tmp_path / "empty.csv", b"")).batches()) == []
    for suffix, packed in (("gz", gzip.compress(b"")), ("zst", pa.compress(b"", codec="zstd"))):
        path = write(tmp_path / f"empty.csv.{suffix}", packed)
        assert list(CsvSource(path).batches()) == []
        path.write_bytes(b"")
        with pytest.raises(InputError, match=f"empty.csv.{suffix} is cut short"):
            list(CsvSource(path).batches())
    assert list(CsvSource("/dev/null").batches()) == []


def test_slow_pipe_is_delivered_at_once(tmp_path: Path) -> None:
    fifo = tmp_path / "trades.fifo"
    os.mkfifo(fifo)
    asked = threading.Semaphore(0)

    def type_slowly() -> None:
        with fifo.open("wb", buffering=0) as file:
            for i in range(3):
                file.write(b"S,1,1,%d,X\nS,1," % i)
                asked.acquire()
                file.write(b"2,%d,X\n" % i)

    typist = threading.Thread(target=type_slowly)
    typist.start()
    times = []
    # Each line arrives although the batch is not full and the next line is not there yet.
    for batch in CsvSource(fifo).batches():
        times += batch.records.column("timestamp_ns").to_pylist()
        asked.release()
    typist.join()
    assert times == [0, 0, 1, 1, 2, 2]


def test_closing_early_stops_the_reading_thread(tmp_path: Path) -> None:
    fifo = tmp_path / "trades.fifo"
    os.mkfifo(fifo)
    holder = os.open(fifo, os.O_RDWR)
    os.write(holder, b"A,1,1,1,X\n")
    source = CsvSource(fifo)
    assert next(source.batches()).next_offset == 1
    source.close()
    source.close()
    os.close(holder)
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]
    path = write(tmp_path / "t.csv", trades(200_000))
    for _ in CsvSource(path, batch_rows=10).batches():
        break
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    source = CsvSource(write(tmp_path / "t.csv", trades(100)))
    assert good_and_bad(source) == good_and_bad(source)
