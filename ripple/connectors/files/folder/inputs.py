"""Files as the input of a durable run, in the recorded order of taking."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.connectors.cutting import Cutter
from ripple.connectors.files.csv.dialect import divided
from ripple.connectors.files.folder.begun import BegunFile
from ripple.connectors.files.folder.discovery import Discovery
from ripple.connectors.files.folder.listing import DataFile, data_file, files_at, files_now
from ripple.connectors.files.folder.one_file import format_of
from ripple.connectors.files.folder.source import quotable
from ripple.connectors.files.folder.taken import (
    FileRecord,
    PassingRecord,
    TakenFile,
    number_at,
)
from ripple.connectors.files.remote.address import is_remote
from ripple.connectors.files.remote.contract import version_of
from ripple.connectors.files.version import FileGoneError, changed
from ripple.connectors.inputs import Signal
from ripple.connectors.reading_ahead import ReadAhead
from ripple.core.errors import InputError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.connectors.connector import Reading
    from ripple.connectors.files.version import Version
    from ripple.connectors.registry import Uri
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch

AHEAD_BYTES_MAX = 16 << 20
LOOK_S = 1.0
"""Between two polls for new files. A local file is taken when two polls find it unchanged."""
REMOTE_LOOK_S = 10.0
RECORDED_MAX = 100_000
_ANEW = (
    "Bring back a checkpoint, or start over with other outputs and another folder of checkpoints"
)


def open_inputs(path: str, reading: Reading) -> FileInputs:
    """Return the inputs of a folder or a pattern; raises InputError."""
    place, options = divided(path)
    if not reading.follow:
        files_at(place)  # a mistake shows before anything starts
    return FileInputs(place, options, reading)


def open_s3(path: str, reading: Reading) -> FileInputs:
    """Return the inputs of ``s3:`` and this; raises as ``open_inputs`` does."""
    return open_inputs(quotable(f"s3:{path}"), reading)


def open_https(path: str, reading: Reading) -> FileInputs:
    """Return the inputs of ``https:`` and this; raises as ``open_inputs`` does."""
    address = quotable(f"https:{path}")
    if reading.follow:
        raise InputError(
            f"cannot follow {address}: a web server does not tell which files are new: run without "
            "--follow, or follow a folder or s3://BUCKET/FOLDER"
        )
    return open_inputs(address, reading)


class FileInputs(ReadAhead):
    """Files of one format, one after the other, as one input; see Inputs.

    A file is recorded before it is read, with its length and its version: so the file log
    says which file has the record at an offset. Without ``follow`` the input ends after the present
    files; with it, the place is polled for new ones.

    Invariants: files are read in the order of the file log alone; one that differs from its entry
    is an error. ``_batches`` are the records before the reader's offset, not handed out yet.
    """

    def __init__(self, place: str, options: str, reading: Reading) -> None:
        """Look at nothing yet."""
        super().__init__()
        self.name = reading.name
        self._place, self._options, self._reading = place, options, reading
        self._executor = reading.executor
        self._record: FileRecord = PassingRecord()
        self._is_local = not is_remote(place)
        self._discovery = Discovery(is_whole=not (self._is_local and reading.follow))
        self._batches: deque[Batch] = deque()
        self._held_bytes = 0
        self._stop: int | None = None
        self._has_ended = False
        self._needed = 0
        """The oldest offset that a checkpoint may resume at."""

    # --- Inputs ---

    @property
    def names(self) -> tuple[str, ...]:
        """The only input."""
        return (self.name,)

    @property
    def recorded(self) -> tuple[str, ...]:
        """The names of the records that ``record_in`` gives; see RecordingInputs."""
        return (self.name,)

    def record_in(self, records: Mapping[str, FileRecord]) -> None:
        """Record in a place that outlives this process; see RecordingInputs."""
        self._record = records[self.name]

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return its beginning; its end is unknown."""
        return {self.name: 0}, {}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:  # noqa: ARG002 - Inputs'
        """Raise InputError unless the record has the files before ``cut``; see Inputs."""
        await self._record.finish()
        if cut[self.name] and not self._record.taken:
            raise InputError(
                f"the run has read {cut[self.name]} records of {self._place}, and the record of "
                "its files is gone: it lies with the checkpoints, so give the folder of "
                "checkpoints that the outputs were written with, or begin with other outputs"
            )

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return nothing: the file log has the files that were read."""
        return dict.fromkeys(cut, "")

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        await self.reading.stop()
        await self._record.finish()
        self._stop = None if stop is None else stop[self.name]
        self._batches.clear()
        self._held_bytes, self._has_ended = 0, False
        self.reading.start(lambda: self._read(cut[self.name], rows))

    def next(self, cut: Cut) -> tuple[str, Batch] | Signal:
        """Return the next batch; see Inputs."""
        if self._stop is not None and cut[self.name] >= self._stop:
            return Signal.ENDED
        if self._batches:
            batch = self._batches.popleft()
            self._held_bytes -= batch.records.nbytes
            self.reading.took()
            if self._stop is not None and batch.next_offset > self._stop:
                batch = batch.split_at(self._stop)[0]
            return self.name, batch
        if self._has_ended:
            return Signal.ENDED
        self.reading.check()
        return Signal.WAITING

    async def close(self) -> None:
        """Stop reading."""
        await self.reading.stop()

    def file_at(self, name: str, offset: int) -> str | None:
        """Return the file of a read record; see FiledInputs."""
        number = number_at(self._record.taken, offset)
        return (
            self._record.taken[number].path or None if name == self.name and number >= 0 else None
        )

    def stored(self, checkpoints: Sequence[tuple[Cut, Mapping[str, str]]]) -> None:
        """Let go of files that no checkpoint needs, once they are removed; see KeepingInputs."""
        self._needed = min((cut.get(self.name, 0) for cut, _ in checkpoints), default=0)

    # --- reading ---

    async def _read(self, offset: int, rows: int) -> None:
        cutter = Cutter(rows)
        number = number_at(self._record.taken, offset)
        if number < 0 and self._record.taken:
            raise InputError(
                f"{self._place} is needed from record {offset} on, and the files before record "
                f"{self._record.taken[0].first} were removed. {_ANEW}"
            )
        number, begun = max(number, 0), None
        while self._stop is None or offset < self._stop:
            taken = self._record.taken
            if number < len(taken):
                file, following = taken[number], taken[number + 1 : number + 2]
                end = file.first
                if file.path:
                    end = await self._read_file(file, begun, offset, cutter)
                    begun = None
                if end < offset and not following:
                    raise InputError(
                        f"{self._place} is needed from record {offset} on, and its "
                        f"recorded files end at {end}. {_ANEW}"
                    )
                if following and following[0].first != end:
                    raise InputError(
                        f"{file.path} ends at record {end}, and "
                        f"{following[0].path or 'the next entry'} begins at {following[0].first}: "
                        f"it has changed, or files between were removed and are needed again. "
                        f"{_ANEW}"
                    )
                offset = max(end, offset)
                number += 1
            elif (begun := await self._take(offset, cutter)) is not None:
                number = len(self._record.taken) - 1
            else:
                await self._hold(cutter.flush())
                await self._note_end(offset)
                if not self._reading.follow:
                    break
                await asyncio.sleep(LOOK_S if self._is_local else REMOTE_LOOK_S)
        await self._hold(cutter.flush())
        self._has_ended = True
        self.wake()

    async def _take(self, offset: int, cutter: Cutter) -> BegunFile | None:
        """Record the next file as beginning at an offset; return it, None if there is none.

        Raises for one that cannot be opened, or has an unreadable beginning: it is not recorded, so
        that it can be repaired or removed.
        """
        if not self._discovery.ready:
            listed = await self._executor.run(_listed, self._place)
            if self._reading.follow:
                await self._forget({file.path for file in listed})
            self._discovery.see(listed, self._record.taken)
        while (file := self._discovery.next()) is not None:
            begun, failure = None, None
            try:
                begun = await self._begin(file, offset)
            except (InputError, SchemaError) as error:
                failure = error
            if await self._executor.run(_version_now, file.path) == file.version:
                assert file.version is not None
                if failure is not None:
                    await self._hold(cutter.flush())  # the records before it count
                    raise failure
                if len(self._record.taken) >= RECORDED_MAX:
                    raise InputError(
                        f"{RECORDED_MAX:,} files were taken from {self._place}: remove the read "
                        "ones, and start the run again"
                    )
                await self._record.add(TakenFile(offset, file.path, *file.version))
                return begun
            if begun is not None:
                begun.close()
        return None

    async def _note_end(self, offset: int) -> None:
        """Record the end offset of the last file, so that a resume there does not read it."""
        taken = self._record.taken
        if taken and taken[-1].path:
            await self._record.add(TakenFile(offset, "", 0, ""))

    async def _forget(self, present: set[str]) -> None:
        """Forget removed files that no checkpoint needs."""
        taken = self._record.taken
        needed = max(number_at(taken, self._needed), 0)
        kept = [one for one in taken[:needed] if one.path in present]
        if len(kept) < needed:
            await self._record.keep([*kept, *taken[needed:]])

    async def _begin(self, file: DataFile, first: int) -> BegunFile:
        """Open a file, and read its beginning; raises as BegunFile."""
        reading = replace(self._reading, batch_rows=1 << 16)
        form = self._form(file)
        return await self._executor.run(BegunFile, form, reading, self._options, file, first)

    async def _read_file(
        self, file: TakenFile, begun: BegunFile | None, offset: int, cutter: Cutter
    ) -> int:
        """Read a file's records from an offset on; return the offset after them."""
        if begun is None:
            await self._check(file)
            begun = await self._begin(data_file(file.path), file.first)
        with closing(begun):
            some, end = begun.next, file.first
            while True:
                for block in some.blocks:
                    end = block.next_offset
                    if end > offset:
                        first = block.first_offset
                        left = block if first >= offset else block.split_at(offset)[1]
                        await self._hold(cutter.cut(left))
                if some.error is not None:
                    await self._hold(cutter.flush())
                    raise some.error
                if some.is_all:
                    break
                some = await self._executor.run(begun.read)
        await self._check(file)
        return end

    def _form(self, file: DataFile) -> Uri:
        earlier = [data_file(one.path) for one in self._record.taken[:1] if one.path]
        return format_of([*earlier, file])

    async def _check(self, file: TakenFile) -> None:
        """Raise InputError unless a file equals its entry."""
        now = await self._executor.run(version_of, file.path)
        if now != file.version:
            raise changed(file.path, file.version, now)

    async def _hold(self, batches: Iterator[Batch]) -> None:
        for batch in batches:
            self._batches.append(batch)
            self._held_bytes += batch.records.nbytes
            self.wake()
            while self._held_bytes > AHEAD_BYTES_MAX:
                await self.reading.room()


def _listed(place: str) -> list[DataFile]:
    """Return the present files, without those removed during the listing."""
    found = (
        file if file.version is not None else file._replace(version=_version_now(file.path))
        for file in files_now(place)
    )
    return [file for file in found if file.version is not None]


def _version_now(path: str) -> Version | None:
    """Return the version of a file, None if it is gone; raises as ``version_of``."""
    try:
        return version_of(path)
    except FileGoneError:
        return None
