"""What exactness costs: nanoseconds an add beside rounded sums, and bytes a key.

2,000 keys, batches of 16,384 rows, as an engine feeds them. Every figure is the best of rounds
that take turns with those it is compared with.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import ripple.aggregate as ra
from ripple.aggregate.exact import ExactSums
from ripple.aggregate.integers import IntegerSums
from ripple.aggregate.ordered import OrderedValues
from ripple.schema.types import Float, Int64

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = 2_000
BATCH = 16_384
ROUNDS = 60
EVERY = np.arange(KEYS)
PLAIN = "rounded add, compiled loop (np.bincount)"  # one double addition a row


def measure() -> list[dict[str, Any]]:
    """Return the rows of the table."""
    rng = np.random.default_rng(11)
    slots = rng.integers(0, KEYS, BATCH)
    prices = np.round(100 + rng.standard_normal(BATCH), 2)
    sizes = rng.integers(1, 1000, BATCH)
    listed = prices.tolist()
    rounded = np.zeros(KEYS)
    sums, signed, products, squares = (_sums() for _ in range(4))
    integers, ordered = IntegerSums(), OrderedValues(integer=False)
    integers.resize(KEYS)
    ordered.resize(KEYS)
    mixed = prices * rng.choice([-1.0, 1.0], BATCH)
    runs: dict[str, Callable[[], object]] = {
        PLAIN: lambda: np.bincount(slots, prices, KEYS),
        "rounded add, np.add.at": lambda: np.add.at(rounded, slots, prices),
        "math.fsum of the batch, one key": lambda: math.fsum(listed),
        "exact add": lambda: sums.add(slots, prices),
        "exact add, both signs": lambda: signed.add(slots, mixed),
        "exact add of price * size": lambda: products.add_product(slots, prices, sizes),
        "exact add of squares": lambda: squares.add_square(slots, prices),
        "exact add of integers": lambda: integers.add(slots, sizes),
        "ordered add and remove": lambda: (
            ordered.add(slots, mixed),
            ordered.remove(slots, mixed),
        ),
    }
    best = _best(runs, BATCH)
    rows = [_row(name, ns, PLAIN, best[PLAIN]) for name, ns in best.items()]
    return rows + _reads(slots, prices, sizes) + _memory(slots, prices, sizes)


def _sums() -> ExactSums:
    sums = ExactSums()
    sums.resize(KEYS)
    return sums


def _best(runs: dict[str, Callable[[], object]], items: int) -> dict[str, float]:
    best = dict.fromkeys(runs, math.inf)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.perf_counter_ns()
            run()
            best[name] = min(best[name], (time.perf_counter_ns() - start) / items)
    return best


def _row(name: str, value: float, versus: str, base: float, unit: str = "ns") -> dict[str, Any]:
    return {
        "name": f"aggregates: {name}",
        "value": round(value, 2),
        "unit": unit,
        "versus": f"{versus}, {base:.2f} {unit}",
        "ratio": round(value / base, 2),
    }


FAMILIES = {
    "sum": (ra.sum("p"), ("p",)),
    "mean": (ra.mean("p"), ("p",)),
    "vwap": (ra.vwap("p", "s"), ("p", "s")),
    "stddev": (ra.stddev("p"), ("p",)),
    "max": (ra.max("p"), ("p",)),
    "median": (ra.median("p"), ("p",)),
}
TYPES = {"p": Float(), "s": Int64()}


def _filled(name: str, slots: Any, columns: dict[str, Any]) -> ra.State:
    aggregate, inputs = FAMILIES[name]
    state = aggregate.bind(tuple(TYPES[c] for c in inputs)).state(retractable=True)
    state.resize(KEYS)
    state.add(slots, *(columns[c] for c in inputs))
    return state


def _reads(slots: Any, prices: Any, sizes: Any) -> list[dict[str, Any]]:
    states = {name: _filled(name, slots, {"p": prices, "s": sizes}) for name in FAMILIES}
    doubles = np.ones(KEYS)
    runs: dict[str, Callable[[], object]] = {"doubles, gathered": lambda: doubles[EVERY]}
    runs |= {f"{n} read": lambda s=s: s.results(EVERY) for n, s in states.items()}  # type: ignore[misc]
    best = _best(runs, KEYS)
    plain = "doubles, gathered"
    return [_row(name, ns, plain, best[plain]) for name, ns in best.items() if name != plain]


def _memory(slots: Any, prices: Any, sizes: Any) -> list[dict[str, Any]]:
    held = {
        name: _filled(name, slots, {"p": prices, "s": sizes}).nbytes / KEYS
        for name in ("sum", "mean", "vwap", "stddev")
    }
    return [_row(f"{n}, bytes a key", b, "a double", 8.0, "B") for n, b in held.items()]


if __name__ == "__main__":
    for row in measure():
        print(
            f"{row['name']:56} {row['value']:>8} {row['unit']:3} {row['ratio']:>7} x", row["versus"]
        )
