"""The part of a table that is on the screen: sorted, filtered, as exact text."""

from __future__ import annotations

import datetime as dt
import math
import time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from ripple.client.dashboard.contract import AskedError
from ripple.client.dashboard.tables import (
    ROWS_MAX,
    filtered,
    for_browser,
    of_key,
    texts,
    whole_texts,
    window,
)

TABLE = pa.table(
    {
        "symbol": ["GOOG", "AAPL", "MSFT", None, "AMZN"],
        "size": pa.array([2**63 - 1, -1, None, 2**53 + 1, 7], pa.int64()),
        "price": [0.1, 1e22, float("nan"), 5.0, 0.30000000000000004],
        "is_open": [True, False, None, True, False],
    }
)


def names(table: pa.Table) -> list[str | None]:
    return list(table.column("symbol").to_pylist())


def shown(**asked: object) -> dict[str, object]:
    usual = {"by": "", "is_down": False, "words": "", "first": 0, "rows": 10}
    return window(TABLE, ["symbol"], **{**usual, **asked})  # type: ignore[arg-type]


def symbols(found: dict[str, object]) -> list[str | None]:
    return [row[0] for row in found["rows"]]  # type: ignore[attr-defined]


def test_every_digit_is_there() -> None:
    found = {row[0]: row[1:] for row in texts(TABLE)}
    assert found["GOOG"] == ["9223372036854775807", "0.1", "true"]
    assert found[None][0] == "9007199254740993"
    assert found["AMZN"][1] == "0.30000000000000004"
    assert found["MSFT"] == [None, "nan", None]
    exact = pa.table({"d": [Decimal("1.10")], "b": [b"\x00\xff"], "l": [[1, 2]], "t": ["x" * 999]})
    assert texts(exact)[0][:3] == ["1.10", "00ff", "[1, 2]"]
    assert len(texts(exact)[0][3] or "") == 200
    prices = pa.array([[Decimal("1.50")], None], pa.list_(pa.decimal128(12, 2)))
    times = pa.array([[1], []], pa.list_(pa.timestamp("ns", "UTC")))
    lists = pa.table({"p": prices, "t": times})
    first = ['["1.50"]', '["1970-01-01T00:00:00.000000001Z"]']
    assert texts(lists) == [first, [None, "[]"]]
    assert filtered(lists, "p~1.5").num_rows == 1


def test_rows_are_sorted_by_a_field_then_by_the_key_and_nothing_comes_last() -> None:
    assert symbols(shown()) == ["AAPL", "AMZN", "GOOG", "MSFT", None]
    assert symbols(shown(by="size")) == ["AAPL", "AMZN", None, "GOOG", "MSFT"]
    assert symbols(shown(by="size", is_down=True)) == ["GOOG", None, "AMZN", "AAPL", "MSFT"]
    assert symbols(shown(by="is_open")) == ["AAPL", "AMZN", "GOOG", None, "MSFT"]
    assert symbols(shown(by="size", first=1, rows=2)) == ["AMZN", None]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", ["GOOG", "AAPL", "MSFT", None, "AMZN"]),
        ("goo", ["GOOG"]),
        ("m a", ["AMZN"]),
        ("symbol=AAPL", ["AAPL"]),
        ("symbol!=AAPL", ["GOOG", "MSFT", "AMZN"]),
        ("size>9007199254740992", ["GOOG", None]),
        ("size>=9007199254740993 price<1", ["GOOG"]),
        ("is_open=true", ["GOOG", None]),
        ("size~9", ["GOOG", None]),
        ('symbol="AMZN"', ["AMZN"]),
        ("nothing-like-this", []),
    ],
)
def test_a_filter_leaves_rows_of_which_all_words_are_true(
    words: str, found: list[str | None]
) -> None:
    assert names(filtered(TABLE, words)) == found
    assert shown(words=words)["chosen"] == len(found)
    assert shown(words=words)["total"] == TABLE.num_rows


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"words": "venue=NYSE"}, "no field venue: there are symbol"),
        ({"words": "size=many"}, "size is a int64, and 'many' is not"),
        ({"words": "x" * 501}, "at most 500 characters"),
        ({"by": "venue"}, "no field venue"),
        ({"rows": ROWS_MAX + 1}, "at most"),
        ({"rows": 0}, "at most"),
        ({"first": -1}, "at most"),
    ],
)
def test_column_missing_from_a_table_is_named(asked: dict[str, object], what: str) -> None:
    with pytest.raises(AskedError, match=what):
        shown(**asked)


def test_a_table_without_texts_or_rows_can_be_asked_too() -> None:
    numbers = pa.table({"n": [1, 2]})
    assert filtered(numbers, "x").num_rows == 0
    none = window(numbers.slice(0, 0), [], by="n", is_down=True, words="n>1", first=5, rows=5)
    assert (none["total"], none["rows"]) == (0, [])


@pytest.mark.parametrize("is_down", [True, False])
@pytest.mark.parametrize("numbers", [3, 30, 500])
def test_the_front_of_a_large_table_is_that_of_all_of_it_sorted(
    numbers: int, is_down: bool
) -> None:
    """Whatever is equal, null or no number."""
    chance = np.random.default_rng(numbers)
    values = [1e300, -0.0, 0.0, float("inf"), -float("inf"), 3.0, *range(numbers)]
    values = [*values * 2, *[None] * numbers, *[float("nan")] * numbers]
    chance.shuffle(values)
    keys = [f"{one:05}" for one in chance.permutation(len(values))]
    table = pa.table({"symbol": keys, "price": pa.array(values, pa.float64())})
    for first, rows in ((0, 1), (0, 20), (7, 10), (numbers, 12)):
        asked = {"by": "price", "is_down": is_down, "words": "", "first": first, "rows": rows}
        found = window(table, ["symbol"], **asked)  # type: ignore[arg-type]
        order = [("price", "descending" if is_down else "ascending"), ("symbol", "ascending")]
        assert found["rows"] == texts(table.sort_by(order).slice(first, rows))
        assert found["chosen"] == len(values)


def test_lists_have_no_order() -> None:
    with pytest.raises(AskedError, match="has no order"):
        window(pa.table({"l": [[1]]}), [], by="l", is_down=False, words="", first=0, rows=1)


def test_few_of_ten_thousand_rows_take_less_than_all_of_them_as_text() -> None:
    chance = np.random.default_rng(1)
    table = pa.table(
        {"key": [f"SYM{n:05}" for n in range(10_000)], "value": chance.normal(size=10_000)}
    )
    asked = {"by": "value", "is_down": True, "words": "SYM value>0", "first": 0, "rows": 60}
    few_s, all_s = [], []
    for _ in range(10):
        began_s = time.process_time()
        window(table, ["key"], **asked)  # type: ignore[arg-type]
        few_s.append(time.process_time() - began_s)
        texts(table)
        all_s.append(time.process_time() - began_s - few_s[-1])
    assert min(few_s) < min(all_s)


def test_engines_in_browsers_get_types_that_they_know() -> None:
    table = pa.table(
        {
            "at_ns": pa.array([1_709_000_000_123_999_999, None], pa.int64()),
            "size": pa.array([2**62, -1], pa.int64()),
            "price": [Decimal("1.5"), None],
            "codes": [[1, 2], None],
            "raw": [b"\xff", None],
        }
    )
    found = for_browser(table)
    assert [str(kind) for kind in found.schema.types] == [
        *("timestamp[ms]", "int64", "double", "string", "string"),
    ]
    first, second = found.to_pylist()
    assert first["at_ns"].isoformat() == "2024-02-27T02:13:20.123000"
    assert (first["size"], first["price"], first["codes"], first["raw"]) == (
        *(2**62, 1.5, "[1, 2]", "ff"),
    )
    assert second == {"at_ns": None, "size": -1, "price": None, "codes": None, "raw": None}


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "", " ", None, "null", 'a"b', "k" * 250, "l" * 300, "…"]),
        pa.array([-3, None, 2**62]),
        pa.array([0.1, math.nan, -0.0, math.inf, None]),
        pa.array([b"\x01\xff", b"\x01", b"m" * 150]),
        pa.array([dt.date(2026, 1, 31), None]),
        pa.array([1769848200123456789, 0], pa.timestamp("ns", "UTC")),
        pa.array([Decimal("1.50"), Decimal("-1.50")], pa.decimal128(20, 2)),
        pa.array([True, False]),
        pa.array([[1, 2], [], None]),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"u" * 16, b"v" * 16], pa.binary(16))),
    ],
)
def test_each_row_is_found_by_the_texts_of_its_key(column: pa.Array) -> None:
    table = pa.table({"key": column})
    for number, key in enumerate(texts(table)):
        assert texts(of_key(table, ["key"], key)) == texts(table.slice(number, 1)) != [], number


def test_a_shortened_key_finds_each_row_that_it_may_be_of() -> None:
    table = pa.table({"key": ["k" * 250, "k" * 199 + "…", "k" * 199 + "z", "k" * 300]})
    shown = texts(table)
    assert of_key(table, ["key"], shown[0]).num_rows == 3
    (whole,) = whole_texts(table.slice(3))
    assert of_key(table, ["key"], whole).equals(table.slice(3))
