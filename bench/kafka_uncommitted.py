"""Records of Kafka until somebody outside sees what they change: uncommitted, and committed.

A cluster of one worker keeps VWAP by symbol from a topic into a topic, with transactions of 50 ms,
and somebody follows its output over the exchange, first as it is computed, then as it is
committed. A cut says which records are in what is seen: each is timed from when it was given to the
broker.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.kafka_pipeline import PIPELINE, STEPS_A_SECOND, make_topic, write_at
from bench.row import Row, at_most
from bench.timing import QUICK
from ripple.cli.cluster.starting.plan import Asked, coordinators_of, processes
from ripple.cli.cluster.starting.process import Process
from ripple.client.outputs import Observer, found_by
from ripple.world import live_world
from ripple.world.live_control import LiveControl

if TYPE_CHECKING:
    from ripple.client.outputs import OutputSubscription

RATE, STEP_NS = 10_000, 6_000_000
SETTLE_S, LOAD_S, WITHIN_S = 3.0, 5.0 if QUICK else 30.0, 60.0
EACH = RATE // STEPS_A_SECOND


def measure() -> list[Row]:
    from tests.services.kafka import Broker  # noqa: PLC0415

    os.environ["RIPPLE_COMMIT_INTERVAL_MS"] = "50"
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder) / "kafka") as broker:
        late_ms = asyncio.run(_measure(broker.bootstrap, Path(folder)))
    ahead, committed = (np.percentile(late_ms[key], [50, 99]) for key in (True, False))
    name = "uncommitted, {} of all records at 10,000/s"
    return [
        Row(name.format("p50"), ahead[0], "ms", "committed", committed[0]),
        Row(name.format("p99"), ahead[1], "ms", "committed", committed[1], at_most(20.0)),
    ]


async def _measure(bootstrap: str, folder: Path) -> dict[bool, list[float]]:
    for topic in ("trades", "out"):
        await make_topic(bootstrap, topic)
    pipeline = folder / "pipeline.py"
    pipeline.write_text(
        PIPELINE.replace("NAME", "seen").replace('.window("1min", rp.Tumbling("60s"))', "")
    )
    planned = processes(
        Asked(
            pipeline=str(pipeline),
            source=f"kafka:{bootstrap}/trades",
            sinks=(f"kafka:{bootstrap}/out",),
            folder=str(folder),
            workers=1,
            processes=1,
            coordinators=1,
            partitions=1,
            free_ports=True,
        )
    )
    said: list[str] = []
    running = [Process(one, lambda name, line: said.append(f"{name} | {line}")) for one in planned]
    lives = [asyncio.ensure_future(one.live()) for one in running]
    given_s: list[float] = []
    writing: asyncio.Task[None] | None = None
    late_ms = {}
    try:
        control = LiveControl("")
        world = live_world(str(folder), control=control)
        async with AsyncExitStack() as stack:
            find = found_by(control, coordinators_of(planned).split(","), None)
            observer = await _observer(stack, Observer(world, find))
            for uncommitted in (True, False):
                seen = await observer.follow("out", WITHIN_S, uncommitted=uncommitted)
                async with asyncio.timeout(WITHIN_S):
                    await seen.whole()
                writing = writing or asyncio.create_task(
                    write_at(bootstrap, "trades", RATE, STEP_NS, given_s)
                )
                late_ms[uncommitted] = await _late_ms(seen, given_s)
                observer.leave("out", uncommitted=uncommitted)
        return late_ms
    except (AssertionError, TimeoutError) as error:
        raise AssertionError("\n".join([str(error), *said[-30:]])) from error
    finally:
        if writing is not None:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        for one in running:
            one.end(signal.SIGKILL)
        await asyncio.gather(*lives, return_exceptions=True)


async def _observer(stack: AsyncExitStack, observer: Observer) -> Observer:
    """Wait until a coordinator answers."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            with suppress(ConnectionError):
                return await stack.enter_async_context(observer)
            await asyncio.sleep(0.2)


async def _late_ms(seen: OutputSubscription, given_s: list[float]) -> list[float]:
    """Return how late each record was, once all is running."""
    ends_s = time.monotonic() + SETTLE_S + LOAD_S
    late_ms: list[float] = []
    at = sum(seen.shown().cuts[0].cut.values())
    while (left_s := ends_s - time.monotonic()) > 0:
        changes = await seen.changes(left_s)
        now_s = time.monotonic()
        for change in changes:
            (reached,) = change.position.cut.values()
            if ends_s - now_s < LOAD_S:
                late_ms += [(now_s - given_s[n // EACH]) * 1000 for n in range(at, reached)]
            at = reached
    assert late_ms, "nothing came under load"
    return late_ms
