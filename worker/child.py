"""One engine process of a worker: a loop, its partitions, and a pipe to the supervisor.

It computes; whatever takes long here makes nobody look dead, for the supervisor is another process.
It ends when it is told to, or when the supervisor is gone, whose partitions others are given.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from ripple.errors import RippleError
from ripple.events import PartitionFailed
from ripple.partition.settings import Settings
from ripple.pipeline_file import load_plan
from ripple.store import DiskStore, RetryingStore
from ripple.telling import line_of
from ripple.world import LiveClock, LiveDisk, LiveRandom, live_world
from worker.ends import Places
from worker.input_partition import Site
from worker.pipe import Pipe
from worker.runtime import Runtime
from worker.serving import serve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.events import Event

DUMP_SIGNAL = signal.SIGUSR1


def main(given: list[str]) -> None:
    """Be a child of the supervisor at the other end of a socket, whose number is given."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the supervisor says when to end
    faulthandler.enable()
    faulthandler.register(DUMP_SIGNAL, all_threads=True)
    pipe = Pipe(socket.socket(fileno=int(given[0])))
    code = asyncio.run(_serve(pipe))
    sys.stderr.flush()
    os._exit(code)  # threads that hang must not hold it up


async def _serve(pipe: Pipe) -> int:
    begin = await pipe.read()
    if begin is None:
        return 1
    process = str(begin["process"])
    try:
        runtime = _runtime(begin, process)
    except (RippleError, OSError) as error:
        _say(process, f"cannot work: {error}")
        return 1
    return await serve(pipe, runtime, LiveClock(), partial(_say, process))


def _runtime(begin: Mapping[str, Any], process: str) -> Runtime:
    plan = load_plan(begin["pipeline"])
    settings = Settings(**begin["settings"])
    store = DiskStore(LiveDisk(begin["store"]), LiveRandom())
    world = live_world(begin["store"], store=store)
    ends = Places(
        plan,
        begin["source"],
        begin["sinks"],
        batch_rows=settings.batch_rows,
        executor=world.executor,
    )

    def tell(partition: int, event: Event) -> None:
        line = line_of(event)
        if line is not None:
            is_named = isinstance(event, PartitionFailed)
            _say(process, line if is_named else f"partition {partition}: {line}")

    def site(partitions: int) -> Site:
        return Site(
            world,
            plan,
            RetryingStore(store, world.clock, world.random),
            ends,
            partitions,
            settings,
            tell,
            f"worker {process}, process {os.getpid()} on {os.uname().nodename}",
        )

    return Runtime(process, site, load=_Load())


class _Load:
    """How much of a processor this process has used since it was asked last."""

    def __init__(self) -> None:
        self._last = (time.monotonic(), time.process_time())

    def __call__(self) -> float:
        before, self._last = self._last, (time.monotonic(), time.process_time())
        passed, used = self._last[0] - before[0], self._last[1] - before[1]
        return round(min(1.0, used / passed), 3) if passed > 0 else 0.0


def _say(process: str, line: str) -> None:
    now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
    text = f"{now.replace('+00:00', 'Z')} {process}: {' '.join(line.split())}\n"
    with suppress(OSError):
        os.write(2, text.encode(errors="backslashreplace"))


if __name__ == "__main__":
    main(sys.argv[1:])
