"""Group commit: one sync for the appends of many tasks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.storage.log.producers import Stamp
    from ripple.storage.log.writer import Appended, PartitionWriter
    from ripple.world.ports import Clock

LINGER_SECONDS = 0.002


class GroupCommit:
    """A writer shared by the tasks of one event loop; its topic has ``sync_appends=0``.

    The first append waits ``linger_seconds`` and then syncs for all appends made meanwhile. An
    append returns only when it is durable. If the sync fails, it fails for all of them, and each
    may have been stored or not: a retry with the same stamp, on a new writer, finds out.
    """

    def __init__(
        self, writer: PartitionWriter, clock: Clock, *, linger_seconds: float = LINGER_SECONDS
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._linger_seconds = linger_seconds
        self._coming: asyncio.Task[int] | None = None

    async def append(self, records: pa.RecordBatch, stamp: Stamp | None = None) -> Appended:
        """Append records and wait until they are durable; raises as PartitionWriter does."""
        appended = self._writer.append(records, stamp)
        if self._writer.durable_offset < appended.next_offset:
            if self._coming is None:
                self._coming = asyncio.ensure_future(self._sync())
            # The cancellation of one waiting task must not cancel the sync for the others.
            await asyncio.shield(self._coming)
        return appended

    async def _sync(self) -> int:
        await self._clock.sleep(self._linger_seconds)
        self._coming = None
        return self._writer.sync()
