"""B-01, columns: set one key, stabilize, read the total: a column, an expression, an exact sum.

price and size are columns of the same keys, their product a compiled expression, the total an
exact sum over all keys.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.one_change import CALL, CALLS, KEYS, STRIDE, one_change
from bench.row import Row
from bench.timing import in_turns
from ripple.model.expression import col
from ripple.notebook.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.engine.graph.cell import Cell
    from ripple.notebook.keyed import LeafColumn

BATCH = 10_000
CLOCKED = "with a clock, set, stabilize, read: 1,000 keys, fixed key"


def measure() -> list[Row]:
    clocked = _changes(1_000, 0, time.monotonic_ns)
    rows = one_change(_changes, {CLOCKED: clocked}, 3.5)
    call_ns = rows[0].other
    assert call_ns is not None
    runs = {f"one of {BATCH:,} in an apply, {keys:,} keys": _batch(keys) for keys in KEYS[1:]}
    took = in_turns(runs)
    return rows + [
        Row(run, seconds / BATCH * 1e9, "ns", CALL, call_ns) for run, seconds in took.items()
    ]


def _names(keys: int) -> list[str]:
    return [f"SYM{i:06d}" for i in range(keys)]


def _graph(
    keys: int, now: Callable[[], int] | None = None
) -> tuple[Graph, LeafColumn[str, float], Cell[Any]]:
    graph = Graph(now=now)
    price = graph.column(float, name="price")
    size = graph.column(int, key=price, name="size")
    total = graph.map([price, size], col("price") * col("size")).sum()
    price.apply(_names(keys), np.arange(keys) / 8)
    size.apply(_names(keys), np.arange(keys))
    graph.stabilize()
    return graph, price, total


def _changes(keys: int, stride: int, now: Callable[[], int] | None = None) -> Callable[[], None]:
    graph, price, total = _graph(keys, now)
    names = _names(keys)
    order = [names[(keys // 2 + i * stride) % keys] for i in range(CALLS)]
    value = 0.5

    def run() -> None:
        nonlocal value
        for name in order:
            price[name] = value
            graph.stabilize()
            value += 1.0 if total.value else 2.0  # never a value that the key had
        assert graph.last_recompute_count == 3

    return run


def _batch(keys: int) -> Callable[[], None]:
    graph, price, total = _graph(keys)
    names = _names(keys)
    order = [names[i * STRIDE % keys] for i in range(BATCH)]
    values = np.arange(BATCH) / 4

    def run() -> None:
        nonlocal values
        values = values + 0.125
        price.apply(order, values)
        graph.stabilize()
        assert total.value

    return run
