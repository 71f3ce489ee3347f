"""B-01, cells: set one leaf, stabilize, read the total, with Python functions at every node.

The graph is a VWAP graph's shape: a leaf and a map per key, one incremental fold over all. The
fixed leaf is the original's benchmark: everything it touches stays in the cache. The wandering
leaf is what real keys do: at 100,000 keys the objects no longer fit, and memory is what is
measured.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.row import Row, at_most
from bench.timing import in_turns
from ripple.graph.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 4_000
KEYS = (1_000, 10_000, 100_000)
CALL = "one Python function call"
ORIGINAL_NS = 250.0  # what the book measured for its own, native one
STRIDE = 7_919  # a prime: visits every leaf, neighbours far apart


def measure() -> list[Row]:
    runs: dict[str, Callable[[], None]] = {CALL: _plain_calls}
    runs["stabilize with nothing to do"] = _empty_stabilizes()
    for keys in KEYS:
        runs[_name(keys, "fixed")] = _changes(keys, 0)
        runs[_name(keys, "wandering")] = _changes(keys, STRIDE)
    took_ns = {run: seconds / CALLS * 1e9 for run, seconds in in_turns(runs).items()}
    call_ns = took_ns.pop(CALL)
    aims = {_name(keys, "fixed"): at_most(12, of_ratio=True) for keys in KEYS}
    rows = [Row(run, ns, "ns", CALL, call_ns, aims.get(run)) for run, ns in took_ns.items()]
    least, *_, most = (took_ns[_name(keys, "fixed")] for keys in KEYS)
    flat = at_most(1.1, of_ratio=True)
    first = _name(KEYS[0], "fixed")
    return [
        *rows,
        Row(f"the same with {KEYS[-1]:,} keys", most, "ns", first, least, flat),
        Row(first, least, "ns", "the original, as its book says", ORIGINAL_NS),
    ]


def _name(keys: int, leaf: str) -> str:
    return f"set, stabilize, read: {keys:,} keys, {leaf} leaf"


def _double(value: float) -> float:
    return value * 2.0


def _add(total: float, value: float) -> float:
    return total + value


def _remove(total: float, value: float) -> float:
    return total - value


def _plain_calls() -> None:
    for i in range(CALLS):
        _double(i)


def _empty_stabilizes() -> Callable[[], None]:
    g = Graph(now=time.monotonic_ns)
    g.map(g.leaf(1.0), _double)

    def run() -> None:
        for _ in range(CALLS):
            g.stabilize()

    return run


def _changes(keys: int, stride: int) -> Callable[[], None]:
    g = Graph(now=time.monotonic_ns)
    leaves = [g.leaf(float(key)) for key in range(keys)]
    total = g.incr_fold([g.map(leaf, _double) for leaf in leaves], 0.0, _add, _remove)
    order = [leaves[(keys // 2 + i * stride) % keys] for i in range(CALLS)]
    value = 0.5

    def run() -> None:
        nonlocal value
        for leaf in order:
            leaf.set(value)
            g.stabilize()
            value += 1.0 if total.value else 2.0  # never a value that a leaf had
        assert g.last_recompute_count == 3

    return run
