"""B-05: a partition rebuilt from 6 M events of its log, in memory as Arrow batches."""

from __future__ import annotations

import time

from bench.row import Row, at_most
from bench.timing import QUICK
from bench.trades import blocks, feed, slices, vwap_plan
from ripple.engine.machine import Engine

EVENTS = 1_200_000 if QUICK else 6_000_000
KEYS = (2_000, 10_000)
BATCH_ROWS = 16_384
BOOK_S = 2.1


def measure() -> list[Row]:
    return [
        Row(
            f"replay of {EVENTS / 1e6:g} M events, {keys:,} keys{', windows of 60 s' * windows}",
            _replay_s(keys, windows=windows),
            "s",
            f"the original's {BOOK_S} s for 6 M, extrapolated by its book",
            BOOK_S * EVENTS / 6_000_000,
            at_most(BOOK_S * EVENTS / 6_000_000),
        )
        for keys in KEYS
        for windows in (False, True)
    ]


def _replay_s(keys: int, *, windows: bool) -> float:
    """Return the seconds of applying everything and showing the result once."""
    engine = Engine(vwap_plan(windows=windows))
    replay_s = 0.0
    for block in blocks(EVENTS, keys):
        batches = slices(block, BATCH_ROWS)
        started = time.perf_counter()
        feed(engine, batches, quiet=True)
        replay_s += time.perf_counter() - started
    return replay_s
