"""Column expressions: the register machine beside NumPy, from one row to a large batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.row import Row
from bench.timing import in_turns
from ripple.model.expression import Expr, col, when
from ripple.model.schema.types import Float, Int64

ROWS = (1, 100, 1_000, 16_384)
FIELDS = {"price": Float(), "bid": Float(), "size": Int64()}


def measure() -> list[Row]:
    return [figure for case in _cases() for figure in _case_figures(*case)]


def _case_figures(name: str, expr: Expr, numpy: Callable[[Any, Any, Any], Any]) -> Iterator[Row]:
    bound = expr.bind(FIELDS)
    program, inputs = bound.program, bound.machine_columns
    assert program is not None
    assert inputs is not None

    def plain(columns: dict[str, Any]) -> Callable[[], Any]:
        return lambda: numpy(columns["price"], columns["bid"], columns["size"])

    def compiled(columns: dict[str, Any], rows: int) -> Callable[[], Any]:
        arrays = [columns[column] for column in inputs]
        return lambda: program.run(arrays, rows)

    for rows in ROWS:
        columns = _columns(rows)
        ours, theirs = _seconds(compiled(columns, rows), plain(columns))
        yield _figure(f"{name}, {rows:,} rows", ours, theirs, rows)
    slots = np.arange(1_000)
    arrays = [_columns(len(slots))[column] for column in inputs]
    whole, each, theirs = _seconds(
        lambda: program.run_slots(arrays, slots),
        lambda: program.run_each(arrays, slots),
        plain(_columns(1)),
    )
    # run_each begins with what run_slots does.
    one = (each - whole) / len(slots)
    yield _figure(f"{name}, one slot from compiled code", one, theirs, 1)


def _cases() -> list[tuple[str, Any, Callable[[Any, Any, Any], Any]]]:
    price, bid, size = col("price"), col("bid"), col("size")
    return [
        ("price * size", price * size, lambda p, _b, s: p * s),
        ("size * size, checked", size * size, lambda _p, _b, s: s * s),
        (
            "(price - bid) / price * size",
            (price - bid) / price * size,
            lambda p, b, s: (p - b) / p * s,
        ),
        (
            "when price > bid then price * size else bid",
            when(price > bid).then(price * size).otherwise(bid),
            lambda p, b, s: np.where(p > b, p * s, b),
        ),
    ]


def _columns(rows: int) -> dict[str, Any]:
    draw = np.random.default_rng(7)
    return {
        "price": draw.uniform(10, 500, rows),
        "bid": draw.uniform(10, 500, rows),
        "size": draw.integers(1, 1_000, rows),
    }


def _seconds(*calls: Callable[[], Any]) -> list[float]:
    return list(in_turns({str(k): call for k, call in enumerate(calls)}).values())


def _figure(name: str, ours: float, theirs: float, rows: int) -> Row:
    return Row(name, ours / rows * 1e9, "ns/row", "NumPy", theirs / rows * 1e9)
