"""B-01, cells: set one leaf, stabilize, read the total, with Python functions at every node.

The graph is a VWAP graph's shape: a leaf and a map per key, one incremental fold over all.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.one_change import CALLS, one_change
from bench.row import Row
from ripple.notebook.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable


def measure() -> list[Row]:
    return one_change(_changes, {"stabilize with nothing to do": _empty_stabilizes()}, 12)


def _double(value: float) -> float:
    return value * 2.0


def _add(total: float, value: float) -> float:
    return total + value


def _remove(total: float, value: float) -> float:
    return total - value


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
