"""Checkpoints at 2 K, 100 K and 1 M keys: pause, time, size, restore."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.ipc

from bench.row import Row, at_most
from bench.timing import QUICK
from bench.trades import feed, slices, trades, vwap_plan
from ripple.checkpoint import Checkpoint, Checkpoints, DiskStore, decode, encode
from ripple.engine import Engine
from ripple.world import live_world

if TYPE_CHECKING:
    from ripple.engine import Snapshot

T = TypeVar("T")

KEYS = (2_000, 100_000) if QUICK else (2_000, 100_000, 1_000_000)
EVENTS_PER_KEY = 4
BATCH_ROWS = 16_384
STEP_SLOTS = 16_384
ROUNDS = 3
PAUSE_MAX_MS = 10.0
BOOK_BYTES = 120_000.0  # at 2,000 keys


def measure() -> list[Row]:
    return [row for keys in KEYS for row in _at(keys)]


def _at(keys: int) -> Iterator[Row]:
    engine = Engine(vwap_plan())
    feed(engine, slices(trades(EVENTS_PER_KEY * keys, keys), BATCH_ROWS))
    of = f"{keys:,} keys"
    whole_s, snapshot = _best(engine.snapshot)
    pause_s = min(_pause(engine) for _ in range(ROUNDS))
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


def _pause(engine: Engine) -> float:
    """Return the longest step of a snapshot in steps."""
    started = time.perf_counter()
    pending = engine.begin_snapshot()
    longest_s = time.perf_counter() - started
    complete = False
    while not complete:
        started = time.perf_counter()
        complete = pending.step(STEP_SLOTS)
        longest_s = max(longest_s, time.perf_counter() - started)
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
