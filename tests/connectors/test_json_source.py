"""The JSON source accepts exactly the lines that Python's own reader, one at a time, accepts."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripple.connectors.files.json.source import LINE_LENGTH_BYTES_MAX, JsonSource
from ripple.connectors.record_shape import RecordShape
from ripple.model.batch import Rejected
from ripple.model.schema.checks import Checks
from ripple.model.schema.types import Bool, Field, Float, Int, Schema, String
from tests.examples import EXAMPLES, SAMPLED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHAPE = RecordShape(
    Schema(
        "reading",
        (
            Field("name", String(), optional=True),
            Field("é", String()),
            Field("count", Int(), optional=True),
            Field("ratio", Float(), optional=True),
            Field("flag", Bool(), optional=True),
        ),
    )
)
KINDS = {field.name: type(field.type) for field in SHAPE.schema.fields}


# The twin: one line at a time, by the standard library.


@dataclass
class Number:
    text: str


@dataclass
class Object:
    members: list[tuple[str, Any]]


def judge(line: bytes) -> tuple[dict[str, Any] | None, str]:
    try:
        found = json.loads(
            line.decode(),
            object_pairs_hook=Object,
            parse_int=Number,
            parse_float=Number,
            parse_constant=Number,
        )
    except UnicodeDecodeError:
        return None, "line is not valid UTF-8"
    except json.JSONDecodeError:
        return None, "not a JSON record"
    if not isinstance(found, Object):
        return None, "not a JSON record"
    row: dict[str, Any] = {}
    for name, value in found.members:
        if name not in KINDS:
            continue
        if name in row:
            return None, f"{name} is there twice"
        row[name], reason = (None, "") if value is None else CONVERTED[KINDS[name]](value)
        if reason:
            return None, f"{name} {reason}"
    if row.get("é") is None:
        return None, "é is empty"
    return {name: row.get(name) for name in KINDS}, ""


def to_text(value: Any) -> tuple[str | None, str]:
    if not isinstance(value, str):
        return None, "is not text"
    if re.search("[\ud800-\udfff]", value):
        return None, "is not valid UTF-8"
    return value, ""


def to_integer(value: Any) -> tuple[int | None, str]:
    if not isinstance(value, Number) or not re.fullmatch(r"-?\d+", value.text):
        return None, "is not an integer"
    found = int(value.text)
    return (found, "") if -(1 << 63) <= found < 1 << 63 else (None, "does not fit in 64 bits")


def to_float(value: Any) -> tuple[float | None, str]:
    if not isinstance(value, Number):
        return None, "is not a number"
    found = float(value.text)
    if math.isinf(found) and "Infinity" not in value.text:
        return None, "is too large for a float"
    if found == 0 and re.search("[1-9]", re.split("[eE]", value.text)[0]):
        return None, "is too close to 0 for a float"
    return found, ""


def to_bool(value: Any) -> tuple[bool | None, str]:
    return (value, "") if isinstance(value, bool) else (None, "is not true or false")


CONVERTED: dict[type, Callable[[Any], tuple[Any, str]]] = {
    String: to_text,
    Int: to_integer,
    Float: to_float,
    Bool: to_bool,
}


def twin(data: bytes) -> tuple[list[dict[str, Any]], list[Rejected]]:
    rows: list[dict[str, Any]] = []
    rejected: list[Rejected] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip(b" \t\r"):
            row, reason = judge(line)
            if row is None:
                offset = len(rows) + len(rejected)
                rejected.append(Rejected(offset, number, reason, line.removesuffix(b"\r")))
            else:
                rows.append(row)
    return rows, rejected


def read(
    path: Path, data: bytes, shape: RecordShape = SHAPE, batch_rows: int | None = None
) -> tuple[list[dict[str, Any]], list[Rejected]]:
    path.write_bytes(data)
    rows: list[dict[str, Any]] = []
    rejected: list[Rejected] = []
    for batch in JsonSource(path, shape, batch_rows=batch_rows).batches():
        batch.records.validate(full=True)
        rows += batch.records.to_pylist()
        rejected += batch.rejected
    return rows, rejected


# Lines of every kind: good ones, ones of another shape, and those with a few bytes changed.

NUMBERS = st.one_of(
    st.integers(-(1 << 65), 1 << 65).map(str),
    st.floats().map(json.dumps),
    st.from_regex(r"-?[0-9]{1,22}(\.[0-9]{0,4})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        [
            "0",
            "-0",
            "01",
            "+1",
            ".5",
            "5.",
            "1e5",
            "1E+2",
            "-",
            "--1",
            "1e",
            "1e400",
            "1e-400",
            "0e999",
            "0x1",
            "1_0",
            "NaN",
            "-NaN",
            "Infinity",
            "-Infinity",
            "Inf",
            "nan",
            "٣",
            "1" + "0" * 400,
            "0." + "0" * 400 + "1",
            "1" + "0" * 30 + "e280",
            "1e99999999999",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "5e-324",
            "2e-324",
            "123456789012345",
            "1234567890123456",
            "0.1000000000000000055511151231257827",
        ]
    ),
)
TEXTS = st.one_of(
    st.text(max_size=4).map(json.dumps),
    st.text(max_size=4).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(
        [
            r'"\ud83d\ude00"',
            r'"\ud83d"',
            r'"\ude00"',
            r'"\ud83d\ud83d"',
            r'"\ud83dx"',
            r'"\uD83D\n"',
            r'"\u0000"',
            r'"\u00E9\/"',
            r'"\x41"',
            r'"\u12g4"',
            r'"\u12"',
            '"\t"',
            '"\x00"',
            '"',
            '"\\"',
        ]
    ),
)
WORDS = st.sampled_from(
    ["null", "true", "false", "nul", "True", "nulll", "tru", "None", "", "{", "["]
)
VALUES = st.recursive(
    st.one_of(NUMBERS, TEXTS, WORDS),
    lambda values: st.one_of(
        st.lists(values, max_size=3).map(lambda items: "[" + ",".join(items) + "]"),
        st.lists(st.tuples(TEXTS, values), max_size=3).map(
            lambda items: "{" + ",".join(f"{name}:{value}" for name, value in items) + "}"
        ),
    ),
    max_leaves=6,
)
MEMBERS = st.one_of(
    st.tuples(st.just('"name"'), st.one_of(TEXTS, WORDS)),
    st.tuples(st.sampled_from(['"é"', r'"\u00e9"', '"e"']), TEXTS),
    st.tuples(st.sampled_from(['"count"', '"ratio"', r'"rati\u006f"']), st.one_of(NUMBERS, WORDS)),
    st.tuples(st.just('"flag"'), WORDS),
    st.tuples(st.one_of(st.sampled_from([f'"{name}"' for name in KINDS]), TEXTS), VALUES),
)
BLANKS = st.sampled_from(["", "", "", " ", "\t", "\r", " \t "])
OBJECTS = st.tuples(st.lists(MEMBERS, max_size=5), BLANKS, BLANKS, st.booleans()).map(
    lambda made: (
        made[1]
        + "{"
        + f"{made[2]},{made[1]}".join(
            f"{name}{made[1]}:{made[2]}{value}"
            for name, value in [*made[0], *[('"é"', '"x"')] * made[3]]
        )
        + "}"
        + made[2]
    )
)
ODD = st.sampled_from(
    [
        "null",
        "[]",
        "1",
        '"x"',
        "true",
        "{}",
        "{} {}",
        "{}{}",
        "{}null",
        "null{}",
        "",
        " ",
        "\x0c",
        '{"é":"a"}//',
        '{"é":"a",}',
        "{,}",
        "{]",
        '{"é" "a"}',
        '{"é":"a" "b":1}',
        '{"é":"a"',
        "\x00",
    ]
)
ANY_LINES = st.one_of(
    OBJECTS.map(str.encode), OBJECTS.map(str.encode), ODD.map(str.encode), st.binary(max_size=12)
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    line = bytearray(draw(ANY_LINES))
    if draw(st.integers(0, 3)) == 0:
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(line)))
            line[at : at + draw(st.integers(0, 2))] = draw(
                st.sampled_from(
                    [b"", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\xff", b"0"]
                )
            )
    return bytes(line)


@settings(max_examples=96 * EXAMPLES // SAMPLED)
@given(st.lists(lines(), max_size=8), st.sampled_from([b"\n", b"\r\n"]), st.booleans())
@example([b"null"], b"\n", False)
@example([b'{"\xc3\xa9":"a"}', b"null", b"bad"], b"\n", True)
@example([b'{"\xc3\xa9":', b'"a"}{"\xc3\xa9":"b"}'], b"\n", True)
def test_any_lines_equal_the_twin(
    tmp_path_factory: pytest.TempPathFactory, given_lines: list[bytes], ending: bytes, mark: bool
) -> None:
    data = ending.join(given_lines)
    rows, rejected = twin(data)
    path = tmp_path_factory.mktemp("json") / "t.jsonl"
    found = read(path, b"\xef\xbb\xbf" * mark + data)
    assert repr(found[0]) == repr(rows)
    assert found[1] == rejected


def test_texts_and_numbers_of_any_length_equal_the_twin(tmp_path: Path) -> None:
    lengths = range(1, 21)
    digits = "98765432109876543210"
    numbers = [
        number
        for length in lengths
        for whole in (digits[:length], "0" * length, "9223372036854775808"[:length])
        for number in (whole, f"{whole}.", f"{whole}.{digits[:3]}", f"1.{whole}", f"{whole}e1")
    ]
    values = [f"{sign}{number}" for number in numbers for sign in ("", "-")]
    texts = [
        "x" * before + middle + "y" * (length - before)
        for length in lengths
        for before in {0, length // 2, length - 1}
        for middle in ("", "\\n", '\\"', "é", '"', "\x1f", "\\")
    ]
    lines = [f'{{"é":"","count":{value},"ratio":{value}' for value in values]
    lines += [f'{{"é":"","ratio":{value}' for value in values]
    lines += [f'{{"é":"{text}"' for text in texts]
    # Ended by little, by more than a number's eight digits, and by nothing at all.
    data = "\n".join(line + end for line in lines for end in ("}", ' , "x": [12345678]}', ""))
    rows, rejected = twin(data.encode())
    found = read(tmp_path / "t.jsonl", data.encode())
    assert repr(found[0]) == repr(rows)
    assert found[1] == rejected
    for line in lines[::41]:  # at the end of all there is
        rows, rejected = twin(f"{line}}}".encode())
        assert repr(read(tmp_path / "t.jsonl", f"{line}}}".encode())[0]) == repr(rows)


def test_members_in_and_out_of_their_order_equal_the_twin(tmp_path: Path) -> None:
    members = [
        '"name":"n"',
        '"é" : "e"',
        r'"\u0063ount":1',
        '"ratio":null',
        '"flag":true',
        '"fla":1',
    ]
    lines = [
        "{" + ",".join(chosen) + "}"
        for count in range(4)
        for chosen in itertools.permutations(members, count)
    ]
    data = "\n".join(lines).encode()
    rows, rejected = twin(data)
    found = read(tmp_path / "t.jsonl", data)
    assert repr(found[0]) == repr(rows)
    assert found[1] == rejected


def test_nothing_is_too_deep(tmp_path: Path) -> None:
    depth = 100_000
    good = b'{"x":' + b"[" * depth + b"]" * depth + b',"\xc3\xa9":"a"}'
    open_ended = b'{"\xc3\xa9":"a","x":' + b'{"y":[' * depth
    crossed = b'{"\xc3\xa9":"a","x":' + b"[{" * depth + b"]}" * depth + b"}"
    rows, rejected = read(
        tmp_path / "t.jsonl", b"\n".join([good, open_ended, crossed, b"[" * depth])
    )
    assert [row["é"] for row in rows] == ["a"]
    assert [bad.reason for bad in rejected] == ["not a JSON record"] * 3
    assert [len(bad.raw) for bad in rejected] == [4096] * 3


def test_a_line_that_is_too_long_costs_itself(tmp_path: Path) -> None:
    def line(length: int) -> bytes:
        return b'{"\xc3\xa9":"' + b"x" * (length - 9) + b'"}'

    data = b"\n".join(
        map(line, [10, LINE_LENGTH_BYTES_MAX, LINE_LENGTH_BYTES_MAX + 1, 3 << 20, 11])
    )
    rows, rejected = read(tmp_path / "t.jsonl", data)
    assert [len(row["é"]) for row in rows] == [1, LINE_LENGTH_BYTES_MAX - 9, 2]
    assert [(bad.line_number, bad.reason) for bad in rejected] == [
        (3, "line is longer than 1048576 bytes"),
        (4, "line is longer than 1048576 bytes"),
    ]


@pytest.mark.parametrize("batch_rows", [1, 3, 100, None])
def test_offsets_count_records_and_lines_count_lines(
    tmp_path: Path, batch_rows: int | None
) -> None:
    shape = RecordShape(SHAPE.schema, {"count": Checks(gt=0)})
    text = '{"é":"a"}\n\n{"é":"b","count":0}\r\n[]\n{"é":"c","count":1}\n{"count":2}\n'
    rows, rejected = read(tmp_path / "t.jsonl", text.encode(), shape, batch_rows)
    assert [row["é"] for row in rows] == ["a", "c"]
    assert rejected == [
        Rejected(1, 3, "count is not positive", '{"é":"b","count":0}'.encode()),
        Rejected(2, 4, "not a JSON record", b"[]"),
        Rejected(4, 6, "é is empty", b'{"count":2}'),
    ]


def test_reading_from_an_offset_leaves_out_what_is_before(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f'{{"é":"{i}"}}\n' if i % 5 else "bad\n" for i in range(50)))
    for from_offset in (0, 1, 10, 49, 50):
        batches = list(JsonSource(path, SHAPE, batch_rows=7).batches(from_offset))
        texts = [text for batch in batches for text in batch.records.column("é").to_pylist()]
        assert texts == [str(i) for i in range(from_offset, 50) if i % 5]
        assert sum(batch.span for batch in batches) == 50 - from_offset
