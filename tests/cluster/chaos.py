"""A cluster of real processes, disturbed at random: does anybody who reads its output notice?

    python -m tests.cluster.chaos --trades 1000000 --events 100

Trades are appended to a topic while processes are killed, frozen, told to end and joined by others;
in the end each partition's output is compared with that of a process that nobody has disturbed,
record for record, and the tables of all outputs with those of one process for all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from ripple.hashing import partition_of
from ripple.log import Topic
from ripple.log.body import columns_of
from ripple.log.router import TopicWriter
from ripple.world import LiveClock, LiveDisk
from tests.cluster.cluster import Cluster, Job, children_of, cluster, ripple, signalled

HERE = Path(__file__).parent
# With their outputs, the first of which is of the first stage.
PIPELINES = {
    "windows": ("out",),
    "sessions": ("out",),
    "totals": ("out", "decades", "portfolio"),
}
BATCH_ROWS = 1000
SYMBOLS_EACH = 8
START_NS = 1_709_000_000_000_000_000
FREEZES_S = (1.0, 4.0, 12.0)
CAUGHT_UP_S = 90.0
# Every so many events the cluster is left alone until it has caught up.
REST = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done to a cluster."""

    trades: int = 1_000_000
    events: int = 100
    seed: int = 0
    workers: int = 3
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

    def __str__(self) -> str:
        what = ", ".join(f"{count} {name}" for name, count in sorted(self.events.items()))
        waits = sorted(self.caught_up_s)
        return (
            f"{self.seconds:.0f} s: {what}\n"
            f"caught up after {statistics.median(waits):.2f} s, at most {waits[-1]:.2f} s\n"
            f"{self.records} records: {'the same' if self.is_same else 'DIFFERENT'}"
        )


class Chaos:
    """Does one thing after the other to a cluster."""

    def __init__(self, up: Cluster, chance: random.Random, done: Done) -> None:
        self._up = up
        self._chance = chance
        self._done = done
        self._acts: list[tuple[str, Callable[[], bool]]] = [
            ("workers killed", lambda: self._to_one("worker", signal.SIGKILL)),
            ("engines killed", lambda: self._to_engine(signal.SIGKILL)),
            ("engines frozen", lambda: self._freeze(engine=True)),
            ("workers frozen", lambda: self._freeze(engine=False)),
            ("workers told to end", lambda: self._to_one("worker", signal.SIGTERM)),
            ("coordinators killed", lambda: self._to_one("coordinator", signal.SIGKILL)),
        ]

    def act(self) -> None:
        """Do something to whoever is there."""
        name, do = self._chance.choice(self._acts)
        if do():
            self._done.events[name] += 1

    def _pick(self, kind: str) -> int:
        names = [name for name in self._up.processes if name.startswith(kind)]
        return self._up.pid(self._chance.choice(names))

    def _to_one(self, kind: str, number: signal.Signals) -> bool:
        pid = self._pick(kind)
        return bool(pid) and signalled(pid, number)

    def _engine(self) -> int:
        pid = self._pick("worker")
        try:
            engines = children_of(pid) if pid else []
        except OSError:
            return 0
        return self._chance.choice(engines) if engines else 0

    def _to_engine(self, number: signal.Signals) -> bool:
        pid = self._engine()
        return bool(pid) and signalled(pid, number)

    def _freeze(self, *, engine: bool) -> bool:
        pid = self._engine() if engine else self._pick("worker")
        if not pid or not signalled(pid, signal.SIGSTOP):
            return False
        asyncio.get_running_loop().call_later(
            self._chance.choice(FREEZES_S), signalled, pid, signal.SIGCONT
        )
        return True


async def disturb(job: Job, plan: Plan, folder: Path, tell: Callable[[str], None]) -> Done:
    """Let a cluster work through ``plan.trades``, and compare."""
    chance, done = random.Random(plan.seed), Done()
    began_s = time.monotonic()
    up_now = cluster(job, folder / "state", workers=plan.workers, coordinators=plan.coordinators)
    async with up_now as up:
        done.said = up.said
        chaos = Chaos(up, chance, done)
        steps = plan.events + 1
        batches = max(1, plan.trades // (steps * plan.partitions * BATCH_ROWS))
        for step in range(steps):
            await asyncio.to_thread(append, job.source, plan.partitions, step, batches)
            if step == 0:
                await up.caught_up(CAUGHT_UP_S)
                continue
            chaos.act()
            await asyncio.sleep(chance.random() * 2)
            if step % REST == 0:
                done.caught_up_s.append(await up.caught_up(CAUGHT_UP_S))
                tell(f"{step} of {plan.events}: caught up after {done.caught_up_s[-1]:.2f} s")
        done.caught_up_s.append(await up.caught_up(CAUGHT_UP_S))
    done.seconds = time.monotonic() - began_s
    expected, found = await asyncio.to_thread(job.alone, folder), job.made()
    one, many = await asyncio.to_thread(job.tables_alone, folder), job.tables_made()
    done.is_same, done.records = (found, many) == (expected, one), sum(map(len, expected))
    return done


def append(path: Path, partitions: int, step: int, batches: int) -> None:
    """Append ``batches`` whole batches to each partition: 1 ms apart, some late, some too late.

    Where a batch ends may be where a correction is shown, and so must not depend on what was there
    when a process looked.
    """
    rows = batches * BATCH_ROWS
    chance = np.random.default_rng(step)
    symbols: list[list[str]] = [[] for _ in range(partitions)]
    for number in range(SYMBOLS_EACH * partitions):
        symbol = f"SYM{number:03}"
        symbols[partition_of(symbol.encode(), partitions)].append(symbol)
    count = rows * partitions
    late_ms = chance.choice([0, 0, 0, 700, 1500, 4000], count)
    columns = {
        "symbol": np.concatenate([chance.choice(some, (rows, 1)) for some in symbols], 1).ravel(),
        "price": np.round(100 + np.cumsum(chance.normal(0, 0.01, count)), 4),
        "size": chance.integers(1, 1000, count),
        "timestamp_ns": START_NS + (step * count + np.arange(count) - late_ms) * 1_000_000,
        "venue": ["XNAS"] * count,
    }
    topic = Topic.open(LiveDisk(str(path.parent)), path.name)
    with TopicWriter(topic, LiveClock(), holder="chaos") as writer:
        for batch in pa.table(columns, schema=columns_of(topic.schema)).to_batches():
            writer.append(batch)


def job_of(name: str, folder: Path, partitions: int) -> Job:
    """Make the topic."""
    source = folder / "trades"
    ripple("log", "create", source, "--partitions", partitions, "--key", "symbol")
    pipeline = HERE / f"pipeline_{name}.py"
    return Job(pipeline, source, folder / "made", PIPELINES[name], partitions)


def main() -> int:
    """Run the command; return its exit code: 1 if the outputs differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.chaos")
    parser.add_argument("--pipeline", choices=PIPELINES, default="windows")
    for name in ("trades", "events", "seed", "workers", "coordinators", "partitions"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Plan(), name))
    chosen = vars(parser.parse_args())
    pipeline = chosen.pop("pipeline")
    plan = Plan(**chosen)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        job = job_of(pipeline, folder, plan.partitions)
        done = asyncio.run(disturb(job, plan, folder, _say))
    _say(str(done))
    return 0 if done.is_same else 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
