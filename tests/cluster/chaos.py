"""A cluster of real processes, disturbed at random: does anybody who reads its output notice?

    python -m tests.cluster.chaos --trades 1000000 --events 100

Trades are appended to a topic while processes are killed, frozen, cut off, told to end and joined
by others, and while their disk is full; in the end each partition's output is compared with that of
a process that nobody has disturbed, record for record, where it is of a partition of the source,
and the tables of all outputs with those of one process for all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from ripple.core.hashing import partition_of
from ripple.storage.log import Topic
from ripple.storage.log.body import columns_of
from ripple.storage.log.router import TopicWriter
from ripple.world import LiveClock, LiveDisk
from tests.cluster import network, small_disk
from tests.cluster.acts import Acts
from tests.cluster.cluster import Cluster, Job, cluster, ripple
from tests.cluster.network import Network
from tests.cluster.small_disk import SmallDisk
from tests.patience import PATIENCE_S

HERE = Path(__file__).parent
# With their outputs, the first of which is of the first stage.
PIPELINES = {
    "windows": ("out",),
    "sessions": ("out",),
    "totals": ("out", "decades", "portfolio"),
    "events": ("out", "classes", "total"),
    "venues": ("volume", "ever"),
    "branches": ("large", "out", "counts"),
}
DIVIDED = {"venues"}
BATCH_ROWS = 1000
SYMBOLS_EACH = 8
START_NS = 1_709_000_000_000_000_000
DISK_BYTES = 1 << 30
END_MS = 10**9  # later than all trades
# Every so many events the cluster is left alone until it has caught up.
REST = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done to a cluster."""

    trades: int = 1_000_000
    events: int = 100
    seed: int = 0
    workers: int = 3
    spare: int = 1
    coordinators: int = 2
    partitions: int = 8


@dataclass(slots=True)
class Done:
    """What was done, and how long it took to catch up with the source after the last of it."""

    events: Counter[str] = field(default_factory=Counter)
    caught_up_s: list[float] = field(default_factory=list)
    seconds: float = 0.0
    is_same: bool = False
    records: int = 0
    said: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        what = ", ".join(f"{count} {name}" for name, count in sorted(self.events.items()))
        waits = sorted(self.caught_up_s)
        return (
            f"{self.seconds:.0f} s: {what}\n"
            f"caught up after {statistics.median(waits):.2f} s, at most {waits[-1]:.2f} s\n"
            + "\n".join(
                [
                    f"{self.records} records: {'the same' if self.is_same else 'DIFFERENT'}",
                    *self.differences,
                ]
            )
        )


@contextmanager
def _things(plan: Plan, folder: Path) -> Iterator[tuple[Network | None, SmallDisk | None]]:
    """Make what can be cut and filled, for as long as the block lasts, where it can be had here."""
    hosts = [f"coordinator-{number}" for number in range(1, plan.coordinators + 1)]
    hosts += [f"worker-{number}" for number in range(1, plan.workers + plan.spare + 1)]
    with ExitStack() as held:
        net = disk = None
        if network.missing() is None:
            net = Network(hosts)
            held.callback(net.close)
        if small_disk.missing() is None:
            disk = SmallDisk(folder / "disk", DISK_BYTES)
            held.callback(disk.close)
        yield net, disk


async def disturb(job: Job, plan: Plan, folder: Path, emit: Callable[[str], None]) -> Done:
    """Let a cluster work through ``plan.trades``, and compare."""
    done = Done()
    began_s = time.monotonic()
    for what in (network, small_disk):
        if (why := what.missing()) is not None:
            emit(f"not {what.__name__}: {why}")
    with _things(plan, folder) as (net, disk):
        if disk is not None:
            job = replace(job, folder=disk.folder / "made")
        up_now = cluster(
            job,
            job.folder.parent / "state",
            workers=plan.workers,
            spare=plan.spare,
            coordinators=plan.coordinators,
            network=list if net is None else partial(net.spread, folder=folder / "tls"),
        )
        async with up_now as up:
            done.said = up.said
            acts = Acts(up, random.Random(plan.seed), done.events, net, disk)
            done.caught_up_s = await _go(job, plan, up, acts, emit)
        done.seconds = time.monotonic() - began_s
        expected, found = await asyncio.to_thread(job.alone, folder), job.made()
        one, many = await asyncio.to_thread(job.tables_alone, folder), job.tables_made()
    done.records = sum(map(len, expected)) or sum(len(each.rows) for each in one)
    names = [f"{job.outputs[0]}/{partition}" for partition in range(len(expected))]
    done.differences = [
        *_differences(names, expected, found),
        *_differences(job.outputs, [table.rows for table in one], [table.rows for table in many]),
    ]
    done.is_same = (found, many) == (expected, one)
    return done


def _differences(
    names: Sequence[str], expected: list[list[str]], found: list[list[str]]
) -> Iterator[str]:
    """Yield where each output differs first."""
    for name, wanted, made in zip(names, expected, found, strict=True):
        if wanted != made:
            at = next(
                (
                    at
                    for at, pair in enumerate(zip(wanted, made, strict=False))
                    if pair[0] != pair[1]
                ),
                min(len(wanted), len(made)),
            )
            yield (
                f"{name}: of {len(wanted)} and {len(made)} records number {at} differs first:\n"
                f"  {wanted[at : at + 3]}\n  {made[at : at + 3]}"
            )


async def _go(
    job: Job, plan: Plan, up: Cluster, acts: Acts, emit: Callable[[str], None]
) -> list[float]:
    """Append, disturb, and wait now and then until all is caught up; return for how long."""
    waits_s = []
    steps = plan.events + 1
    batches = max(1, plan.trades // (steps * plan.partitions * BATCH_ROWS))
    for step in range(steps):
        await asyncio.to_thread(append, job.source, plan.partitions, step, batches)
        if step == 0:
            await up.caught_up(PATIENCE_S)
            continue
        acts.act()
        await asyncio.sleep(acts.chance.random() * 2)
        if step % REST == 0:
            waits_s.append(await up.caught_up(PATIENCE_S))
            emit(f"{step} of {plan.events}: caught up after {waits_s[-1]:.2f} s")
    await asyncio.to_thread(append, job.source, plan.partitions, steps, 1, is_end=True)
    return [*waits_s, await up.caught_up(PATIENCE_S)]


def append(path: Path, partitions: int, step: int, batches: int, *, is_end: bool = False) -> None:
    """Append ``batches`` whole batches to each partition: 1 ms apart, some late, some too late.

    Where a batch ends may be where a correction is shown, and so must not depend on what was there
    when a process looked. is_end: all at one time, later than all before: whoever reads one
    partition, and whoever reads all of them, then sees the same windows closed.
    """
    rows = batches * BATCH_ROWS
    chance = np.random.default_rng(step)
    symbols: list[list[str]] = [[] for _ in range(partitions)]
    for number in range(SYMBOLS_EACH * partitions):
        symbol = f"SYM{number:03}"
        symbols[partition_of(symbol.encode(), partitions)].append(symbol)
    count = rows * partitions
    late_ms = chance.choice([0, 0, 0, 700, 1500, 4000], count)
    times_ms = np.full(count, END_MS) if is_end else step * count + np.arange(count) - late_ms
    columns = {
        "symbol": np.concatenate([chance.choice(some, (rows, 1)) for some in symbols], 1).ravel(),
        "price": np.round(100 + np.cumsum(chance.normal(0, 0.01, count)), 4),
        "size": chance.integers(1, 1000, count),
        "timestamp_ns": START_NS + times_ms * 1_000_000,
        "venue": ["XNAS"] * count,
    }
    topic = Topic.open(LiveDisk(str(path.parent)), path.name)
    with TopicWriter(topic, LiveClock(), holder="chaos") as writer:
        for batch in pa.table(columns, schema=columns_of(topic.schema)).to_batches():
            writer.append(batch)


def job_of(name: str, folder: Path, partitions: int) -> Job:
    """Make the topic."""
    source = folder / "trades"
    ripple(
        "log", "create", "--schema", "trade", source, "--partitions", partitions, "--key", "symbol"
    )
    pipeline = HERE / f"pipeline_{name}.py"
    return Job(pipeline, source, folder / "made", PIPELINES[name], partitions, name in DIVIDED)


def main() -> int:
    """Run the command; return its exit code: 1 if the outputs differ."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.chaos",
        description="What all processes said stays in a file if the outputs differ.",
    )
    parser.add_argument("--pipeline", choices=PIPELINES, default="windows")
    for name in ("trades", "events", "seed", "workers", "spare", "coordinators", "partitions"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Plan(), name))
    chosen = vars(parser.parse_args())
    pipeline = chosen.pop("pipeline")
    plan = Plan(**chosen)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        job = job_of(pipeline, folder, plan.partitions)
        done = asyncio.run(disturb(job, plan, folder, _say))
    if not done.is_same:
        Path(f"chaos-{pipeline}-{plan.seed}.log").write_text("\n".join(done.said))
    _say(str(done))
    return 0 if done.is_same else 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
