"""Predicates over rows, as people type them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ripple.client.sql.where import LENGTH_MAX, where_of
from ripple.core.errors import InputError

ROWS = pa.Table.from_pylist(
    [
        {"symbol": "AAPL", "price": 150.5, "size": 3, "on": True},
        {"symbol": "GOOG", "price": 99.0, "size": 7, "on": False},
        {"symbol": "a=b", "price": None, "size": 0, "on": None},
    ]
)


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("price > 100", ["AAPL"]),
        ("price <= 99 or symbol == 'AAPL'", ["AAPL", "GOOG"]),
        ("not price > 100", ["GOOG"]),
        ("symbol in ('AAPL', 'X')", ["AAPL"]),
        ("symbol == 'a=b'", ["a=b"]),
        ("on == true", ["AAPL"]),
        ("on", ["AAPL"]),
        ("0 < size < 7", ["AAPL"]),
        ("price * size >= 2 * 300 + 50", ["GOOG"]),
        ("size > -1 and size != 3", ["GOOG", "a=b"]),
        ("price > 1000", []),
    ],
)
def test_rows_are_kept_for_which_it_holds(text: str, symbols: list[str]) -> None:
    assert where_of(text)(ROWS).column("symbol").to_pylist() == symbols


@pytest.mark.parametrize(
    "text",
    [
        "",
        "price >",
        "price = 1",
        "f(price) > 1",
        "__import__('os')",
        "price.real > 1",
        "symbol[0] == 'A'",
        "lambda: 1",
        "1 == 1",
        "price in 3",
        "(" * 500 + "price" + ")" * 500,
        "x" * (LENGTH_MAX + 1),
    ],
)
def test_invalid_predicates_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        where_of(text)


@pytest.mark.parametrize("text", ["nothing > 1", "symbol > 1", "on + 1 > 0"])
def test_condition_that_does_not_fit_the_rows_is_refused_by_name(text: str) -> None:
    with pytest.raises(InputError, match="does not fit rows of symbol, price, size, on"):
        where_of(text)(ROWS)
