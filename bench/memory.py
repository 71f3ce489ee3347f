"""What a key costs, and whether memory grows with the number of events or of windows gone by."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from bench.row import Row, at_most
from bench.timing import QUICK
from bench.trades import blocks, feed, slices, trades, vwap_plan
from ripple.engine.machine import Engine

KEYS = (2_000, 10_000, 50_000, 200_000) if QUICK else (2_000, 10_000, 50_000, 200_000, 1_000_000)
EVENTS = 10_000_000 if QUICK else 100_000_000
WINDOWED_EVENTS = 10_000_000 if QUICK else 30_000_000
WARM_BLOCKS = 2  # of a million each
LEAST_OF = 4
BATCH_ROWS = 16_384
FEW_ROWS = 1_000  # the default: what a batch needs by itself is not of the keys
GROWTH_MAX_MB = 1.0  # of the allocator's noise
KEY_BYTES_MAX = 200


def measure() -> list[Row]:
    return [*_growth(windows=False), *_growth(windows=True), *_key_bytes()]


def _growth(*, windows: bool) -> list[Row]:
    """Return how much more is held after the last blocks of events than after the first.

    Each time the least of four: what the allocator keeps swings by one block's columns.
    """
    engine = Engine(vwap_plan(windows=windows))
    events = WINDOWED_EVENTS if windows else EVENTS
    what = "events, windows of 60 s" if windows else "events"
    resident, held = [], []
    for block in blocks(events, 2_000):
        feed(engine, slices(block, BATCH_ROWS))
        resident.append(_rss_bytes() / 1e6)
        held.append(engine.nbytes / 1e6)
    name = f"growth over {events / 1e6:g} M {what}, 2,000 keys"
    after = f"after {WARM_BLOCKS + LEAST_OF} M"
    rows = []
    for what, megabytes, limit in (("resident", resident, GROWTH_MAX_MB), ("held", held, 0.0)):
        first = min(megabytes[WARM_BLOCKS : WARM_BLOCKS + LEAST_OF])
        grown = min(megabytes[-LEAST_OF:]) - first
        rows.append(Row(f"{name}, {what}", grown, "MB", after, first, at_most(limit)))
    return rows


def _key_bytes() -> list[Row]:
    versus, aim = "dict of lists in Python, resident", at_most(KEY_BYTES_MAX)
    rows = []
    for keys in KEYS:
        everyone = trades(4 * keys, keys)
        before = _rss_bytes()
        engine = Engine(vwap_plan())
        feed(engine, slices(everyone, FEW_ROWS))
        resident = _rss_bytes() - before
        found = engine.table("output").num_rows
        before = _rss_bytes()
        state = _dict_of(slices(everyone, BATCH_ROWS))
        plain = (_rss_bytes() - before) / len(state)
        name = f"state of VWAP, {found:,} keys"
        rows.append(Row(f"{name}, held", engine.nbytes / found, "B/key", versus, plain, aim))
        if keys == KEYS[-1]:  # of fewer, what else a process takes would be most of it
            rows.append(Row(f"{name}, resident", resident / found, "B/key", versus, plain, aim))
        del engine, state
    return rows


def _dict_of(batches: Iterable[pa.RecordBatch]) -> dict[str, list[float]]:
    state: dict[str, list[float]] = {}
    for batch in batches:
        for symbol, price, size in zip(
            *(batch.column(i).to_pylist() for i in range(3)), strict=True
        ):
            sums = state.setdefault(symbol, [0.0, 0, 0])
            sums[0] += price * size
            sums[1] += size
            sums[2] += 1
    return state


def _rss_bytes() -> int:
    gc.collect()
    pa.default_memory_pool().release_unused()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
