"""Functions over whole columns against Python's own, and their canonical texts."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ripple.core.errors import PlanError
from ripple.model.expression import Expr, col
from ripple.model.expression.functions import growth
from ripple.model.expression.functions.letters import UNICODE, capital, small
from ripple.model.schema.types import Bool, Float, Int64, Option, String
from ripple.testing.reference.expressions import Failed, evaluate

FIELDS = {"t": Option(String()), "at": Option(Int64())}
TEXTS = [
    "",
    None,
    "a/b",
    "é/É/ß",
    "x" * 100,
    "/",
    "12",
    "-0",
    " 7",
    "\U0001f600/\u0130",
    "AbC",
] * 91


@pytest.mark.parametrize("rows", [1, 7, 1_000])
@pytest.mark.parametrize(
    "expr",
    [
        col("t").str.to_lowercase(),
        col("t").str.to_uppercase().str.split("/").list.get(1),
        col("t").str.count_matches("/", literal=True),
        col("t").cast(int, strict=False).cast(str).str.pad_start(5, "é"),
        (col("t") + "/" + col("t")).str.extract("(.)/(.)", 2),
    ],
)
def test_parts_of_columns_give_what_rows_give(expr: Expr, rows: int) -> None:
    bound, column = expr.bind(FIELDS), pa.array(TEXTS, pa.string())
    kinds = {"t": str, "at": int}
    expected = [evaluate(expr, {"t": text, "at": None}, kinds) for text in TEXTS]
    assert not any(isinstance(value, Failed) for value in expected)
    found: list[Any] = []
    for begin in range(0, len(TEXTS), rows):
        part = column.slice(begin, rows)
        values = bound.evaluate({"t": part, "at": pa.nulls(len(part), pa.int64())}, len(part))
        plain = (
            values.values.tolist()
            if isinstance(values.values, np.ndarray)
            else (values.values.to_pylist())
        )
        valid = [True] * len(part) if values.valid is None else values.valid.tolist()
        found += [value if ok else None for value, ok in zip(plain, valid, strict=True)]
    assert found == expected


def test_columns_without_a_byte_are_searched() -> None:
    row = {"t": ["", None], "at": [0, 0]}
    counted = col("t").str.count_matches("ab", literal=True).bind(FIELDS).evaluate(row)
    assert counted.values[0] == 0
    first = col("t").str.split("ab").list.get(0).bind(FIELDS).evaluate(row)
    assert first.values.to_pylist() == ["", None]


@pytest.mark.parametrize(
    ("expr", "text", "expected"),
    [
        (col("t").str.count_matches("^a"), "aaa", 1),
        (col("t").str.count_matches(r"\ba"), "aa a", 2),
        (col("t").str.count_matches(r"\Ba"), "aaa", 2),
        (col("t").str.replace(r"\Ba", "-"), "aaa", "a-a"),
        (col("t").str.replace(r"a$", "<$0>"), "aaa", "aa<a>"),
        (col("t").str.replace(r"(x)?(b)(c)\b", r"$3\$2$1"), "\nabc bc", "\nac\\b bc"),
        (col("t").str.replace(r"\Qa.", "$$1"), "a.a.", "$1a."),
        (col("t").str.replace_all("a|b", "<${0}>"), "aab", "<a><a><b>"),
        (col("t").str.extract("(a)(?P<group>b)", 0), "xab", "ab"),
        (col("t").str.extract(r"\Qa(", 0), "xa(b", "a("),
        (col("t").str.extract(r"[(](a)", 1), "(a", "a"),
        (col("t").str.extract("(a*)*"), "aab", "aa"),
        (col("t").str.contains(r"\s"), "\v", False),
        (col("t").str.contains("(?i)k"), "\u212a", True),
        (col("t").str.contains("(?m)^b$"), "a\nb\n", True),
        (col("t").str.contains("[[:alpha:]]"), "a", True),
        (col("t").str.contains("a{,2}"), "aa", False),
        (col("t").cast(int, strict=False), "0" * 5_000 + "7", 7),
        (col("t").cast(int, strict=False), "9" * 5_000, None),
        (col("t").cast(int, strict=False), "-9223372036854775808", -(2**63)),
        (col("t").cast(int, strict=False), "9223372036854775808", None),
    ],
)
def test_rows_by_themselves(expr: Expr, text: str, expected: Any) -> None:
    values = expr.bind(FIELDS).evaluate({"t": pa.array([text]), "at": [0]})
    found = values.values[0] if values.valid is None or values.valid[0] else None
    assert (found.as_py() if isinstance(found, pa.Scalar) else found) == expected
    assert evaluate(expr, {"t": text, "at": 0}, {"t": str, "at": int}) == expected


@pytest.mark.parametrize(
    ("value", "seed", "expected"),
    [
        # XXH64 of no byte, of "a" and "abc" as published.
        ("", 0, 0xEF46DB3751D8E999),
        ("a", 0, 0xD24EC4F1A98C6E5B),
        ("abc", 0, 0x44BC2CF5AD770999),
        ("abc", 2**64 - 1, 0x28306E589CC02176),
        (0, 0, 0x34C96ACDCADB1BBB),
        (-1, 3, 0x84CD946D24755F42),
        (-0.0, 0, 0x34C96ACDCADB1BBB),  # the bytes of 0.0, which equals it, are those of 0
        (1.5, 0, 0x49F7B96B6B5CCAF9),
        (float("nan"), 0, 0xE9ADB09FEE122AAC),
        (True, 0, 0x8A4127811B21E730),
    ],
)
def test_hashes_are_pinned(value: Any, seed: int, expected: int) -> None:
    fields = {"v": {str: String(), int: Int64(), float: Float(), bool: Bool()}[type(value)]}
    expr = col("v").hash(seed)
    (found,) = expr.bind(fields).evaluate({"v": pa.array([value])}).values.tolist()
    assert found % 2**64 == expected
    assert evaluate(expr, {"v": value}, {"v": type(value)}) == found


NO_JSON = Failed("a text that is not JSON, or has over 64 levels")


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("$.user.id", '{"user": {"id": 7, "name": "x"}, "id": 8}', "7"),
        ("$.user", '{"user" : {"id": [1, 2.50 ] } }', '{"id": [1, 2.50 ] }'),
        ("$.n[1]", '{"n":["a","\\u00e9\\ud83d\\ude00\\n\\/"]}', "é\U0001f600\n/"),
        ("$['a b'][\"c\"]", ' {"a b":{"c":true}} ', "true"),
        ("$.a", '{"\\u0061": -0.5e+3}', "-0.5e+3"),
        ("$.a.b", '{"a":{"b":1},"a":2}', None),  # of two members of one name the last counts
        ("$.a", '{"a":1,"a":null}', None),
        ("$.a", '[{"a":1}]', None),
        ("$[0]", '{"0":1}', None),
        ("$[2]", "[1,2]", None),
        ("$", '"text"', "text"),
        ("$", "[" * 64 + "]" * 64, "[" * 64 + "]" * 64),
        ("$", "[" * 65 + "]" * 65, NO_JSON),
        ("$[0]", "[" * 100_000, NO_JSON),
        *(
            ("$.a", text, NO_JSON)
            for text in ("", "{", '{"a":1,}', "[01]", "[NaN]", "1 2", "{'a':1}")
        ),
        *(
            ("$.a", f'{{"a":1,"b":{b}}}', NO_JSON)
            for b in ('"\\ud800"', '"\x01"', '"\\x"', ".5", "")
        ),
    ],
)
def test_paths_in_json(path: str, text: str, expected: Any) -> None:
    strict, lenient = (col("t").str.json_path_match(path, strict=way) for way in (True, False))
    row = {"t": pa.array([None, text, "[]"])[1:], "at": [0, 0]}
    found = strict.bind(FIELDS).evaluate(row)
    assert found.failed == ({0: f"{NO_JSON.reason} in {strict!r}"} if expected == NO_JSON else {})
    value = None if expected == NO_JSON else expected
    assert found.values.to_pylist()[0] == value
    assert lenient.bind(FIELDS).evaluate(row).values.to_pylist()[0] == value
    assert evaluate(strict, {"t": text, "at": 0}, {"t": str, "at": int}) == expected
    assert evaluate(lenient, {"t": text, "at": 0}, {"t": str, "at": int}) == value


@pytest.mark.parametrize("path", ["a", "$.", "$..a", "$.*", "$[-1]", "$[0:2]", "$['a", "$.a b"])
def test_what_is_no_path_in_json_is_refused(path: str) -> None:
    with pytest.raises(PlanError, match=r"a path in JSON is \$ with names and indexes behind it"):
        col("t").str.json_path_match(path).bind(FIELDS)


@pytest.mark.parametrize("every", ["1000000d", "293y", "3505mo", "16000w", "9999999h"])
def test_spans_longer_than_all_times_are_refused(every: str) -> None:
    with pytest.raises(PlanError, match=f"every must be at most 292 years, not '{every}'"):
        col("at").dt.truncate(every)


def test_formulas_of_formulas_are_compiled_in_their_own_size() -> None:
    at = col("at")
    for _ in range(5):
        at = at.dt.truncate("1mo")
    text = at.cast(str) + "/" + at.cast(str)
    values = text.str.len_chars().bind(FIELDS).evaluate({"t": [None], "at": [5_000_000_000]})
    assert values.values.tolist() == [3]
    for _ in range(6):
        at = at.dt.truncate("1mo")
    with pytest.raises(PlanError, match="inside each other: compute a part"):
        at.bind(FIELDS)


@pytest.mark.parametrize(("table", "method"), [(small, str.lower), (capital, str.upper)])
def test_letters_are_those_of_unicode(table: Any, method: Any) -> None:
    """Of another version, those that were there already; only few letters ever get a capital."""
    other = table()
    for point in range(0x110000):
        if 0xD800 <= point < 0xE000:
            continue
        theirs = method(chr(point))
        ours = chr(other[point]) if point < len(other) else chr(point)
        same = ours == (theirs if len(theirs) == 1 else chr(point))
        assert same or (ours == chr(point) and unicodedata.unidata_version != f"{UNICODE}.0")


def test_times_are_those_of_the_calendar() -> None:
    days = np.arange(-106_751, 106_752)  # all that 64 bits of nanoseconds have
    at = {"at": days * 86_400_000_000_000 + 3_723_000_000_001, "t": [None] * len(days)}
    begin = datetime(1970, 1, 1, 1, 2, 3, tzinfo=UTC)
    dates = [begin + timedelta(days=int(day)) for day in days]
    time = col("at").dt
    for expr, part in (
        (time.year(), lambda one: one.year),
        (time.month(), lambda one: one.month),
        (time.day(), lambda one: one.day),
        (time.weekday(), lambda one: one.isoweekday()),
        (time.to_string("%F %T %j"), lambda one: f"{one:%Y-%m-%d %H:%M:%S %j}"),
    ):
        assert expr.bind(FIELDS).evaluate(at).values.tolist() == [part(one) for one in dates]
    least = {"at": [-(1 << 63)], "t": [None]}
    assert time.to_string().bind(FIELDS).evaluate(least).values.tolist() == [
        "1677-09-21T00:12:43.145224192Z"
    ]


def test_numbers_in_texts_are_the_nearest_ones() -> None:
    texts = ["1", "+1.5", "-.5e1", "5.", "1e400", "0.1", "9007199254740993", "2.5E-324", "0" * 99]
    values = col("t").cast(float).bind(FIELDS).evaluate({"t": texts, "at": [0] * len(texts)})
    assert values.values.tolist() == [float(text) for text in texts]
    for wrong in (
        "",
        ".",
        "e5",
        "1e",
        "0x1F",
        "inf",
        "nan",
        "1_000",
        " 1",
        "1 ",
        "\u0661",
        "1,5",
        "--1",
    ):
        found = col("t").cast(float).bind(FIELDS).evaluate({"t": [wrong], "at": [0]})
        assert found.failed == {0: 'a text that is not a number in col("t").cast(float)'}


@pytest.mark.parametrize(
    ("expr", "canonical", "text"),
    [
        (
            col("url").str.split("/").list.get(3),
            "(str.split.list.get(col url)(lit /)(lit(int 3)))",
            'col("url").str.split("/").list.get(3)',
        ),
        (
            col("s").str.to_lowercase().str.replace("a", "$0"),
            "(str.replace(str.to_lowercase(col s))(lit a)(lit $0)(lit(bool false)))",
            'col("s").str.to_lowercase().str.replace("a", "$0", literal=False)',
        ),
        (
            col("s").cast(int, strict=False),
            "(cast int(col s)(lit(bool false)))",
            'col("s").cast(int, strict=False)',
        ),
        (
            col("at").dt.truncate("1y"),
            "(dt.truncate(col at)(lit(int 12))(lit mo))",
            'col("at").dt.truncate("12mo")',
        ),
        (
            col("s").str.json_path_match("$.a"),
            "(str.json_path_match(col s)(lit $.a))",
            'col("s").str.json_path_match("$.a")',
        ),
        (
            col("s").str.json_path_match("$.a", strict=False),
            "(str.json_path_match(col s)(lit $.a)(lit(bool false)))",
            'col("s").str.json_path_match("$.a", strict=False)',
        ),
        (col("s").hash(), "(hash(int 0)(col s))", 'col("s").hash(0)'),
        (
            2.0 ** -col("x").hash(9),
            "(**(lit(float 0x1.0000000000000p+1))(neg(hash(int 9)(col x))))",
            'lit(2.0) ** (-col("x").hash(9))',
        ),
    ],
)
def test_canonical_and_readable_texts(expr: Expr, canonical: str, text: str) -> None:
    assert expr.canonical == canonical
    assert repr(expr) == text


MEBIBYTE = 1 << 20
LONG = "a" * (MEBIBYTE // 2)


@pytest.mark.parametrize(
    ("expr", "text", "length"),
    [
        (col("t") + col("t"), LONG, MEBIBYTE),
        (col("t") + col("t") + "b", LONG, None),
        (col("t").str.replace_all("a", "bb", literal=True), LONG, MEBIBYTE),
        (col("t").str.replace_all("a", "bbb", literal=True), LONG, None),
        (col("t").str.replace_all("(a)a", "$1é$1"), LONG, MEBIBYTE),
        (col("t").str.replace_all("(a)a", "$0$1é$$"), LONG, None),
        (col("t").str.replace_all("b", "c" * 1_000), LONG, MEBIBYTE // 2),
        (col("t").str.replace("a+", "$0$0"), LONG, MEBIBYTE),
        (col("t").str.replace("a+", "$0${0}b"), LONG, None),
        (col("t").str.replace("a", LONG, literal=True), LONG, MEBIBYTE - 1),
        (col("t").str.replace("a", LONG + "bc", literal=True), LONG, None),
        ((col("t") + col("t").str.slice(8)).str.pad_end(5).str.pad_start(6), LONG, MEBIBYTE - 8),
    ],
)
def test_texts_have_an_end(expr: Expr, text: str, length: int | None) -> None:
    values = expr.bind(FIELDS).evaluate({"t": pa.array(["b", text, None, "a"]), "at": [0] * 4})
    alone = evaluate(expr, {"t": text, "at": 0}, {"t": str, "at": int})
    assert values.failures is None or values.failures.tolist()[::2] == [0, 0]
    if length is None:
        assert values.failed == {1: f"a text of more than 1 MiB in {expr!r}"}
        assert alone == Failed("a text of more than 1 MiB")
    else:
        assert not values.failed
        assert values.values[1].as_py() == alone
        assert len(alone.encode()) == length


def test_chains_that_make_texts_longer_end() -> None:
    """Nine times twenty times as long: half a terabyte."""
    expr = col("t")
    for _ in range(9):
        expr = expr.str.replace_all("a", "a" * 20)
    found = expr.bind(FIELDS).evaluate({"t": ["a", "b"], "at": [0, 0]})
    assert list(found.failed) == [0]
    assert found.values.to_pylist() == [None, "b"]


def test_columns_of_many_long_texts_are_computed_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The room of a column never shows, whatever the rows at a time."""
    monkeypatch.setattr(growth, "COLUMN_BYTES_MAX", 10)
    expr = (col("t") + "/" + col("t")).bind(FIELDS)
    texts = ["abc", None, "", "é"] * 3
    values = expr.evaluate({"t": pa.array(["", *texts])[1:], "at": [0] * 12})
    assert values.values.to_pylist() == [None if t is None else f"{t}/{t}" for t in texts]
    counted = (col("t") + col("t")).str.len_chars().bind(FIELDS)
    found = counted.evaluate({"t": texts, "at": [0] * 12})
    assert found.valid is not None
    assert found.values[found.valid].tolist() == [6, 0, 2] * 3
