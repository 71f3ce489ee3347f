"""B-01's frame: one change at several sizes, in multiples of one Python function call.

The fixed key is the original's benchmark: everything it touches stays in the cache. The wandering
key is what real keys do: at 100,000 keys what they touch no longer fits, and memory is what is
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.row import Row, at_most
from bench.timing import in_turns

CALLS = 4_000  # a run makes so many changes
KEYS = (1_000, 10_000, 100_000)
STRIDE = 7_919  # a prime: visits every key, neighbours far apart
CALL = "one Python function call"
ORIGINAL_NS = 250.0  # what the book measured for its own, native one


def one_change(
    changes: Callable[[int, int], Callable[[], None]],
    others: Mapping[str, Callable[[], None]],
    calls_max: float,
) -> list[Row]:
    """Return the rows for ``changes(keys, stride)`` and ``others``, runs of CALLS changes each."""
    runs = {CALL: _plain_calls, **others}
    for keys in KEYS:
        runs[_name(keys, "fixed")] = changes(keys, 0)
        runs[_name(keys, "wandering")] = changes(keys, STRIDE)
    took_ns = {run: seconds / CALLS * 1e9 for run, seconds in in_turns(runs).items()}
    call_ns = took_ns.pop(CALL)
    aims = {_name(keys, "fixed"): at_most(calls_max, of_ratio=True) for keys in KEYS}
    rows = [Row(run, ns, "ns", CALL, call_ns, aims.get(run)) for run, ns in took_ns.items()]
    least, *_, most = (took_ns[_name(keys, "fixed")] for keys in KEYS)
    first, flat = _name(KEYS[0], "fixed"), at_most(1.1, of_ratio=True)
    return [
        *rows,
        Row(f"the same with {KEYS[-1]:,} keys", most, "ns", first, least, flat),
        Row(first, least, "ns", "the original, as its book says", ORIGINAL_NS),
    ]


def _name(keys: int, key: str) -> str:
    return f"set, stabilize, read: {keys:,} keys, {key} key"


def _double(value: float) -> float:
    return value * 2.0


def _plain_calls() -> None:
    for i in range(CALLS):
        _double(i)
