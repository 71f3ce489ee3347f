"""What exactness costs: nanoseconds an add beside rounded sums, and bytes a key.

2,000 keys, batches of 16,384 rows, as an engine feeds them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import ripple.model.aggregate as ra
from bench.row import Row
from bench.timing import in_turns
from ripple.model.aggregate.exact import ExactSums
from ripple.model.aggregate.integers import IntegerSums
from ripple.model.aggregate.ordered import OrderedValues
from ripple.model.schema.types import Float, Int64

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = 2_000
BATCH = 16_384
EVERY = np.arange(KEYS)
PLAIN = "rounded add, compiled loop (np.bincount)"  # one double addition a row


def measure() -> list[Row]:
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
    return [
        *_beside(PLAIN, runs, BATCH),
        *_reads(slots, prices, sizes),
        *_memory(slots, prices, sizes),
    ]


def _sums() -> ExactSums:
    sums = ExactSums()
    sums.resize(KEYS)
    return sums


def _beside(plain: str, runs: dict[str, Callable[[], object]], items: int) -> list[Row]:
    """Return nanoseconds an item of all runs beside those of the plain one."""
    took_ns = {name: seconds / items * 1e9 for name, seconds in in_turns(runs).items()}
    base_ns = took_ns.pop(plain)
    return [Row(name, ns, "ns", plain, base_ns) for name, ns in took_ns.items()]


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


def _reads(slots: Any, prices: Any, sizes: Any) -> list[Row]:
    states = {name: _filled(name, slots, {"p": prices, "s": sizes}) for name in FAMILIES}
    doubles = np.ones(KEYS)
    runs: dict[str, Callable[[], object]] = {"doubles, gathered": lambda: doubles[EVERY]}
    runs |= {f"{n} read": lambda s=s: s.results(EVERY) for n, s in states.items()}  # type: ignore[misc]
    return _beside("doubles, gathered", runs, KEYS)


def _memory(slots: Any, prices: Any, sizes: Any) -> list[Row]:
    held = {
        name: _filled(name, slots, {"p": prices, "s": sizes}).nbytes / KEYS
        for name in ("sum", "mean", "vwap", "stddev")
    }
    return [Row(f"{name} held", size, "B/key", "a double", 8.0) for name, size in held.items()]
