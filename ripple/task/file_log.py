"""The log of the files that an input has taken, in the store of its run's checkpoints.

An entry is durable before a record of its file is read. Unlike markers and answers it is not a
separate input: it has the file of each offset of the input. An object holds files as
JSON, each as [first offset, path, length in bytes, version]; [offset, "", 0, ""] is an end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

from ripple.connectors.files.folder.taken import TakenFile, append
from ripple.core.errors import InputError
from ripple.core.events import EventListener, Remark
from ripple.task.input_log import InputLog
from ripple.world.errors import StoreError
from ripple.world.pauses import doubling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.storage.fenced import Added
    from ripple.world.ports import Clock, Guards, ObjectStore

PAUSE_S, PAUSE_S_MAX = 1.0, 30.0
# Beyond, one object takes the place of all.
OBJECTS_MAX = 256


class FileLog(InputLog):
    """The files that one input has taken; see InputLog, and FileRecord.

    Invariant: ``_pending`` is an entry whose put has no outcome yet; nothing is added before it.
    """

    _folder = "files"
    _entries = "files"
    _removed = "begin with another folder of checkpoints and outputs"

    def __init__(
        self,
        store: ObjectStore,
        pipeline: str,
        partition: int,
        name: str,
        *,
        guards: Guards,
        clock: Clock,
        emit: EventListener,
    ) -> None:
        """Touch nothing yet. name: of the input."""
        super().__init__(store, pipeline, partition, guards, of=f"{quote(name, safe='')}/")
        self._clock, self._emit = clock, emit
        self._taken: list[TakenFile] = []
        self._pending: TakenFile | None = None

    @property
    def first(self) -> int:
        """The number of the first file."""
        return 0

    @property
    def end(self) -> int:
        """The number of files."""
        return len(self._taken)

    @property
    def taken(self) -> Sequence[TakenFile]:
        """The files, in the order in which they were taken; see FileRecord."""
        return self._taken

    async def finish(self) -> None:
        """Complete a cancelled ``add``; see FileRecord."""
        if self._pending is not None:
            await self._put(self._pending)

    async def add(self, file: TakenFile) -> None:
        """Record the next file. Raises FencedError when another owner has begun."""
        assert self._pending is None, "an entry before it has no outcome yet"
        self._pending = file
        await self._put(file)
        if self._journal.objects > OBJECTS_MAX:
            await self.keep(self._taken)

    async def keep(self, taken: Sequence[TakenFile]) -> None:
        """Put one object with these files in the place of all; raises as ``add``."""
        kept = [*taken]
        await self._stored(_encoded(kept), is_whole=True)
        self._taken = kept

    async def _put(self, file: TakenFile) -> None:
        await self._stored(_encoded([file]), is_whole=False)
        self._pending = None
        append(self._taken, file)

    async def _stored(self, data: bytes, *, is_whole: bool) -> None:
        """Write until the store answers: the outcome of a failed attempt is unknown."""
        for pause_s in doubling(PAUSE_S, PAUSE_S_MAX):
            try:
                await self._journal.add(data, is_whole=is_whole)
                return
            except StoreError as error:
                why = f"the next file waits for the store, which records it first: {error}"
            self._emit(Remark(why))
            await self._clock.sleep(pause_s)

    def _take(self, added: list[Added]) -> None:
        if self._journal.damage:
            raise InputError(
                f"the record of taken files is damaged: {self._journal.damage[0]}. "
                "Restore that object, or begin with another folder of checkpoints and outputs"
            )
        self._taken = []
        for one in added:
            if one.is_whole:
                self._taken = []
            if one.data:
                for each in json.loads(one.data)["files"]:
                    append(self._taken, TakenFile(*each))


def _encoded(files: Sequence[TakenFile]) -> bytes:
    return json.dumps({"files": [[*one] for one in files]}, separators=(",", ":")).encode()
