"""Resident tasks: partitions that stay in this executor process between micro-batches.

A micro-batch without a running task starts one from the store. The task ends with its process, or
after another process has taken the partition over. It is an ordinary active task, so nothing is
lost.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ripple.connectors.commit_group import looked_at
from ripple.connectors.connector import Part
from ripple.core.errors import RippleError
from ripple.core.events import Restored, StoreFailed
from ripple.model.window import watermark
from ripple.spark.streaming.sliced import Sliced
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.fenced import FencedError
from ripple.storage.log import StaleEpochError
from ripple.storage.store import RetryingStore
from ripple.storage.store.opening import open_store
from ripple.task.durable_task import DurableTask
from ripple.task.owned_state import Ownership
from ripple.task.spec import TaskContext, TaskSpec
from ripple.world import live_world
from ripple.world.together import called_off

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ripple.core.cut import Cut
    from ripple.core.events import Event
    from ripple.spark.streaming.turn import Turn

_T = TypeVar("_T")
_Key: TypeAlias = tuple[str, int]  # of a query and a partition

CLAIMS_MAX = 16
END_S = 30.0
"""The time for a partition to end here after a takeover elsewhere."""


class Resident:
    """The partitions of one process, on an event loop in its own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lives: dict[_Key, _ResidentTask] = {}
        self._locks: dict[_Key, asyncio.Lock] = {}
        threading.Thread(target=self._loop.run_forever, name="ripple-tasks", daemon=True).start()

    def bring(self, turn: Turn) -> dict[str, Any]:
        """Advance a partition to the cut of a turn; return the report."""
        return self.run(self._bring(turn))

    def drop(self, turn: Turn) -> None:
        """End a partition that was taken over elsewhere, if it is here, before its next effect."""
        self.run(self._drop((turn.hint_receiver.token, turn.partition)))

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the event loop from another thread; return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def advance(self, token: str, partition: int, stop: Cut) -> dict[str, Any] | None:
        """Advance a partition of a query to a cut if it is here; else return None."""
        key = (token, partition)
        async with self._locked(key):
            return await self._slice(key, stop) if key in self._lives else None

    async def _bring(self, turn: Turn) -> dict[str, Any]:
        key = (turn.hint_receiver.token, turn.partition)
        async with self._locked(key):
            if key not in self._lives:
                self._lives[key] = await _begun(turn)
            return await self._slice(key, turn.stop)

    async def _slice(self, key: _Key, stop: Cut) -> dict[str, Any]:
        try:
            return await self._lives[key].bring(stop)
        except BaseException:
            await self._drop(key)
            raise

    async def _drop(self, key: _Key) -> None:
        lived = self._lives.pop(key, None)
        if lived is not None:
            with suppress(TimeoutError):  # a hung task is abandoned: it is fenced
                await asyncio.wait_for(lived.end(), END_S)

    def _locked(self, key: _Key) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())  # two attempts may run at once


@cache
def here() -> Resident:
    """Return the resident partitions of this process."""
    return Resident()


async def _begun(turn: Turn) -> _ResidentTask:
    """Take a partition over, under a new highest epoch. Raises as a task does."""
    for attempt in range(CLAIMS_MAX):
        lived = _ResidentTask(turn)
        try:
            await lived.begin(attempt)
            return lived
        except (FencedError, StaleEpochError) as error:
            refused = error
            await lived.end()
        except BaseException:
            await lived.end()
            raise
    raise refused


class _ResidentTask:
    """One task of a partition, which advances when micro-batches request it."""

    def __init__(self, turn: Turn) -> None:
        stream = turn.stream
        self._stream, self._partition = stream, turn.partition
        self._plan = stream.parcel.plan()
        part = None if stream.partitions == 1 else Part(turn.partition, stream.partitions)
        self._inputs = Sliced(stream.inputs(self._plan, part), turn.stop)
        self._world = live_world(".")  # nothing is written there: everything is in the store
        self._closing = AsyncExitStack()
        self._restored: Restored | None = None
        self._failed_to_store = ""
        self._reported = (0, 0)  # events and rows: a task begins to read before the first request
        self._epoch = 0
        self._task: asyncio.Task[Any] | None = None

    async def begin(self, attempt: int) -> None:
        """Restore the state, and start. attempt: the number of failed claims."""
        stream, world = self._stream, self._world
        bare = await self._closing.enter_async_context(open_store(stream.store))
        store = RetryingStore(bare, world.clock, world.random)
        checkpoints = Checkpoints(
            store,
            self._plan.name,
            self._partition,
            executor=world.executor,
            guards=world.guards,
        )
        newest = await checkpoints.manifest.newest()
        last = newest.entry.content.epoch if newest.entry is not None else 0
        self._epoch = max(last, newest.newest_number, await self._known()) + 1 + attempt
        outputs = stream.outputs(self._plan, self._partition, self._epoch, world.executor)
        divisions = stream.divisions(self._plan)
        self._life = DurableTask(
            TaskSpec(self._plan, self._inputs, outputs, divisions=divisions),
            checkpoints,
            world,
            TaskContext(settings=stream.settings(), emit=self._on_event),
            Ownership(epoch=self._epoch, holder="a task of ripple spark run"),
        )
        self._task = asyncio.create_task(self._life.run())
        while self._restored is None:
            await self._moment()

    async def _known(self) -> int:
        """Return the highest epoch in the outputs: the store may have been lost."""
        outputs = self._stream.outputs(self._plan, self._partition, 1, self._world.executor)
        try:
            return await looked_at(outputs, None)
        finally:
            await outputs.close()

    async def bring(self, stop: Cut) -> dict[str, Any]:
        """Advance to a cut, commit there, and store a checkpoint."""
        self._inputs.go_to(stop)
        self._failed_to_store = ""
        while not self._inputs.is_at_stop:
            await self._moment()
        self._life.ask_for_checkpoint()
        while self._life.kept.is_asked or not self._life.kept.is_settled:
            await self._moment()
        engine, restored, report = self._life.engine, self._restored, self._life.report
        self._restored = None
        before, self._reported = self._reported, (report.events, report.rows_out)
        mark_ns = engine.watermark_ns
        return {
            "partition": self._partition,
            "epoch": self._epoch,
            "cut": dict(engine.cut),
            "events": report.events - before[0],
            "rows_out": report.rows_out - before[1],
            "digests": dict(engine.digests),
            "watermark_ns": mark_ns,
            "lag_ns": None
            if mark_ns in (watermark.NONE, watermark.END)
            else self._world.clock.now_ns() - mark_ns,
            "counters": engine.counters.as_dict(),
            "restored": None
            if restored is None
            else f"{restored.checkpoint or 'the beginning'}, {restored.events} replayed",
            "not_stored": self._failed_to_store,
        }

    async def end(self) -> None:
        """Stop before the next effect, and release everything."""
        task, self._task = self._task, None
        if task is not None:
            await called_off(task)
        await self._closing.aclose()

    async def _moment(self) -> None:
        """Wait a moment; raise the task's error."""
        task = self._task
        if task is not None:
            await asyncio.wait([task], timeout=0.002)
        if task is None or self._task is not task or task.done():
            if task is not None and task.done() and not task.cancelled():
                task.result()
            raise RippleError(f"partition {self._partition} has ended here")

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Restored):
            self._restored = event
        elif isinstance(event, StoreFailed):
            self._failed_to_store = event.error
