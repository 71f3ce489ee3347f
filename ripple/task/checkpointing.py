"""Checkpoints made concurrently with the run: copied between batches, stored in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.core.cut import between
from ripple.core.events import Stored, StoreFailed, StoreHandedOver
from ripple.storage.fenced import FencedError
from ripple.world.errors import StoreError

if TYPE_CHECKING:
    from ripple.core.cut import Cut
    from ripple.core.events import EventListener
    from ripple.engine.machine.partition import Partition
    from ripple.engine.snapshots.saving import PendingSnapshot
    from ripple.storage.checkpoint import Checkpoint, Owner
    from ripple.world.ports import Executor


class CheckpointWriter:
    """At most one checkpoint at a time: being copied, then being stored by an asyncio task.

    A store that fails costs a checkpoint, not the run: StoreFailed is emitted, and the next one is
    tried when it is due. A fence that another owner has passed ends the run; unless that owner is
    the assigned successor and the outputs have fences of their own: then the run goes on without
    checkpoints until the successor has opened those, too. No other owner takes them over, and no
    checkpoint would be stored again.
    """

    def __init__(
        self,
        owner: Owner,
        rows: int,
        executor: Executor,
        emit: EventListener,
        wake: Callable[[], None],
        *,
        now_ns: Callable[[], int] = lambda: 0,
        outlives: Callable[[int], bool] = lambda _: False,
        stored: Callable[[tuple[Checkpoint, ...]], None] = lambda _: None,
    ) -> None:
        """Store for ``owner``, copying so many rows a step. wake: called when one is stored.

        now_ns: a clock, to measure how long checkpoints take. outlives: whether another fence ends
        the run, by the epoch of the checkpoints' new owner. stored: is given the valid checkpoints
        after each new one, newest first.
        """
        self._wake = wake
        self._stored = stored
        self._owner = owner
        self._rows = rows
        self._executor = executor
        self._emit = emit
        self._now_ns = now_ns
        self._began_ns = 0
        self._wanted: Cut = {}
        self._waits_ns: int | None = None  # since when none could be stored
        self._outlives = outlives
        self._is_superseded = False
        self._copying: PendingSnapshot | None = None
        self._task: asyncio.Task[Checkpoint] | None = None
        self._notes: Mapping[str, str] = {}
        self.last: Checkpoint | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a checkpoint is under way."""
        return self._copying is not None or self._task is not None

    @property
    def is_copying(self) -> bool:
        """Whether ``step`` has rows to copy."""
        return self._copying is not None

    def begin(self, engine: Partition, notes: Mapping[str, str]) -> None:
        """Begin a checkpoint of the present cut, which the sinks have committed.

        It holds only the changes since the last stored one, unless all of it is due. None
        is begun any more once another owner stores.
        """
        assert not self.is_busy
        if not self._is_superseded:
            self._began_ns = self._now_ns()
            self._wanted = engine.cut
            self._copying, self._notes = engine.begin_snapshot(self._owner.since), notes

    def step(self) -> None:
        """Copy some rows; note how the storing went. Raises FencedError. Between two batches."""
        if self._copying is not None and self._copying.step(self._rows):
            pending, self._copying = self._copying, None
            self._task = asyncio.create_task(self._store(pending, self._notes))
            self._task.add_done_callback(lambda _: self._wake())
        elif self._task is not None and self._task.done():
            self._finish(self._task)

    async def drain(self) -> None:
        """Complete the checkpoint in progress."""
        while self._copying is not None:
            self.step()
        if self._task is not None:
            await asyncio.wait([self._task])
            self._finish(self._task)

    async def abandon(self) -> None:
        """Give up the checkpoint in progress: the run has failed."""
        self._copying = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _store(self, pending: PendingSnapshot, notes: Mapping[str, str]) -> Checkpoint:
        # One at a time, see _task; what it copies is its own.
        snapshot = await self._executor.run(pending.finish)
        stored = await self._owner.write(replace(snapshot, notes={**snapshot.notes, **notes}))
        # There, too: to free much memory would hold the event loop up.
        await self._executor.run(pending.free)
        return stored

    def _finish(self, task: asyncio.Task[Checkpoint]) -> None:
        self._task = None
        try:
            self.last = task.result()
            self._waits_ns = None
            last, seconds = self.last, (self._now_ns() - self._began_ns) / 1e9
            self._emit(Stored(last.name, last.cut, last.length_bytes, seconds))
            self._stored(self._owner.present)
        except FencedError as error:
            if error.epoch is None or not self._outlives(error.epoch):
                raise
            self._is_superseded = True
            self._emit(StoreHandedOver())
        except (StoreError, OSError) as error:
            self._emit_failure(error)

    def _emit_failure(self, error: Exception) -> None:
        if self._waits_ns is None:
            self._waits_ns = self._began_ns
        seconds = (self._now_ns() - self._waits_ns) / 1e9
        last = self.last.cut if self.last else None
        self._emit(StoreFailed(last, str(error), seconds, between(last or {}, self._wanted)))
