"""What an as-of join keeps, what that costs a checkpoint, and how soon one trade has its row."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from bench import pipe_join
from bench.asof import TRADES, plan, streams
from bench.checkpoint import pause_of
from bench.row import Row, at_most
from bench.timing import QUICK
from bench.two_streams import RIGHTS, turns
from ripple.engine.machine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ripple.model.pipeline.plan import Plan

    Sides = dict[str, pa.Table]

KEYS = 10_000
EVER_NS = 10**15  # a lateness for which no row is let go
BATCH_ROWS = 16_384
ROUNDS = 3
ONES = 500 if QUICK else 5_000
WARM = 100
BYTES_A_KEY_MAX = 200.0
PAUSE_MAX_MS = 1.0
ANSWER_MAX_US = 30.0
PIPED_MAX_MS = 1.0
HELD_MAX = 1.5  # times what a trade takes beside few rows


def measure() -> Iterator[Row]:
    """Yield bytes a row and a key, the pause of a checkpoint, and the time of one row."""
    trades, quotes = streams(KEYS, 0.0)
    sides = {"trades": trades, "quotes": quotes}
    held, rows = _fed(plan(EVER_NS), sides), TRADES * (1 + RIGHTS)
    yield Row(f"bytes a row, {rows:,} rows held", held.nbytes / rows, "B")
    pause_s = max(pause_of(held, time.thread_time) for _ in range(ROUNDS))
    name = f"longest step of checkpoints, processor time, {rows:,} rows held"
    yield Row(name, pause_s * 1e3, "ms", aim=at_most(PAUSE_MAX_MS))
    own = _fed(plan(0), sides).nbytes
    name = f"bytes a key with its last quote, {KEYS:,} keys"
    yield Row(name, own / KEYS, "B", aim=at_most(BYTES_A_KEY_MAX))
    took_us, processor_us = _one_by_one(sides, plan(0, "eager"))
    name = "one trade in, one row out, p99"
    yield Row(name, float(np.quantile(took_us, 0.99)), "us", aim=at_most(ANSWER_MAX_US))
    piped_ms = np.quantile(pipe_join.took_us(), 0.99) / 1e3
    yield Row(f"{name}, through pipes", float(piped_ms), "ms", aim=at_most(PIPED_MAX_MS))
    name = "one trade in, one row out, processor time"
    yield Row(name, processor_us, "us")
    trades, quotes = streams(1, 0.0)
    one_key = {"trades": trades, "quotes": quotes}
    _, of_one_us = _one_by_one(one_key, plan(EVER_NS, "eager"))
    held = f"the same beside {2 * KEYS * (1 + RIGHTS):,} held rows of one key"
    yield Row(held, of_one_us, "us", name, processor_us, at_most(HELD_MAX, of_ratio=True))


def _fed(pipeline: Plan, sides: Sides) -> Engine:
    engine = Engine(pipeline)
    for name, batch, offset in turns(sides, BATCH_ROWS):
        engine.apply(name, batch, offset)
        engine.stabilize()
    return engine


def _one_by_one(sides: Sides, pipeline: Plan) -> tuple[list[float], float]:
    """Return what trades that come alone take, after others and their quotes.

    In microseconds: of each, and the processor time of one.
    """
    before, took_us = 2 * KEYS, []
    first = {
        name: side.slice(0, before * n)
        for (name, side), n in zip(sides.items(), (1, RIGHTS), strict=True)
    }
    engine = _fed(pipeline, first)
    for at in range(before, before + WARM + ONES):
        (trade,) = sides["trades"].slice(at, 1).to_batches()
        if at == before + WARM:
            began_s = time.process_time()
        started = time.perf_counter()
        engine.apply("trades", trade, at + 1)
        shown = engine.stabilize().outputs["out"]
        took_us.append((time.perf_counter() - started) * 1e6)
        assert shown.num_rows == 1, "each trade has its row at once"
    return took_us[WARM:], (time.process_time() - began_s) / ONES * 1e6
