"""Checkpoints at 2 K, 100 K and 1 M keys: pause, time, size, restore; and of changes alone."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.ipc

import ripple.model.aggregate as ra
from bench.row import Row, at_most
from bench.timing import QUICK
from bench.trades import Trade, feed, slices, trades, vwap_plan
from ripple.engine.machine import Engine
from ripple.engine.snapshots.increment import applied
from ripple.model.pipeline.builder import Pipeline
from ripple.model.window import Assigner, OnCount, Session, Trigger, Tumbling
from ripple.storage.checkpoint import Checkpoint, Checkpoints, decode, encode
from ripple.storage.store import DiskStore
from ripple.world import live_world

if TYPE_CHECKING:
    from ripple.engine.machine import Snapshot
    from ripple.engine.snapshots.saving import PendingSnapshot
    from ripple.model.pipeline.plan import Plan

T = TypeVar("T")

KEYS = (2_000, 100_000) if QUICK else (2_000, 100_000, 1_000_000)
EVENTS_PER_KEY = 4
BATCH_ROWS = 16_384
STEP_SLOTS = 16_384
ROUNDS = 3
PAUSE_MAX_MS = 10.0
# No windows: a fold over the results of the fold.
SHAPES: dict[str, tuple[Assigner, Trigger | None] | None] = {
    "windows": (Tumbling("24h"), None),
    "sessions": (Session("24h"), None),
    "OnCount": (Tumbling("24h"), OnCount(3)),
    "a fold of a fold": None,
}
BOOK_BYTES = 120_000.0  # at 2,000 keys


def measure() -> list[Row]:
    rows = [row for keys in KEYS for row in _at(keys)]
    rows += [_pause_of(shape, keys) for shape in SHAPES for keys in KEYS[1:]]
    return [*rows, *_increment(KEYS[-1])]


def _at(keys: int) -> Iterator[Row]:
    engine = Engine(vwap_plan())
    feed(engine, slices(trades(EVENTS_PER_KEY * keys, keys), BATCH_ROWS))
    of = f"{keys:,} keys"
    whole_s, snapshot = _best(engine.snapshot)
    pause_s = min(pause_of(engine) for _ in range(ROUNDS))
    yield Row(
        f"longest pause of intake, {of}",
        pause_s * 1e3,
        "ms",
        "snapshot in one piece",
        whole_s * 1e3,
        at_most(PAUSE_MAX_MS),
    )
    encode_s, (checkpoint, files) = _best(lambda: encode(snapshot, "0000000001-00", 1, 0))
    plain_s, plain = _best(lambda: _plain(snapshot))
    versus = "Arrow IPC without compression or checksum"
    yield Row(f"encode, beside intake, {of}", encode_s * 1e3, "ms", versus, plain_s * 1e3)
    yield Row(f"size, {of}", checkpoint.length_bytes / 1e3, "kB", versus, plain / 1e3)
    if keys == KEYS[0]:
        size, book = checkpoint.length_bytes / 1e3, BOOK_BYTES / 1e3
        yield Row(f"size, {of}", size, "kB", "the book's figure", book)
    disk_s = asyncio.run(_to_disk(snapshot))
    yield Row(f"encode, write and sync to disk, {of}", disk_s * 1e3, "ms")
    restore_s, _ = _best(lambda: _restored(engine, checkpoint, files))
    yield Row(f"verify, decode and restore, {of}", restore_s * 1e3, "ms")


def _pause_of(shape: str, keys: int) -> Row:
    """Return the pause of what holds more than accumulators by key."""
    engine = Engine(_plan_of(shape))
    feed(engine, slices(trades(EVENTS_PER_KEY * keys, keys), BATCH_ROWS), quiet=True)
    whole_s, _ = _best(engine.snapshot)
    pause_s = min(pause_of(engine) for _ in range(ROUNDS))
    label = f"longest pause of intake, {shape}, {keys:,} keys"
    return Row(label, pause_s * 1e3, "ms", "snapshot in one piece", whole_s * 1e3)


def _plan_of(shape: str) -> Plan:
    keyed = Pipeline("bench").source("trades", Trade).partition("by-symbol", key="symbol")
    windows = SHAPES[shape]
    if windows is not None:
        keyed = keyed.window("w", windows[0], trigger=windows[1])
    folded = keyed.fold("vwap", vwap=ra.vwap("price", "size"), trade_count=ra.count())
    if windows is None:
        folded = folded.partition("again", key="symbol").fold("again-by", n=ra.sum("trade_count"))
    return folded.sink("output", of="vwap").plan()


def _increment(keys: int) -> Iterator[Row]:
    """Return what a checkpoint of the changes costs beside one of everything."""
    engine = Engine(vwap_plan())
    feed(engine, slices(trades(2 * keys, keys), BATCH_ROWS))
    changed = keys // 100
    whole_s, stored = _best(engine.snapshot)
    feed(engine, [trades(2 * keys, keys).slice(0, changed)])
    begun_s, changes = _best(lambda: _made(engine.begin_snapshot(stored.number)))
    of = f"{keys:,} keys, 1 % changed"
    versus = "of everything"
    yield Row(f"copying an increment, {of}", begun_s * 1e3, "ms", versus, whole_s * 1e3)
    encode_s, (whole, files) = _best(lambda: encode(stored, "0000000001-00", 1, 0))
    changes_s, (increment, more) = _best(
        lambda: encode(changes, "0000000001-01", 1, 0, base=whole.name)
    )
    yield Row(f"encoding an increment, {of}", changes_s * 1e3, "ms", versus, encode_s * 1e3)
    sizes = increment.length_bytes / 1e3, whole.length_bytes / 1e3
    yield Row(f"size of an increment, {of}", sizes[0], "kB", versus, sizes[1])
    read_s, _ = _best(lambda: decode(whole, files))
    chain_s, _ = _best(lambda: applied(decode(whole, files), decode(increment, more)))
    yield Row(f"reading an increment and its base, {of}", chain_s * 1e3, "ms", versus, read_s * 1e3)


def _made(pending: PendingSnapshot) -> Snapshot:
    while not pending.step(STEP_SLOTS):
        pass
    return pending.finish()


def pause_of(engine: Engine, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the longest step of a snapshot in steps, in seconds of ``clock``."""
    started = clock()
    pending = engine.begin_snapshot()
    longest_s = clock() - started
    complete = False
    while not complete:
        started = clock()
        complete = pending.step(STEP_SLOTS)
        longest_s = max(longest_s, clock() - started)
    return longest_s


def _restored(engine: Engine, checkpoint: Checkpoint, files: dict[str, bytearray]) -> Engine:
    return Engine.restore(engine.plan, decode(checkpoint, files))


def _plain(snapshot: Snapshot) -> int:
    length_bytes = 0
    for table in snapshot.tables.values():
        sink = pa.BufferOutputStream()
        with pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        length_bytes += sink.getvalue().size
    return length_bytes


async def _to_disk(snapshot: Snapshot) -> float:
    with tempfile.TemporaryDirectory() as folder:
        world = live_world(folder)
        checkpoints = Checkpoints(DiskStore(world.disk, world.random), snapshot.pipeline)
        owner = await checkpoints.claim(world.clock, world.random)
        best_s = float("inf")
        for _ in range(ROUNDS):
            started = time.perf_counter()
            await owner.write(snapshot)
            best_s = min(best_s, time.perf_counter() - started)
        return best_s


def _best(work: Callable[[], T]) -> tuple[float, T]:
    best_s = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        result = work()
        best_s = min(best_s, time.perf_counter() - started)
    return best_s, result
