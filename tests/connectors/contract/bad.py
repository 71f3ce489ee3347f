"""Connectors that are right, and those that break one rule each: a test of the rules."""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from ripple.connectors.connector import Connector, Reading, Use, Writing
from ripple.connectors.contract import Commit
from ripple.connectors.cutting import recut
from ripple.connectors.inputs import Signal
from ripple.connectors.validation import screened
from ripple.core.cut import Cut
from ripple.core.errors import InputAwayError, InputError, OutputError
from ripple.model.batch import Batch, Rejected

Row = dict[str, Any]
BLOCK = 16
KEPT: list[Any] = []
"""What bad connectors leave behind."""


def put(folder: Path, rows: list[Row]) -> str:
    """Rows as lines of JSON."""
    path = folder / "ticks"
    with path.open("a") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    return str(path)


def cut_back(folder: Path) -> None:
    """The first lines stay, and others come behind them."""
    path = folder / "ticks"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:5], *lines[6:], *lines]))


@contextmanager
def away(folder: Path) -> Iterator[None]:
    """The file has another name for a while."""
    path = folder / "ticks"
    path.rename(folder / "away")
    yield
    (folder / "away").rename(path)


CHANGES = {"cut back": cut_back}


class GoodSource:
    """Lines of JSON, some at a time."""

    def __init__(self, path: str, reading: Reading) -> None:
        self.name = reading.name
        self._path, self._reading = path, reading
        self._open: list[Iterator[Batch]] = []

    def rows(self) -> Iterator[list[Row]]:
        with open(self._path) as file:
            block = []
            for line in file:
                block.append(json.loads(line))
                if len(block) == BLOCK:
                    yield block
                    block = []
            yield block

    def blocks(self) -> Iterator[Batch]:
        offset = 0
        for rows in self.rows():
            yield self.block(rows, offset)
            offset += len(rows)

    def block(self, rows: list[Row], offset: int) -> Batch:
        schema = self._reading.shape.arrow_schema()
        nullable = pa.schema([field.with_nullable(True) for field in schema])
        return screened(pa.RecordBatch.from_pylist(rows, nullable), self._reading.shape, offset)

    def cut(self, from_offset: int) -> Iterator[Batch]:
        return recut(self.blocks(), self._reading.batch_rows, from_offset)

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        entries = self.cut(from_offset)
        self._open.append(entries)
        return entries

    def close(self) -> None:
        for one in self._open:
            one.close()  # type: ignore[attr-defined]  # it is a generator
        self._open.clear()


class ForgetsOffset(GoodSource):
    """Reads from the beginning of the block in which an offset is."""

    def cut(self, from_offset: int) -> Iterator[Batch]:
        return super().cut(from_offset - from_offset % 10)


class SwapsRows(GoodSource):
    """Gives the rows of whole blocks in another order."""

    def rows(self) -> Iterator[list[Row]]:
        return (block[::-1] if len(block) == BLOCK else block for block in super().rows())


class DependsOnBatch(GoodSource):
    """What a record says depends on how long batches are."""

    def cut(self, from_offset: int) -> Iterator[Batch]:
        for batch in super().cut(from_offset):
            if self._reading.batch_rows == 1:
                at = batch.records.schema.get_field_index("size")
                none = pa.nulls(batch.records.num_rows, pa.int64())
                rows = batch.records.set_column(at, batch.records.schema.field(at), none)
                yield Batch(rows, batch.next_offset, batch.rejected)
            else:
                yield batch


class EndsAnywhere(GoodSource):
    """Counts batches from where reading began in the file, four records too long."""

    def cut(self, from_offset: int) -> Iterator[Batch]:
        return recut(self.blocks(), self._reading.batch_rows + 4, from_offset)


class KeepsFiles(GoodSource):
    """Does not close what it has opened."""

    def rows(self) -> Iterator[list[Row]]:
        KEPT.append(open(self._path))  # noqa: SIM115 - it is bad
        return super().rows()


class RefusesWithoutReason(GoodSource):
    """Does not say why a record was refused."""

    def block(self, rows: list[Row], offset: int) -> Batch:
        batch = super().block(rows, offset)
        bad = tuple(Rejected(one.offset, None, "", one.raw) for one in batch.rejected)
        return Batch(batch.records, batch.next_offset, bad)


class ReadsAll(GoodSource):
    """Reads everything before it gives anything."""

    def rows(self) -> Iterator[list[Row]]:
        yield from list(super().rows())


SOURCES = {
    ForgetsOffset: "reading_from_any_offset_equals_the_first_read",
    SwapsRows: "every_record_comes_once_and_in_order",
    DependsOnBatch: "size_of_batches_changes_nothing",
    EndsAnywhere: "batches_end_at_multiples_of_their_size",
    KeepsFiles: "closing_at_any_time_leaves_nothing",
    RefusesWithoutReason: "bad_records_are_refused_one_by_one",
    ReadsAll: "read_ahead_is_bounded",
}


class GoodInputs:
    """The lines of a file, which may grow."""

    def __init__(self, path: str, reading: Reading) -> None:
        import asyncio

        self._path, self._reading = path, reading
        self._source = GoodSource(path, reading)
        self._name = reading.name
        self._woken = asyncio.Event()
        self._entries: Iterator[Batch] = iter(())
        self._stop: int | None = None
        self._seen: dict[int, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return (self._name,)

    def count(self) -> int:
        try:
            with open(self._path) as file:
                return sum(1 for _ in file)
        except FileNotFoundError as error:
            raise InputAwayError(f"there is no {self._path}") from error

    async def bounds(self) -> tuple[Cut, Cut]:
        return {self._name: 0}, {self._name: self.count()}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        offset, known = cut[self._name], identities.get(self._name, "")
        if offset > self.count():
            raise InputError(f"{self._path} does not reach {cut}")
        self._compare(known, offset)
        if known:
            self._seen[offset] = known

    def _compare(self, known: str, offset: int) -> None:
        if known and known != self._digest(offset):
            raise InputError(f"{self._path} is another file")

    def _digest(self, offset: int) -> str:
        """That of the first line and of all lines before an offset."""
        with open(self._path) as file:
            lines = [line.encode() for line in islice(file, offset)]
        return f"{zlib.crc32(b''.join(lines[:1])):08x} {zlib.crc32(b''.join(lines)):08x}"

    async def identities(self, cut: Cut) -> dict[str, str]:
        return {self._name: self._seen.get(cut[self._name], "")}

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        self._rows = rows
        self._stop = None if stop is None else stop[self._name]
        self._entries = self._read(cut[self._name], rows)

    def _read(self, offset: int, rows: int) -> Iterator[Batch]:
        return recut(self._source.blocks(), rows, offset)

    def next(self, cut: Cut) -> tuple[str, Batch] | Signal:
        if self._stop is not None and cut[self._name] >= self._stop:
            return Signal.ENDED
        if self.count() < cut[self._name]:
            raise InputError(f"{self._path} does not reach {cut}")
        self._compare(self._seen.get(cut[self._name], ""), cut[self._name])
        entry = next(self._entries, None)
        if entry is None:
            if not self._reading.follow:
                return Signal.ENDED
            if self.count() <= cut[self._name]:
                return Signal.WAITING
            self._entries = self._read(cut[self._name], self._rows)
            entry = next(self._entries)
        if self._stop is not None and entry.next_offset > self._stop:
            entry = entry.split_at(self._stop)[0]
        self._seen[entry.next_offset] = self._digest(entry.next_offset)
        return self._name, entry

    async def more(self) -> None:
        import asyncio

        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), 0.1)
        self._woken.clear()

    def wake(self) -> None:
        self._woken.set()

    async def sync(self) -> None:
        pass

    async def close(self) -> None:
        if hasattr(self._entries, "close"):
            self._entries.close()


class SwapsInputRows(GoodInputs):
    def __init__(self, path: str, reading: Reading) -> None:
        super().__init__(path, reading)
        self._source = SwapsRows(path, reading)


class LiesAboutEnd(GoodInputs):
    async def bounds(self) -> tuple[Cut, Cut]:
        return {self._name: 0}, {self._name: self.count() + 1}


class OpensEarly(GoodInputs):
    """Goes back to a multiple of ten, unless it is at an end, and calls that the cut."""

    def _read(self, offset: int, rows: int) -> Iterator[Batch]:
        if offset % 10 != 5:
            return super()._read(offset, rows)
        return (
            Batch(one.records, one.next_offset, one.rejected[:0])
            for one in super()._read(offset, rows)
        )


class AnyBatchRows(GoodInputs):
    def _read(self, offset: int, rows: int) -> Iterator[Batch]:
        return super()._read(offset, rows + 4 if rows == 10 else rows)


class GoesPastStop(GoodInputs):
    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        await super().open(cut, rows, None if stop is None else {self._name: 10**9})


class EndsWhenFollowed(GoodInputs):
    def next(self, cut: Cut) -> tuple[str, Batch] | Signal:
        said = super().next(cut)
        return Signal.ENDED if said is Signal.WAITING else said


class TakesAnyCut(GoodInputs):
    """Does not look whether it is as long as what was read."""

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        await super().check({self._name: min(cut[self._name], self.count())}, identities)


class ComparesFirstLine(GoodInputs):
    """Takes what begins as what was read, when it is opened."""

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        await super().check(cut, {})
        known = identities.get(self._name, "")
        if known and known.split()[0] != self._digest(1).split()[0]:
            raise InputError(f"{self._path} is another file")


class ReadsOn(GoodInputs):
    """Checks nothing while it reads."""

    def _compare(self, known: str, offset: int) -> None:
        if self._is_checking:
            super()._compare(known, offset)

    _is_checking = False

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        self._is_checking = True
        await super().check(cut, identities)


class EndsWhenAway(GoodInputs):
    """Takes a file that is away for one that will not come back."""

    def count(self) -> int:
        try:
            return super().count()
        except InputAwayError as error:
            raise InputError(str(error)) from error


class RefusesInputsWithoutReason(GoodInputs):
    def __init__(self, path: str, reading: Reading) -> None:
        super().__init__(path, reading)
        self._source = RefusesWithoutReason(path, reading)


class KeepsThread(GoodInputs):
    async def close(self) -> None:
        await super().close()
        told, kept = threading.Event(), ExitStack()
        kept.callback(told.set)
        KEPT.append(kept)
        threading.Thread(target=told.wait, daemon=True).start()


class ReadsAllInputs(GoodInputs):
    def __init__(self, path: str, reading: Reading) -> None:
        super().__init__(path, reading)
        self._source = ReadsAll(path, reading)


INPUTS = {
    SwapsInputRows: "inputs_give_every_record_once_and_in_order",
    LiesAboutEnd: "inputs_know_their_bounds",
    OpensEarly: "inputs_open_at_any_cut",
    AnyBatchRows: "inputs_read_alike_in_batches_of_any_size",
    GoesPastStop: "inputs_end_at_a_stop",
    EndsWhenFollowed: "inputs_end_or_wait",
    TakesAnyCut: "inputs_know_the_records_they_have_read",
    RefusesInputsWithoutReason: "inputs_refuse_bad_records_one_by_one",
    KeepsThread: "inputs_closed_at_any_time_leave_nothing",
    ReadsAllInputs: "inputs_hold_few_unread_records",
    ComparesFirstLine: "inputs_refuse_changed_records",
    ReadsOn: "inputs_refuse_records_changed_during_reading",
    EndsWhenAway: "inputs_resume_after_an_outage",
}


class GoodSink:
    """A JSON file, written anew by each commit: rows, the cut, and whose it is."""

    records_cut = True
    unfinished = None
    cut_off_bytes = 0
    promise = "each cut once: the file is replaced by each commit"

    def __init__(self, path: str, writing: Writing) -> None:
        self.name = path
        self._epoch = writing.epoch
        self._lock = f"{path}.lock"
        self._path = path
        self._pending: list[Row] = []
        self.check()
        if self._epoch is None:
            self.lock()
        self._state = {**self.stored(), "epoch": self._epoch or 0}
        self.store()
        self.committed = self.found()

    def found(self) -> Commit | None:
        cut = self._state["cut"]
        return None if cut is None else Commit(cut, self._state["digest"])

    def stored(self) -> dict[str, Any]:
        try:
            return json.loads(Path(self._path).read_text())  # type: ignore[no-any-return]
        except FileNotFoundError:
            return {"rows": [], "cut": None, "digest": "", "epoch": 0}

    def store(self) -> None:
        Path(f"{self._path}.new").write_text(json.dumps(self._state))
        os.replace(f"{self._path}.new", self._path)

    def check(self) -> None:
        if self.stored()["epoch"] > (self._epoch or 0):
            raise OutputError(f"{self._path} has a newer owner")

    def lock(self) -> None:
        import fcntl

        self._file = open(self._lock, "w")  # noqa: SIM115 - until it is closed
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise OutputError(f"{self._path}: another run writes it") from None

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        self._pending += changes.to_pylist()

    def look(self) -> None:
        if not Path(self._path).exists():
            raise OutputError(f"{self._path} was removed")

    def commit(self, reached: Commit) -> None:
        self.look()
        self.check()
        rows = [*self._state["rows"], *self._pending]
        self._state |= {"rows": rows, "cut": dict(reached.cut), "digest": reached.digest}
        self._pending = []
        self.store()
        self.committed = reached

    def close(self) -> None:
        if self._epoch is None:
            self._file.close()


def read(path: str) -> list[Row]:
    """The rows of the file."""
    try:
        return json.loads(Path(path).read_text())["rows"]  # type: ignore[no-any-return]
    except FileNotFoundError:
        return []


class WritesOtherRows(GoodSink):
    """Rounds numbers."""

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        rows = changes.to_pylist()
        self._pending += [{**row, "number": row["number"] // 2 * 2} for row in rows]


class PromisesNothing(GoodSink):
    promise = ""


class KeepsSinkFiles(GoodSink):
    def close(self) -> None:
        super().close()
        with suppress(FileNotFoundError):  # it was removed
            KEPT.append(open(self._path))  # noqa: SIM115 - it is bad


class ForgetsDigest(GoodSink):
    """Does not know, when it is opened again, which digest its table had."""

    def __init__(self, path: str, writing: Writing) -> None:
        super().__init__(path, writing)
        if self.committed is not None and self.committed.cut["ticks"] == 70:
            self.committed = Commit(self.committed.cut, "")


class WritesWhenClosed(GoodSink):
    """Keeps what is committed until it is closed."""

    def commit(self, reached: Commit) -> None:
        real, self.store = self.store, lambda: None  # type: ignore[method-assign]
        self.check()
        super().commit(reached)
        self.store = real  # type: ignore[method-assign]
        if self._epoch is not None:
            self.store()

    def close(self) -> None:
        super().close()
        if self._epoch is None and self.committed is not None:
            self.store()


class CommitsWhenClosed(GoodSink):
    """What was written counts once it is closed, and its cut does not."""

    def close(self) -> None:
        super().close()
        if self._pending and Path(self._path).exists():
            self._state["rows"] += self._pending
            self.store()


class ForgetsEmptyCuts(GoodSink):
    """Does nothing where no row has changed far and wide."""

    def commit(self, reached: Commit) -> None:
        if self._pending or reached.cut["ticks"] < 900:
            super().commit(reached)


class LetsTwoWrite(GoodSink):
    def lock(self) -> None:
        self._file = open(self._lock, "w")  # noqa: SIM115 - until it is closed


class IgnoresEpochs(GoodSink):
    """Looks at nobody's epoch."""

    def check(self) -> None:
        pass


class WritesOn(GoodSink):
    """Does not look whether its file is there still."""

    def look(self) -> None:
        pass


class TrustsItsNote(GoodSink):
    """Believes a note of what was committed, wherever the rows are."""

    def found(self) -> Commit | None:
        note = Path(f"{self._path}.note")
        if not note.exists():
            return super().found()
        return Commit(*json.loads(note.read_text()))

    def commit(self, reached: Commit) -> None:
        super().commit(reached)
        Path(f"{self._path}.note").write_text(json.dumps([dict(reached.cut), reached.digest]))


SINKS = {
    WritesOtherRows: "committed_rows_are_found",
    PromisesNothing: "promise_is_in_words",
    KeepsSinkFiles: "closing_at_any_time_leaves_nothing",
    ForgetsDigest: "restarts_resume_after_the_committed_cut",
    WritesWhenClosed: "a_killed_writer_leaves_each_cut_once",
    CommitsWhenClosed: "uncommitted_rows_are_superseded",
    ForgetsEmptyCuts: "a_commit_without_changes_is_remembered",
    LetsTwoWrite: "a_second_writer_is_refused",
    IgnoresEpochs: "a_replaced_owner_changes_nothing",
    WritesOn: "an_output_changed_during_writing_is_left",
    TrustsItsNote: "an_output_changed_between_runs_is_not_trusted",
}


class WholeFile(GoodSink):
    """A plain run's: what is committed, all or none."""

    records_cut = False
    promise = "appears whole or not at all"

    def commit(self, reached: Commit) -> None:
        super().commit(reached)
        self.committed = None

    def found(self) -> None:
        return None


class AppearsAtOnce(WholeFile):
    """Shows what was never committed."""

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        super().write(changes, reached)
        self._state["rows"] = self._pending
        self.store()


class AtLeastOnce(WholeFile):
    """Records no cut, and says so: what was written after a checkpoint comes again."""

    promise = "rows written since the last checkpoint may be there again"


class LosesSome(AtLeastOnce):
    """Forgets, once it is opened again, the last row that it has."""

    def stored(self) -> dict[str, Any]:
        found = super().stored()
        return {**found, "rows": found["rows"][:-1]}


def connector(kind: type, use: str) -> Connector:
    """A connector of one of these classes."""
    opens = f"{kind.__module__}:{kind.__name__}"
    promise = getattr(kind, "promise", "") or "whatever there is"
    epochs = kind.__name__ in ("GoodSink", *(one.__name__ for one in SINKS))
    how = {use: Use(opens, promise, has_epochs=epochs)}
    return Connector(scheme="bad", form="bad:FILE", **how)
