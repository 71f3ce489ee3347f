"""B-01, cells: set one leaf, stabilize, read the total, with Python functions at every node.

The graph is a VWAP graph's shape: a leaf and a map per key, one incremental fold over all. The
fixed leaf is the original's benchmark: everything it touches stays in the cache. The wandering
leaf is what real keys do: at 100,000 keys the objects no longer fit, and memory is what is
measured. Each figure is the best of rounds that take turns with the others and with the plain
function call that it is compared with, so that a busy moment of the machine hits all alike.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ripple.graph.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 25
CALLS_PER_ROUND = 4_000
KEYS = (1_000, 10_000, 100_000)
STRIDE = 7_919  # a prime: visits every leaf, neighbours far apart


def measure() -> list[dict[str, Any]]:
    """Return the rows of the table: nanoseconds, and multiples of one Python function call."""
    runs: dict[str, Callable[[], int]] = {
        "one Python function call": _plain_call,
        "stabilize with nothing to do": _empty_stabilize(),
    }
    for keys in KEYS:
        runs[f"set, stabilize, read: {keys:,} keys, fixed leaf"] = _one_change(keys, 0)
        runs[f"set, stabilize, read: {keys:,} keys, wandering leaf"] = _one_change(keys, STRIDE)
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            best[name] = min(best[name], run() / CALLS_PER_ROUND)
    call_ns = best["one Python function call"]
    return [
        {
            "name": f"B-01 cells: {name}",
            "value": round(value, 1),
            "unit": "ns",
            "versus": f"one Python function call, {call_ns:.1f} ns",
            "ratio": round(value / call_ns, 2),
        }
        for name, value in best.items()
    ]


def _double(value: float) -> float:
    return value * 2.0


def _add(total: float, value: float) -> float:
    return total + value


def _remove(total: float, value: float) -> float:
    return total - value


def _plain_call() -> int:
    start = time.perf_counter_ns()
    for i in range(CALLS_PER_ROUND):
        _double(i)
    return time.perf_counter_ns() - start


def _empty_stabilize() -> Callable[[], int]:
    g = Graph(now=time.monotonic_ns)
    g.map(g.leaf(1.0), _double)

    def run() -> int:
        start = time.perf_counter_ns()
        for _ in range(CALLS_PER_ROUND):
            g.stabilize()
        return time.perf_counter_ns() - start

    return run


def _one_change(keys: int, stride: int) -> Callable[[], int]:
    g = Graph(now=time.monotonic_ns)
    leaves = [g.leaf(float(key)) for key in range(keys)]
    total = g.incr_fold([g.map(leaf, _double) for leaf in leaves], 0.0, _add, _remove)
    order = [leaves[(keys // 2 + i * stride) % keys] for i in range(CALLS_PER_ROUND)]

    value = 0.5

    def run() -> int:
        nonlocal value
        start = time.perf_counter_ns()
        for leaf in order:
            leaf.set(value)
            g.stabilize()
            value += 1.0 if total.value else 2.0  # never a value that a leaf had
        elapsed = time.perf_counter_ns() - start
        assert g.last_recompute_count == 3
        return elapsed

    return run


if __name__ == "__main__":
    for row in measure():
        print(f"{row['value']:8.1f} {row['unit']} {row['ratio']:6.2f} calls  {row['name']}")
