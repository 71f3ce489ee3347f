"""B-01, columns: set one key, stabilize, read the total: a column, an expression, an exact sum.

price and size are columns of the same keys, their product a compiled expression, the total an
exact sum over all keys. The fixed key is the original's benchmark: all that it touches stays in
the cache. The wandering key is what real keys do: at 100,000 keys their rows no longer fit, and
memory is what is measured.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.row import Row, at_most
from bench.timing import in_turns
from ripple.expression import col
from ripple.graph.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.graph.cell import Cell
    from ripple.graph.keyed import LeafColumn

CALLS = 4_000
KEYS = (1_000, 10_000, 100_000)
STRIDE = 7_919  # a prime: visits every key, neighbours far apart
BATCH = 10_000
CALL = "one Python function call"
ORIGINAL_NS = 250.0  # what the book measured for its own, native one
CLOCKED = "with a clock, set, stabilize, read: 1,000 keys, fixed key"


def measure() -> list[Row]:
    runs: dict[str, Callable[[], None]] = {CALL: _plain_calls}
    for keys in KEYS:
        graph = _graph(keys)
        runs[_name(keys, "fixed")] = _changes(*graph, keys, 0)
        runs[_name(keys, "wandering")] = _changes(*graph, keys, STRIDE)
    runs[CLOCKED] = _changes(*_graph(1_000, time.monotonic_ns), 1_000, 0)
    took_ns = {run: seconds / CALLS * 1e9 for run, seconds in in_turns(runs).items()}
    call_ns = took_ns.pop(CALL)
    aims = {_name(keys, "fixed"): at_most(4, of_ratio=True) for keys in KEYS}
    rows = [Row(run, ns, "ns", CALL, call_ns, aims.get(run)) for run, ns in took_ns.items()]
    least, *_, most = (took_ns[_name(keys, "fixed")] for keys in KEYS)
    flat = at_most(1.1, of_ratio=True)
    first = _name(KEYS[0], "fixed")
    return [
        *rows,
        Row(f"the same with {KEYS[-1]:,} keys", most, "ns", first, least, flat),
        Row(first, least, "ns", "the original, as its book says", ORIGINAL_NS),
        *_batches(call_ns),
    ]


def _batches(call_ns: float) -> list[Row]:
    runs = {f"one of {BATCH:,} in an apply, {keys:,} keys": _batch(keys) for keys in KEYS[1:]}
    took = in_turns(runs)
    return [Row(run, seconds / BATCH * 1e9, "ns", CALL, call_ns) for run, seconds in took.items()]


def _name(keys: int, key: str) -> str:
    return f"set, stabilize, read: {keys:,} keys, {key} key"


def _double(value: float) -> float:
    return value * 2.0


def _plain_calls() -> None:
    for i in range(CALLS):
        _double(i)


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


def _changes(
    graph: Graph, price: LeafColumn[str, float], total: Cell[Any], keys: int, stride: int
) -> Callable[[], None]:
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
