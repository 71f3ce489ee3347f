"""Runs beside an event loop: in a thread, so that nothing blocks the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterable, Iterator
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.connectors.handover import LiveItems
from ripple.connectors.memory import ROWS_AT_ONCE, rows_in
from ripple.connectors.python_sinks import CallingSink
from ripple.connectors.stream import Stream
from ripple.core.arguments import need_function
from ripple.core.calls import called
from ripple.core.errors import InputError, PlanError
from ripple.model.schema.python_rows import python_rows
from ripple.task.arguments import plan_of, sinks_of, sources_of
from ripple.task.blocking import GRACE_S, in_own_loop
from ripple.task.ended import Ended
from ripple.task.loop_items import LoopCalls, LoopItems, loop_sink
from ripple.task.one_shot_run import run_once
from ripple.task.run import run
from ripple.task.task import Task

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import pyarrow as pa

    from ripple.connectors.contract import Commit
    from ripple.engine.machine import Engine
    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan
    from ripple.task.report import Report

BATCHES_AHEAD = 16
_ROWS_PER_TURN = 100


class Change(NamedTuple):
    """A row of an output that was set or removed.

    op: ``"set"`` or ``"remove"``; of an output of events always ``"set"``. row: the fields by name;
    a removed row has None for the fields outside of the key.
    """

    output: str
    op: str
    row: dict[str, Any]


@called("rp.arun", "pipeline")
async def arun(pipeline: Pipeline | Plan, *, source: Any, sink: Any, **arguments: Any) -> Report:
    """Run a pipeline as ``rp.run`` does, in a thread beside the running event loop.

    Sources may also be async iterables, and an ``asyncio.Queue``, in which None is the end; sinks
    may be async functions, objects with an async ``write``, and an ``asyncio.Queue`` of rows. These
    are used in the running loop, and wait there; all else is called in the thread, ``on_batch``
    too. arguments: as for ``rp.run``.

    A cancellation ends a durable run in good order. It gives up a one-shot run as an error does:
    files are as they were. Raises as ``rp.run`` does.
    """
    plan = plan_of(pipeline)
    ended = await _Beside(plan, source, sink, arguments).run()
    return ended.warn(stacklevel=2)


async def changes(
    pipeline: Pipeline | Plan, source: Any, *, output: str | None = None, **arguments: Any
) -> AsyncGenerator[Change, None]:
    """Run a pipeline as ``rp.arun`` does, and yield its changes one by one as they come.

    source: as ``rp.arun`` takes it. output: the name of the only one to yield; all are by default.
    Some batches of changes are ahead of the loop at most. Leaving the loop ends the run as a
    cancellation does: a checkpoint then has the changes that were ahead, which no loop gets.
    arguments: as for ``rp.run``, without ``sink``. Raises as ``rp.run`` does.
    """
    plan = plan_of(pipeline)
    ready: asyncio.Queue[tuple[str, list[dict[str, Any]]] | None] = asyncio.Queue()
    room = asyncio.Semaphore(BATCHES_AHEAD)
    is_left = False

    async def hand_over(name: str, rows: list[dict[str, Any]]) -> None:
        if not is_left:
            await room.acquire()
            ready.put_nowait((name, rows))

    def sink_of(one: Output, loop: asyncio.AbstractEventLoop) -> CallingSink:
        def write(batch: pa.RecordBatch, _: Commit) -> None:
            handing = hand_over(one.name, list(python_rows(batch)))
            asyncio.run_coroutine_threadsafe(handing, loop).result()

        return CallingSink("rp.changes", one, write)

    outputs = plan.outputs if output is None else (plan.output(output),)
    loop = asyncio.get_running_loop()
    sinks = {one.name: sink_of(one, loop) for one in outputs}
    running = asyncio.create_task(_Beside(plan, source, sinks, arguments).run())
    running.add_done_callback(lambda _: ready.put_nowait(None))
    try:
        while (found := await ready.get()) is not None:
            room.release()
            name, rows = found
            for number, row in enumerate(rows, 1):
                yield Change(name, row.pop("op", "set"), row)
                if number % _ROWS_PER_TURN == 0:
                    await asyncio.sleep(0)
        ended = await running
        ended.warn(stacklevel=2)
    finally:
        is_left = True
        for _ in outputs:
            room.release()  # else a write may wait for it
        running.cancel()
        await asyncio.wait([running])


class _StoppedError(InputError):
    """Ends a one-shot run that its caller has cancelled."""


class _Beside:
    """A run in a thread, and its sources and sinks in the loop."""

    def __init__(self, plan: Plan, source: Any, sink: Any, arguments: dict[str, Any]) -> None:
        """Take the arguments of ``arun``; raises as it does."""
        if "sink" in arguments:
            raise PlanError("rp.changes has no argument 'sink': write await rp.arun(...)")
        self._plan = plan
        self._loop = asyncio.get_running_loop()
        self._is_cancelled = False
        self._of_loop: list[LoopItems] = []
        self._live: list[LiveItems[Any]] = []
        self._streams: list[Stream] = []
        self._calls = LoopCalls()
        sources = sources_of(plan, source)
        sinks = {
            name: loop_sink(one, plan.output(name), self._calls) or one
            for name, one in sinks_of(plan, sink).items()
        }
        self._task: Task | None = None
        if arguments.get("checkpoint_dir") is not None:
            self._task = Task(plan, source=sources, sink=sinks, **arguments)
            return
        sources = {name: self._source(one) for name, one in sources.items()}
        _check_plain(arguments)
        self._on_batch = arguments.get("on_batch")
        if self._on_batch is not None:
            need_function("on_batch", self._on_batch)
        self._arguments = {**arguments, "source": sources, "sink": sinks, "on_batch": self._watch}
        self._arguments.pop("checkpoint_dir", None)

    def _source(self, given: Any) -> Any:
        """Return a source for the thread."""
        if isinstance(given, Stream):
            self._streams.append(given)
            return given
        if isinstance(given, (AsyncIterable, asyncio.Queue)):
            self._of_loop.append(LoopItems(given))
            given = iter(self._of_loop[-1])
        if not isinstance(given, Iterator) or hasattr(given, "__arrow_c_stream__"):
            return given
        self._live.append(LiveItems(given, ROWS_AT_ONCE, rows_in))
        return self._live[-1]

    async def run(self) -> Ended:
        """Run to the end; raises as ``arun`` does."""
        ended: asyncio.Future[Ended] = self._loop.create_future()
        threading.Thread(target=self._act, args=(ended,), name="rp.arun", daemon=True).start()
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            self._cancel()
            await asyncio.wait([ended], timeout=GRACE_S)
            if self._task is not None and not ended.done():
                self._calls.give_up()  # a sink without a reader
                await asyncio.wait([ended])
            if ended.done():
                ended.exception()  # looked at, or asyncio warns of it
            raise
        finally:
            for one in self._of_loop:
                await one.close()

    def _cancel(self) -> None:
        """Let the thread end: a durable run in good order, another one with an error."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.stop()
            return
        self._calls.give_up()
        for items in self._live:
            items.end()
        for stream in self._streams:
            stream.close()

    # --- in the thread ---

    def _act(self, ended: asyncio.Future[Ended]) -> None:
        result, error = None, None
        try:
            result = self._run()
        except BaseException as raised:  # of any kind: the caller may not wait for ever
            error = raised

        def tell() -> None:
            if ended.cancelled():
                return
            if result is not None:
                ended.set_result(result)
            else:
                ended.set_exception(error or RuntimeError("the run had no result"))

        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(tell)

    def _run(self) -> Ended:
        if self._task is None:
            return run_once(self._plan, **self._arguments)
        task = self._task

        async def run_it() -> Report:
            async with task:
                return await task.run()

        return Ended(self._plan, in_own_loop(run_it, "rp.arun"))

    def _watch(self, engine: Engine, report: Report) -> None:
        if self._is_cancelled:
            raise _StoppedError("the run was cancelled")
        if self._on_batch is not None:
            self._on_batch(engine, report)


def _check_plain(arguments: Mapping[str, Any]) -> None:
    """Raise for arguments that a one-shot run does not have."""
    for name in arguments:
        if name not in signature(run).parameters:
            raise PlanError(f"rp.arun has no argument {name!r}: it takes those of rp.run")
        if name not in signature(run_once).parameters and name != "checkpoint_dir":
            raise InputError(f"{name} needs checkpoint_dir: a one-shot run reads a source once")
