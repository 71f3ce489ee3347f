"""A chain of entries in a store, to which at most one writer can add each number.

Entry n+1 is created only where no n+1 exists, by a writer that has read n; an entry holds the
complete state. A writer that finds the next number taken has lost, and reads the entry there.

Old entries are deleted. A writer that was paused meanwhile could create a deleted name again.
Therefore a boundary is made durable before the deletion, and entries below it are ignored. After
creating an entry, a writer looks for the boundary and for newer entries before it relies on its
own; or, if the entry before is its own as well, for that one, which would have been deleted first.
A reader paused between the list and the entry could read such a late one: it looks for the boundary
again before it relies on an entry not read before. In a chain without entries the boundary sets the
first number.

Invariants: entries from the boundary to the newest exist; the boundary is at most the newest entry,
if there is one.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from ripple.core.errors import LimitError
from ripple.storage.fenced.entry import BYTES_MAX, Content, Entry, decode_entry
from ripple.storage.fenced.errors import ChainError, DamagedError, FencedError
from ripple.storage.fenced.stored import object_in
from ripple.world.ports import Guards, ObjectStore, all_guards

# Entries before the newest that stay readable; twice as many before a batch is deleted.
ENTRIES_KEPT = 8
NAMES_REMEMBERED = 1024
READ_ATTEMPTS_MAX = 16

_NAME = re.compile(r"(\d{16})(\.boundary)?\.json")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """The newest readable entry, if any, and the damaged ones after it.

    newest_number: of the newest entry, readable or not; without entries, one less than the first
    number, which is 1 unless a boundary says otherwise.
    """

    entry: Entry[T] | None
    newest_number: int
    damaged: tuple[str, ...]

    def next(self, owner: str, content: T, codec: Content[T]) -> Entry[T]:
        """Return the entry that would follow; ``owner`` is the writer's nonce."""
        is_last = self.entry is not None and self.entry.number == self.newest_number
        previous = self.entry.checksum if self.entry is not None and is_last else ""
        return Entry(self.newest_number + 1, owner, previous, content, codec)


class Chain(Generic[T]):
    """Reads the chain at ``prefix`` in a store, and adds to it."""

    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        codec: Content[T],
        *,
        entries_kept: int = ENTRIES_KEPT,
        guards: Guards = all_guards,
    ) -> None:
        self.store = store
        self.prefix = prefix
        self.codec = codec
        self.entries_kept = entries_kept
        self._guards = guards
        self._confirmed = ""
        self._boundary = 0  # as last seen: it only rises

    def name_of(self, number: int) -> str:
        """Return the object name of an entry."""
        return f"{self.prefix}{number:016d}.json"

    async def numbers(self) -> tuple[int, list[int]]:
        """Return the boundary, 0 for none, and the numbers of the valid entries, ascending."""
        held = await self._names()
        boundary = max((number for number, marks in held.values() if marks), default=0)
        self._boundary = max(self._boundary, boundary)
        numbers = [number for number, marks in held.values() if not marks and number >= boundary]
        return boundary, sorted(numbers)

    async def _names(self) -> dict[str, tuple[int, bool]]:
        """Return each object's number, and whether it is a boundary."""
        names = await self.store.list(self.prefix)
        read = {name: _number_of(name.removeprefix(self.prefix)) for name in names}
        return {name: one for name, one in read.items() if one is not None}

    async def get(self, number: int) -> Entry[T] | None:
        """Return an entry, None if there is none. Raises DamagedError."""
        name = self.name_of(number)
        data = await object_in(self.store, name, length_max=BYTES_MAX)
        if data is None:
            return None
        entry = decode_entry(data, name, self.codec, is_verified=self._guards("checksum"))
        if entry.number != number:
            raise DamagedError(f"{name} is entry {entry.number}: the object was renamed")
        return entry

    async def newest(self) -> Reading[T]:
        """Return the newest readable entry; damaged ones are skipped and reported.

        Raises ChainError if others add and delete entries faster than this reads them.
        """
        for _ in range(READ_ATTEMPTS_MAX):
            reading = await self._read()
            if reading is not None:
                return reading
        raise ChainError(
            f"{self.prefix} changed {READ_ATTEMPTS_MAX} times in a row while it was read: try again"
        )

    async def _read(self) -> Reading[T] | None:
        """Return the newest readable entry; None if entries were deleted meanwhile."""
        boundary, numbers = await self.numbers()
        damaged = []
        for number in reversed(numbers):
            try:
                entry = await self.get(number)
            except DamagedError as error:
                damaged.append(str(error))
                continue
            if entry is None or not await self._is_valid(entry):
                return None
            return Reading(entry, numbers[-1], tuple(damaged))
        return Reading(None, numbers[-1] if numbers else max(0, boundary - 1), tuple(damaged))

    async def _is_valid(self, entry: Entry[T]) -> bool:
        """Return False if a paused writer may have added the entry after a deletion."""
        if entry.checksum != self._confirmed and self._guards("read_again"):
            boundary, _ = await self.numbers()
            if entry.number < boundary:
                return False
            self._confirmed = entry.checksum
        return True

    async def create(self, entry: Entry[T]) -> Entry[T] | None:
        """Create an entry; return the entry there now: it, or another writer's (None if damaged).

        A create that was repeated after a lost reply finds its own earlier success. Raises
        LimitError for an entry too large for ``get``.
        """
        if len(entry.encoded) > BYTES_MAX:
            raise LimitError(
                f"{self.name_of(entry.number)} would take {len(entry.encoded)} bytes, more than "
                f"{BYTES_MAX}: use fewer partitions or workers"
            )
        stored = await self.store.put_if_absent(self.name_of(entry.number), entry.encoded)
        if stored or not self._guards("fence"):
            return entry
        try:
            return await self.get(entry.number)
        except DamagedError:
            return None

    async def check_newest(self, entry: Entry[T]) -> None:
        """Raise FencedError unless ``entry``, just created, is valid and the newest."""
        if not self._guards("check_newest"):
            return
        boundary, numbers = await self.numbers()
        if entry.number < boundary or numbers[-1:] != [entry.number]:
            raise FencedError(
                f"{self.name_of(entry.number)} came too late: the newest entry is "
                f"{max(numbers, default=boundary)}; another writer continues from there"
            )

    async def check_next(self, entry: Entry[T], before: Entry[T]) -> None:
        """Raise FencedError unless ``entry``, just created, is valid.

        before: the entry before it, of the same writer. While that one is there, its successor was
        never deleted, for entries are deleted in order: so nobody else had created one. One get,
        which costs a cloud's users a tenth of a list; where it does not find the entry, a list.
        """
        if not self._guards("check_newest"):
            return
        name, there = self.name_of(before.number), None
        with suppress(DamagedError):
            there = await object_in(self.store, name, length_max=BYTES_MAX)
        if there != before.encoded:
            await self.check_newest(entry)

    async def problems(self) -> tuple[str, ...]:
        """Read every valid entry; return the problems of the chain itself."""
        found = []
        boundary, numbers = await self.numbers()
        first, last = min(numbers, default=0), max(numbers, default=0)
        missing = sorted(set(range(first, last)) - set(numbers))
        if boundary and numbers and boundary not in numbers:
            missing.append(boundary)
        found += [f"{self.name_of(number)} is missing" for number in missing]
        before: Entry[T] | None = None
        for number in numbers:
            try:
                entry = await self.get(number)
            except DamagedError as error:
                found.append(str(error))
                before = None
                continue
            if entry is not None and before is not None and not _fit(before, entry):
                found.append(f"{self.name_of(number)} does not follow {before.number}")
            before = entry
        return tuple(found)

    async def begin_at(self, number: int) -> None:
        """Let the first entry of an empty chain have this number, or a higher one."""
        await self._set_boundary(number)

    async def forget(self, newest: Entry[T]) -> None:
        """Delete obsolete entries, now and then; ``newest`` is an entry of the caller.

        Without a request to the store where the boundary that was seen last is not far enough back.
        """
        if newest.number - self._boundary >= 2 * self.entries_kept:
            boundary, _ = await self.numbers()
            if newest.number - boundary >= 2 * self.entries_kept:
                await self._forget_below(newest.number - self.entries_kept)

    async def _set_boundary(self, boundary: int) -> None:
        mark = self.name_of(boundary).replace(".json", ".boundary.json")
        await self.store.put_if_absent(mark, b'"no entry below this number counts"\n')

    async def _forget_below(self, boundary: int) -> None:
        await self._set_boundary(boundary)
        # In ascending order, and none after a failure: see check_next.
        for name, (number, _) in sorted((await self._names()).items()):
            if number < boundary:
                await self.store.delete(name)


@lru_cache(maxsize=NAMES_REMEMBERED)
def _number_of(name: str) -> tuple[int, bool] | None:
    """Return an entry's number, and whether its name is that of a boundary; None for others.

    Cached: repeated searches for the newest entry list mostly the same names.
    """
    match = _NAME.fullmatch(name)
    return None if match is None else (int(match[1]), bool(match[2]))


def _fit(before: Entry[T], entry: Entry[T]) -> bool:
    """Return False if ``entry`` was chained to another entry than ``before``."""
    is_next = before.number == entry.number - 1
    return not is_next or entry.previous in ("", before.checksum)
