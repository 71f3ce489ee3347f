"""How long it takes until a cluster has caught up with its input, after a process was killed.

Two workers share 24,000 keys, and trades come all the time, about half of what they could take. One
process that computes is killed, or a whole worker. It has caught up when no more of the input is
missing in the committed outputs than before, but for what comes in a tenth of a second, and that
stays so. A round begins when the worker has its partitions again, and when there is no backlog of
the one before, beside which nothing of its own would be seen.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.row import Row, at_most
from bench.running import OUTPUTS, PIPELINE, Feed, Watch, running, settled
from bench.timing import QUICK
from ripple.cli.cluster.starting.reach import Reach
from ripple.model.pipeline.file import load_plan
from ripple.world.live_control import LiveControl

ROUNDS = 2 if QUICK else 6
SYMBOLS = 24_000
ROWS = 2_000  # every 20 ms
BACKLOG_MAX = ROWS * 25  # what comes in half a second
SWAYS = ROWS * 5  # what is missing at rest is now and then a little more than it was
STEADY_S = 2.0
STAYS_S = 1.0
SETTLES_S = 8.0  # until a spare waits again
LOOK_S = 0.02
WITHIN_S = 90.0
DETECTED_S = 8.0  # by the silence of a worker; a child's death is known at once
AIMS_S = {"a process that computes": 3.0, "a whole worker": DETECTED_S + 4.0}


def measure() -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder, running(folder) as coordinator:
        sinks = {name: f"log:{folder}/{name}" for name in OUTPUTS}
        reach = Reach(load_plan(str(PIPELINE)), {"trades": f"log:{folder}/trades"}, sinks)
        with Feed(folder, ROWS, SYMBOLS) as feed, Watch(folder) as watch:
            watch.wait()
            said = Path(folder, "said")
            for what, aim in AIMS_S.items():
                took = [_round(what, coordinator, said, reach, feed) for _ in range(ROUNDS)]
                rows += [
                    Row(f"{what}, p50", median(took), "s"),
                    Row(f"{what}, longest", max(took), "s", aim=at_most(aim)),
                ]
        rows.append(Row("input", ROWS / 0.02 / 1e3, "K events/s"))
    return rows


def _usual(reach: Reach, feed: Feed) -> int:
    """Wait until there is no backlog; return how much of the input is missing at most, at rest."""
    began_s = time.monotonic()
    while True:
        until_s, most = time.monotonic() + STEADY_S, 0
        while time.monotonic() < until_s:
            most = max(most, _missing(reach, feed))
            time.sleep(LOOK_S)
        if most <= BACKLOG_MAX:
            return most
        waited_s = time.monotonic() - began_s
        assert waited_s < WITHIN_S, f"too much for this machine: {most} are missing at rest"


async def _share(coordinator: str) -> None:
    """Wait until both workers have partitions, and none moves."""
    channel = LiveControl().channel(coordinator)
    try:
        async with asyncio.timeout(WITHIN_S):
            while not all(one.partitions for one in (await settled(channel)).members):
                await asyncio.sleep(LOOK_S)
    finally:
        await channel.close()


def _round(what: str, coordinator: str, said: Path, reach: Reach, feed: Feed) -> float:
    """Kill, and return after how many seconds it had caught up."""
    time.sleep(SETTLES_S)
    asyncio.run(_share(coordinator))
    usual = _usual(reach, feed) + SWAYS
    (*_, worker) = re.findall(r"worker-1 +\| process (\d+)", said.read_text())
    children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    killed_s = time.monotonic()
    os.kill(int(worker if what == "a whole worker" else children[0]), signal.SIGKILL)
    since_s, is_behind = killed_s, False
    while (now_s := time.monotonic()) < since_s + STAYS_S or not is_behind:
        assert now_s < killed_s + WITHIN_S, f"{_missing(reach, feed)} are missing"
        if _missing(reach, feed) > usual:
            since_s, is_behind = time.monotonic(), True
        time.sleep(LOOK_S)
    return since_s - killed_s


def _missing(reach: Reach, feed: Feed) -> int:
    appended = feed.appended
    return max(0, appended - reach.look().records)
