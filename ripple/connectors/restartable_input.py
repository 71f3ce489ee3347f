"""A source of your own that a restarted run resumes: one function that yields records."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.buffered_input import BufferedInput
from ripple.connectors.formats.json import JsonValues
from ripple.core.errors import InputAwayError, InputError
from ripple.core.hashing import xxh64_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from ripple.connectors.connector import Reading
    from ripple.connectors.formats.contract import Values
    from ripple.core.cut import Cut

ROWS_AT_ONCE, BYTES_AT_ONCE = 1000, 1 << 20
LOOK_S = 0.2  # between two looks for more at the present end of a source
ANEW = "Name another --checkpoint-dir and other outputs to start over with the present data"


class _Mark(NamedTuple):
    """The offset of a record, and a hash of its document."""

    offset: int
    hash: int


class RestartableInput(BufferedInput[_Mark]):
    """The base of a source that survives a crash; see Inputs. A subclass implements ``records``.

    A checkpoint knows the last record before its cut by a hash. It is read again when the run
    resumes, and before each look for more, so a source that was cut back or replaced is rejected.
    """

    def __init__(self, place: str, reading: Reading, values: Values | None = None) -> None:
        """Take the source; nothing is read yet.

        place: the URI, for errors. values: the format of documents, JSON objects by default.
        """
        super().__init__(values or JsonValues(reading.shape), reading)
        self.place = place
        self._executor = reading.executor
        self._last: _Mark | None = None

    def records(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Yield the records from ``offset`` on, each with its offset, up to the present end.

        Offsets begin at 0 and grow: each record has the same one whenever it is read. A missing one
        is a hole; with large ones, as of bytes or times, batches are small or empty. The iterator
        may be continued in another thread, and be closed at any record. An OSError or an
        InputAwayError means that the source may be back soon, and is waited for; another InputError
        ends the run.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what its records are")

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the beginning; the end is not counted."""
        return {self.name: 0}, {}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the source still has the last record before ``cut``."""
        offset, known = cut[self.name], identities.get(self.name, "")
        mark = _Mark(*map(int, known.split(" "))) if known else None
        await self._check(offset, mark)
        if mark is not None:
            self.marks[offset] = mark

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return the last record before ``cut``: its offset and its hash."""
        mark = self.marks.get(cut[self.name])
        return {self.name: "" if mark is None else f"{mark.offset} {mark.hash}"}

    async def begin(self, offset: int) -> None:
        """See that the source can be read, and has the last record before ``offset``."""
        self._last = self.marks.get(offset)
        await self._check(offset, self._last)

    async def read(self) -> None:
        """Read to the present end, then look for more again and again."""
        while True:
            with closing(self._after_last()) as records:
                is_end = False
                while not is_end:
                    await self.room()
                    found, is_end = await self._executor.run(_some, records)
                    for offset, document in found:
                        if offset < self.through:
                            raise InputError(
                                f"{self.place}: record {offset} comes after {self.through - 1}"
                            )
                        self._last = _Mark(offset, xxh64_of(document))
                        self.hold(offset, document, self._last)
                    self.end = self.through if is_end else None
                    self.wake()
            await self.room()
            await asyncio.sleep(LOOK_S)

    async def error_of(self, error: Exception) -> Exception:
        """Return an error of ``records`` in one line, which names the source."""
        if isinstance(error, OSError):
            return InputAwayError(f"cannot read {self.place}: {error.strerror or error}")
        return error

    def is_away(self, error: Exception) -> bool:
        """Tell whether the source may be back soon."""
        return isinstance(error, OSError | InputAwayError)

    def _after_last(self) -> Generator[tuple[int, bytes], None, None]:
        """Yield the records after the last one, which must be there still."""
        records = iter(self.records(self.through if self._last is None else self._last.offset))
        if self._last is not None:
            self._compare(next(records, None), self.through, self._last)
        yield from records

    async def _check(self, offset: int, mark: _Mark | None) -> None:
        """Raise InputError unless the record before ``offset`` is there, that of ``mark``."""
        at = max(offset - 1, 0) if mark is None else mark.offset
        try:
            found = await self._executor.run(self._first, at)
        except OSError as error:
            raise await self.error_of(error) from error
        if offset:
            self._compare(found, offset, mark)

    def _first(self, offset: int) -> tuple[int, bytes] | None:
        return next(iter(self.records(offset)), None)

    def _compare(self, found: tuple[int, bytes] | None, offset: int, mark: _Mark | None) -> None:
        if found is None:
            raise InputError(
                f"{self.place} ends before {offset}, up to which it was read: it has lost what it "
                f"had. {ANEW}"
            )
        if mark is not None and mark != (found[0], xxh64_of(found[1])):
            raise InputError(
                f"{self.place}: record {mark.offset} is another one than the one that was read: "
                f"its history has changed. {ANEW}"
            )


def _some(records: Iterator[tuple[int, bytes]]) -> tuple[list[tuple[int, bytes]], bool]:
    """Return the next records, and whether they are the last ones."""
    found: list[tuple[int, bytes]] = []
    length_bytes = 0
    for offset, document in records:
        found.append((offset, document))
        length_bytes += len(document)
        if len(found) == ROWS_AT_ONCE or length_bytes >= BYTES_AT_ONCE:
            return found, False
    return found, True
