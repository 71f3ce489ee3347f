"""What it costs to spread a pipeline's stages over partitions, beside one engine with all of them.

Four partitions of trades of 2,000 symbols feed one partition of the next stage, in one process:
nothing is framed or sent. All settle after each batch of theirs; what changed is handed over after
each, or after every 16 of them, which is 20 ms of work.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import pyarrow as pa

import ripple as rp
from bench.row import Row
from bench.timing import QUICK
from bench.trades import Trade, feed, slices, trades
from bench.workloads import processor_seconds
from ripple.engine.machine.follower import Follower
from ripple.model.keys.partitioner import partition_numbers

EVENTS = 40_000 if QUICK else 400_000
ROUNDS = 2 if QUICK else 5
PARTITIONS, SYMBOLS, BATCH = 4, 2_000, 1_000
FLUSH_BATCHES = 16  # of each sender


def measure() -> list[Row]:
    rows = []
    for name, plan in (
        ("partial edge", _plan(total=rp.sum("vwap"), n=rp.count())),
        ("row edge", _plan(middle=rp.median("vwap"))),
    ):
        whole = slices(trades(EVENTS, SYMBOLS), BATCH)
        shares = _shares(trades(EVENTS, SYMBOLS))
        runs: dict[str, Callable[[], object]] = {
            "one": lambda plan=plan, whole=whole: feed(rp.Engine(plan), whole),  # type: ignore[misc]
            "each": lambda plan=plan, shares=shares: _spread(plan, shares, 1),  # type: ignore[misc]
            "some": lambda plan=plan, shares=shares: _spread(  # type: ignore[misc]
                plan, shares, FLUSH_BATCHES
            ),
        }
        least = dict.fromkeys(runs, float("inf"))
        for _ in range(ROUNDS):
            for how, run in runs.items():
                gc.collect()
                least[how] = min(least[how], processor_seconds(run))
        rates = {how: EVENTS / seconds / 1e6 for how, seconds in least.items()}
        every = f"{name}, handed over every {FLUSH_BATCHES} batches"
        rows += [
            Row(every, rates["some"], "M events/s", "one engine", rates["one"]),
            Row(f"{name}, each batch", rates["each"], "M events/s", "one engine", rates["one"]),
        ]
    return rows


def _plan(**results: Any) -> rp.Plan:
    vwaps = (
        rp.Pipeline("bench")
        .source("trades", Trade)
        .partition("by-symbol", key="symbol")
        .fold("vwap", vwap=rp.vwap("price", "size"))
    )
    return vwaps.partition("all", key=()).fold("total", **results).sink("output").plan()


def _shares(every: pa.RecordBatch) -> list[list[pa.RecordBatch]]:
    """Divide trades among the partitions by their symbol, in batches."""
    at = partition_numbers(every, ["symbol"], PARTITIONS)
    parts = [every.filter(pa.array(at == number)) for number in range(PARTITIONS)]
    return [slices(part, BATCH) for part in parts]


def _spread(plan: rp.Plan, shares: list[list[pa.RecordBatch]], flush_batches: int) -> None:
    readers = [rp.Engine(plan, partition, staged=True) for partition in range(len(shares))]
    follower = Follower(plan, 1, [str(partition) for partition in range(len(shares))])
    turns = list(zip_longest(*shares))
    for number, turn in enumerate(turns, 1):
        for reader, batch in zip(readers, turn, strict=True):
            if batch is not None:
                reader.apply("trades", batch, reader.cut["trades"] + batch.num_rows)
                reader.stabilize()
        if number % flush_batches and number < len(turns):
            continue
        for reader in readers:
            (changes,) = reader.outgoing()
            follower.follow(str(reader.partition), 0, changes)
        follower.stabilize()
