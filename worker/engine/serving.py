"""The loop of an engine process over its pipe: follows assignments and reports its health."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.control.assignment import ATTEMPTS_MAX
from ripple.control.rpc.mapping import RpcError
from worker.messages import FROM_ENGINE, TO_ENGINE, Assign, Inspect, Stop, Store, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.control.assignment import Line
    from ripple.control.telemetry.measures import Measures
    from ripple.world.ports import Clock
    from worker.engine.runtime import Runtime
    from worker.messages import ToEngine
    from worker.pipe import Channel

LOOK_S = 0.25
REPORT_EVERY = 2  # rounds between reports, unless a partition's health has changed
DROP_S = 2.0
SPENT_S = 10.0  # for neighbouring partitions to store checkpoints
MEASURES_EVERY = 4  # rounds


async def serve(
    pipe: Channel,
    runtime: Runtime,
    clock: Clock,
    say: Callable[[str], None],
    measures: Measures | None = None,
    *,
    lines: Callable[[], tuple[Line, ...]] = tuple,
) -> int:
    """Serve until told to stop, or until the supervisor is gone; return an exit code.

    measures: added to reports, for metrics; lines: too, recent warnings and errors of the log.
    """
    asked = asyncio.Event()
    reporting = asyncio.ensure_future(_report(pipe, runtime, clock, measures, asked, lines=lines))
    try:
        return await _obey(pipe, runtime, say, asked, reporting)
    finally:
        reporting.cancel()
        await asyncio.wait([reporting])


async def _obey(
    pipe: Channel,
    runtime: Runtime,
    say: Callable[[str], None],
    asked: asyncio.Event,
    reporting: asyncio.Task[int | None],
) -> int:
    stopping: asyncio.Task[None] | None = None
    reading = asyncio.ensure_future(pipe.read())
    try:
        while True:
            tasks = [reading, *([] if reporting.done() else [reporting])]
            tasks += [] if stopping is None else [stopping]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if reporting.done():
                spent = reporting.result()  # or a bug of ours: a silent process is taken for hung
                if spent is not None:
                    return await _end_spent(runtime, spent, say)
            if stopping is not None and stopping.done():
                stopping.result()
                return 0
            if not reading.done():
                continue
            message = reading.result()
            if message is None:
                say("the supervisor is gone")
                runtime.drop()
                with suppress(TimeoutError):
                    async with asyncio.timeout(DROP_S):
                        await runtime.ended()
                return 1
            reading = asyncio.ensure_future(pipe.read())
            stops = _take(message, runtime, say, asked)
            if stops and stopping is None:
                stopping = asyncio.ensure_future(runtime.stop())
    finally:
        reading.cancel()
        if stopping is not None:
            stopping.cancel()


async def _end_spent(runtime: Runtime, partition: int, say: Callable[[str], None]) -> int:
    """End the process, so that its next start is given its partitions by a new version."""
    say(
        f"partition {partition} has failed {ATTEMPTS_MAX} times, as often as one version may "
        "give it: the process ends, and the next one continues"
    )
    with suppress(TimeoutError):
        async with asyncio.timeout(SPENT_S):
            await runtime.stop()
    return 1


def _take(data: bytes, runtime: Runtime, say: Callable[[str], None], asked: asyncio.Event) -> bool:
    """Take a message; return whether the process is to stop."""
    try:
        message: ToEngine = TO_ENGINE.from_bytes(data)
    except RpcError as error:
        say(f"an assignment was not understood: {error}")
        return False
    match message:
        case Assign(assignment, run):
            runtime.assign(assignment, run)
        case Store():
            runtime.store()
        case Inspect():
            asked.set()
    return isinstance(message, Stop)


async def _report(
    pipe: Channel,
    runtime: Runtime,
    clock: Clock,
    measures: Measures | None,
    asked: asyncio.Event,
    *,
    lines: Callable[[], tuple[Line, ...]],
) -> int | None:
    """Report health; a report also proves that the loop runs. asked: include the live graphs.

    Returns a partition that this start of the process may not try again, if any.
    """
    turn, said = 0, None
    with suppress(ConnectionError):
        while True:
            standings = runtime.standings
            spent = next((number for number, one in standings.items() if one.is_spent), None)
            if spent is not None:
                return spent
            stand = [(key, s.is_live, s.behind, s.failure) for key, s in standings.items()]
            if turn % REPORT_EVERY == 0 or stand != said or asked.is_set():
                said = stand
                said_now = replace(runtime.report, lines=lines())
                message = report(said_now, standings, runtime.intake)
                if measures is not None and turn % MEASURES_EVERY == 0:
                    message = replace(message, measures=measures.samples(standings))
                if measures is not None and asked.is_set():
                    asked.clear()
                    inspected = list(measures.inspected(standings).items())
                    message = replace(message, inspected=inspected)
                await pipe.write(FROM_ENGINE.to_bytes(message))
            began_ns, turn = clock.monotonic_ns(), turn + 1
            await clock.sleep(LOOK_S)
            if measures is not None:
                measures.turned((clock.monotonic_ns() - began_ns) / 1e9 - LOOK_S)
    return None
