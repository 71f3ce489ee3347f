"""``ripple-gateway`` beside a cluster whose workers are killed, followed by Deephaven's client."""

from __future__ import annotations

import asyncio
import json
import math
import signal
from itertools import accumulate
from pathlib import Path
from random import Random

import pytest

from ripple.storage.log import PartitionReader, Topic
from ripple.world import LiveDisk
from tests.client.flight.barrage.judging import Judge, judge, session_of
from tests.client.flight.barrage.test_judges import ticking
from tests.client.flight.gateways import gateway
from tests.cluster.chaos import append, job_of
from tests.cluster.cluster import Cluster, Job, cluster, signalled
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.services

PARTITIONS = 4
ROUNDS = 4  # before each but the first a worker is killed
BATCHES = 2


def truths(job: Job) -> dict[str, list[float]]:
    """Return of each symbol its price after each of its trades: the rows that may ever be shown."""
    topic = Topic.open(LiveDisk(str(job.source.parent)), job.source.name)
    money: dict[str, list[tuple[float, int]]] = {}
    for number in range(PARTITIONS):
        with PartitionReader(topic, number) as reader:
            for entry in reader.read():
                for row in entry.records.to_pylist():  # type: ignore[union-attr]  # no markers
                    money.setdefault(row["symbol"], []).append((row["price"], row["size"]))
    found = {}
    for symbol, trades in money.items():
        paid = accumulate(price * size for price, size in trades)
        shares = accumulate(size for _, size in trades)
        found[symbol] = [p / s for p, s in zip(paid, shares, strict=True)]
    return found


class Watch:
    """Judges each table that the client shows: rows that are true, and that never go back."""

    def __init__(self) -> None:
        self.tables = 0
        self.trades: dict[str, int] = {}
        self._truths: dict[str, list[float]] = {}

    def learn(self, truths: dict[str, list[float]]) -> None:
        """Know of more rows that may be shown."""
        self._truths = truths

    def see(self, line: str) -> None:
        columns, rows = json.loads(line)
        seen = {}
        for row in (dict(zip(columns, row, strict=True)) for row in rows):
            symbol, trades = row["symbol"], row["trades"]
            assert symbol not in seen
            assert trades >= self.trades.get(symbol, 0), "it went back"
            assert math.isclose(row["vwap"], self._truths[symbol][trades - 1], rel_tol=1e-9)
            seen[symbol] = trades
        assert seen.keys() >= self.trades.keys(), "a row has gone"
        self.trades = seen
        self.tables += 1

    @property
    def records(self) -> int:
        return sum(self.trades.values())


async def watched(client: Judge, watch: Watch, up: Cluster, job: Job) -> None:
    """Kill a worker and append more, again and again; judge all that the client shows."""
    random, appended = Random(1), 0
    async with asyncio.timeout(PATIENCE_S):
        for step in range(ROUNDS):
            if step:
                while not (pid := up.pid(f"worker-{random.choice([1, 2])}")):
                    await asyncio.sleep(0.05)
                signalled(pid, signal.SIGKILL)
            append(job.source, PARTITIONS, step=step, batches=BATCHES)
            appended += 1000 * BATCHES * PARTITIONS
            watch.learn(truths(job))
            while watch.records < appended:
                line = await client.says(0.5)
                if line:
                    watch.see(line)


async def test_the_client_in_cpp_sees_a_stall_and_then_the_truth(tmp_path: Path) -> None:
    environment = ticking()
    job = job_of("totals", tmp_path, PARTITIONS)
    watch = Watch()

    async with (
        cluster(job, tmp_path / "state", workers=2) as up,
        gateway(up.coordinators, tmp_path) as address,
    ):
        given = session_of(address), job.outputs[0], "rows"
        async with judge("ticking_judge.py", environment, *given) as client:
            assert (await client.says()).split() == ["tables", *sorted(job.outputs)]
            assert (await client.says()).split()[0] == "now"
            await watched(client, watch, up, job)
    assert watch.tables >= ROUNDS
