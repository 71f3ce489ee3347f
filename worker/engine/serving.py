"""The loop of an engine process over its pipe: follows assignments and reports its health."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ripple.control.assignment import ATTEMPTS_MAX, AssignmentError
from worker import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.control.telemetry.measures import Measures
    from ripple.world.ports import Clock
    from worker.engine.runtime import Runtime
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
) -> int:
    """Serve until told to stop, or until the supervisor is gone; return an exit code.

    measures: added to reports, for metrics.
    """
    asked = asyncio.Event()
    reporting = asyncio.ensure_future(_report(pipe, runtime, clock, measures, asked))
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
            if message["say"] == "stop":
                stopping = stopping or asyncio.ensure_future(runtime.stop())
            else:
                _take(message, runtime, say, asked)
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


def _take(
    message: dict[str, Any], runtime: Runtime, say: Callable[[str], None], asked: asyncio.Event
) -> None:
    match message["say"]:
        case "assign":
            try:
                runtime.assign(*messages.assigned(message))
            except AssignmentError as error:
                say(f"an assignment was not understood: {error}")
        case "store":
            runtime.store()
        case "inspect":
            asked.set()


async def _report(
    pipe: Channel, runtime: Runtime, clock: Clock, measures: Measures | None, asked: asyncio.Event
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
                message = messages.report(runtime.report, standings, runtime.intake)
                if measures is not None and turn % MEASURES_EVERY == 0:
                    message["measures"] = measures.samples(standings).to_values()
                if measures is not None and asked.is_set():
                    asked.clear()
                    message["inspected"] = list(measures.inspected(standings).items())
                await pipe.write(message)
            began_ns, turn = clock.monotonic_ns(), turn + 1
            await clock.sleep(LOOK_S)
            if measures is not None:
                measures.turned((clock.monotonic_ns() - began_ns) / 1e9 - LOOK_S)
    return None
