"""A journal in a store: numbered, immutable objects, added by one owner after the other.

An owner begins with an object of its own, under its epoch. An owner with a lower epoch finds that
number taken when it adds the next object, and stops; a number is never used twice.

An object may be ``whole``: it replaces those before it, which are deleted now and then. The first
object of an owner is whole if no data were added before it. An owner paused meanwhile may create
a deleted number again, which is never read; one paused during the opening finds newer numbers, and
opens the journal again.

A missing, damaged or unreadable object loses its own data and nothing else: it is skipped and
reported in ``damage``.

Layout of an object, little-endian: magic "RJNL", CRC-32C of the rest, epoch (8 bytes), whether it
is whole (1), a nonce of its owner (16), the data.
"""

from __future__ import annotations

import re
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.core.codec.crc import crc32c
from ripple.core.errors import LimitError
from ripple.storage.fenced.errors import ChainError, DamagedError, FencedError
from ripple.storage.fenced.stored import object_in
from ripple.world.errors import StoreError
from ripple.world.ports import Guards, all_guards
from ripple.world.together import together

if TYPE_CHECKING:
    from ripple.world.ports import ObjectStore, Random

OBJECT_BYTES_MAX = 64 << 20
OPEN_ATTEMPTS_MAX = 16
NONCE_BYTES = 16
# Objects that a whole one has replaced are deleted once there are this many.
FORGET_AT = 64
DELETES_MAX = 16  # at a time

_MAGIC = b"RJNL"
_HEADER = struct.Struct("<4sI")
_ABOUT = struct.Struct(f"<Q?{NONCE_BYTES}s")
_NAME = re.compile(r"(\d{16})\.journal")


class Added(NamedTuple):
    """One object."""

    epoch: int
    is_whole: bool
    data: bytes


class Journal:
    """The journal at ``prefix`` of a store. ``open`` makes its caller the owner."""

    def __init__(self, store: ObjectStore, prefix: str, *, guards: Guards = all_guards) -> None:
        self._store = store
        self.prefix = prefix
        self._guards = guards
        self._number = 0
        self._epoch = 0
        self._nonce = b""
        self._first = 0
        self.objects = self.length_bytes = 0
        """The objects that the next owner would read, and their bytes."""
        self.whole_bytes = 0
        """The bytes of the merged object among them."""
        self.damage: tuple[str, ...] = ()
        """The objects that were unreadable at the last reading, one text each, in order."""

    async def read(self, known: dict[int, Added] | None = None) -> list[Added]:
        """Return the valid, readable objects in order; any process may call this at any time.

        known: objects by number that were read before, and are not read again; it is updated.
        """
        return (await self._read(known))[1]

    async def newest_epoch(self) -> int:
        """Return the epoch of the newest readable object, 0 for none. Raises StoreError."""
        for number in reversed(await self._numbers()):
            epoch = await self._epoch_at(self._name(number))
            if epoch >= 0:
                return epoch
        return 0

    async def open(
        self, epoch: int, random: Random, known: dict[int, Added] | None = None
    ) -> list[Added]:
        """Become the owner; return the valid, readable objects of previous owners.

        known: as for ``read``. Raises FencedError if one of them had this epoch or a higher one,
        and StoreError.
        """
        self._epoch, self._nonce = epoch, random.bytes(NONCE_BYTES)
        for _ in range(OPEN_ATTEMPTS_MAX):
            numbers, found = await self._read(known)
            self._check_epoch(max((one.epoch for one in found), default=-1))
            self._number = max(numbers, default=0)
            self._first = min(numbers, default=1)
            self.objects = len(found)
            self.length_bytes = sum(len(one.data) for one in found)
            self.whole_bytes = sum(len(one.data) for one in found if one.is_whole)
            # Otherwise each owner would read the first objects of all previous ones.
            is_whole = not any(one.data for one in found)
            if await self._add(b"", is_whole=is_whole) and await self._is_newest():
                if is_whole:
                    await self._forget()
                return found
        raise ChainError(
            f"{self.prefix} was added to by others {OPEN_ATTEMPTS_MAX} times in a row: are "
            "several processes restarted over it at once?"
        )

    async def add(self, data: bytes, *, is_whole: bool = False) -> None:
        """Add an object; with ``is_whole`` it replaces those before it.

        Raises FencedError when another owner has begun; after a StoreError it may be repeated.
        """
        if not await self._add(data, is_whole=is_whole):
            raise FencedError(f"{self._name(self._number + 1)} exists, written by a previous owner")
        if is_whole:
            await self._forget()

    async def _forget(self) -> None:
        """Delete the objects that the last whole one has replaced, once there are enough of them.

        A failed deletion costs room only, and is repeated with the next ones.
        """
        if self._number - self._first < FORGET_AT:
            return
        self._first = self._number
        with suppress(StoreError):
            passed = [number for number in await self._numbers() if number < self._first]
            for at in range(0, len(passed), DELETES_MAX):
                some = passed[at : at + DELETES_MAX]
                await together(*(self._store.delete(self._name(number)) for number in some))

    async def _add(self, data: bytes, *, is_whole: bool) -> bool:
        """Return whether it was added; False if a previous owner was faster."""
        about = _ABOUT.pack(self._epoch, is_whole, self._nonce) + data
        whole = _HEADER.pack(_MAGIC, crc32c(about)) + about
        name = self._name(self._number + 1)
        if len(whole) > OBJECT_BYTES_MAX:
            raise LimitError(f"{name} would take {len(whole)} bytes, more than {OBJECT_BYTES_MAX}")
        is_taken = not await self._store.put_if_absent(name, whole)
        # A put repeated after a lost reply finds its own object.
        if is_taken and self._guards("journal_fence") and not await self._holds(name, whole):
            self._check_epoch(await self._epoch_at(name))
            return False
        self._number += 1
        if is_whole:
            self.objects = self.length_bytes = 0
            self.whole_bytes = len(data)
        self.objects += 1
        self.length_bytes += len(data)
        return True

    async def _is_newest(self) -> bool:
        return (await self._numbers())[-1:] == [self._number]

    async def _read(self, known: dict[int, Added] | None = None) -> tuple[list[int], list[Added]]:
        """Return all numbers, and the valid objects: from the last whole one on."""
        known = {} if known is None else known
        while True:
            numbers = await self._numbers()
            reading = await self._back_to_whole(numbers, known)
            if reading is not None:
                found, self.damage = reading
                return numbers, found
            # One was deleted meanwhile, so there is a new whole one: read again.

    async def _back_to_whole(
        self, numbers: list[int], known: dict[int, Added]
    ) -> tuple[list[Added], tuple[str, ...]] | None:
        """Return the valid objects and the unreadable ones; None if one was deleted meanwhile."""
        before, found = known.copy(), list[Added]()
        known.clear()
        damage: list[str] = []
        behind = numbers[-1] + 1 if numbers else 1
        for number in reversed(numbers):
            damage += self._missing(number + 1, behind)
            behind = number
            try:
                if number in before:
                    found.append(before[number])
                elif (data := await self._get(self._name(number))) is not None:
                    found.append(added_in(data, self._name(number)))
                else:
                    return None
                known[number] = found[-1]
            except DamagedError as error:
                damage.append(str(error))
                continue
            if found[-1].is_whole:
                break
        else:
            damage += self._missing(1, behind)
        return found[::-1], tuple(damage[::-1])

    def _missing(self, first: int, end: int) -> list[str]:
        if first >= end:
            return []
        if end - first == 1:
            return [f"{self._name(first)} is missing"]
        return [f"{self._name(first)} and those up to {self._name(end - 1)} are missing"]

    async def _numbers(self) -> list[int]:
        names = await self._store.list(self.prefix)
        matches = [_NAME.fullmatch(name.removeprefix(self.prefix)) for name in names]
        return sorted(int(match[1]) for match in matches if match)

    async def _get(self, name: str) -> bytes | None:
        return await object_in(self._store, name, length_max=OBJECT_BYTES_MAX)

    async def _holds(self, name: str, data: bytes) -> bool:
        try:
            return await self._get(name) == data
        except DamagedError:
            return False

    async def _epoch_at(self, name: str) -> int:
        """Return the epoch of an object's owner, -1 if unknown."""
        try:
            data = await self._get(name)
            return -1 if data is None else added_in(data, name).epoch
        except DamagedError:
            return -1

    def _check_epoch(self, theirs: int) -> None:
        if theirs >= self._epoch:
            raise FencedError(
                f"an owner with epoch {theirs} has opened {self.prefix}: epoch {self._epoch} "
                "must not write any more",
                theirs,
            )

    def _name(self, number: int) -> str:
        return f"{self.prefix}{number:016d}.journal"


def added_in(data: bytes, name: str) -> Added:
    """Return the content of an object; ``name`` is its own, for people. Raises DamagedError."""
    if len(data) < _HEADER.size + _ABOUT.size:
        raise DamagedError(f"{name} is damaged: it is truncated to {len(data)} bytes")
    magic, checksum = _HEADER.unpack_from(data)
    about = data[_HEADER.size :]
    if magic != _MAGIC or crc32c(about) != checksum:
        raise DamagedError(f"{name} is damaged: its checksum does not match")
    epoch, is_whole, _ = _ABOUT.unpack_from(about)
    return Added(epoch, is_whole, about[_ABOUT.size :])
