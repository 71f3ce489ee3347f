"""A journal in a store: numbered objects that nobody changes, added by one owner after the other.

An owner begins with an object of its own, under its epoch. One with a lower epoch finds that number
taken when it adds the next time, and stops; nobody adds to a number that somebody has.

An object may be ``whole``: then those before it do not count any more, and are deleted now and
then. One with which an owner begins is, where nothing was added before it. An owner that slept
through all that may create a forgotten number again, which nobody reads.

An object that is missing, damaged or cannot be read costs what was in it, and nothing else: it is
passed over, and ``damage`` says so.

An object is, little-endian: magic "RJNL", CRC-32C of all that follows, epoch (8 bytes), whether it
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
# So many objects after those before a whole one were deleted, they are deleted again.
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
        """What counts: how many objects, of how many bytes, the next owner would read."""
        self.damage: tuple[str, ...] = ()
        """What could not be read the last time, an object each, in order."""

    async def read(self) -> list[Added]:
        """Return what counts and can be read, in order; anybody may, at any time."""
        return (await self._read())[1]

    async def newest_epoch(self) -> int:
        """Return the epoch of the newest owner that can be read, 0 for none. Raises StoreError."""
        for number in reversed(await self._numbers()):
            epoch = await self._epoch_at(self._name(number))
            if epoch >= 0:
                return epoch
        return 0

    async def open(self, epoch: int, random: Random) -> list[Added]:
        """Become the owner; return what counts and can be read, by the owners before.

        Raises FencedError if one had this epoch or a higher one, and StoreError.
        """
        self._epoch, self._nonce = epoch, random.bytes(NONCE_BYTES)
        for _ in range(OPEN_ATTEMPTS_MAX):
            numbers, found = await self._read()
            self._check_epoch(max((one.epoch for one in found), default=-1))
            self._number = max(numbers, default=0)
            self._first = min(numbers, default=1)
            self.objects = len(found)
            self.length_bytes = sum(len(one.data) for one in found)
            # Otherwise each owner would read what all before it have begun with.
            is_whole = not any(one.data for one in found)
            if await self._add(b"", is_whole=is_whole):
                if is_whole:
                    await self._forget()
                return found
        raise ChainError(
            f"{self.prefix} was added to by others {OPEN_ATTEMPTS_MAX} times in a row: are "
            "several processes restarted over it at once?"
        )

    async def add(self, data: bytes, *, is_whole: bool = False) -> None:
        """Add an object; with ``is_whole`` those before it do not count any more.

        Raises FencedError when another owner has begun; after a StoreError it may be repeated.
        """
        if not await self._add(data, is_whole=is_whole):
            raise FencedError(f"{self._name(self._number + 1)} is there, by an owner before")
        if is_whole:
            await self._forget()

    async def _forget(self) -> None:
        """Delete what is before the object that was added last, if it is that much.

        What a store does not delete costs room: it is tried again with the next ones.
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
        """Return whether it was added: not where an owner before was faster."""
        about = _ABOUT.pack(self._epoch, is_whole, self._nonce) + data
        whole = _HEADER.pack(_MAGIC, crc32c(about)) + about
        name = self._name(self._number + 1)
        if len(whole) > OBJECT_BYTES_MAX:
            raise LimitError(f"{name} would take {len(whole)} bytes, more than {OBJECT_BYTES_MAX}")
        is_taken = not await self._store.put_if_absent(name, whole)
        # A put that was repeated after a lost reply finds its own.
        if is_taken and self._guards("journal_fence") and not await self._holds(name, whole):
            self._check_epoch(await self._epoch_at(name))
            return False
        self._number += 1
        if is_whole:
            self.objects = self.length_bytes = 0
        self.objects += 1
        self.length_bytes += len(data)
        return True

    async def _read(self) -> tuple[list[int], list[Added]]:
        """Return the numbers that are there, and what counts: from the last whole object on."""
        while True:
            numbers = await self._numbers()
            reading = await self._back_to_whole(numbers)
            if reading is not None:
                found, self.damage = reading
                return numbers, found
            # One was deleted meanwhile, so a whole one has come: look again.

    async def _back_to_whole(
        self, numbers: list[int]
    ) -> tuple[list[Added], tuple[str, ...]] | None:
        """Return what counts, and what of it cannot be read; None where one is gone meanwhile."""
        found: list[Added] = []
        damage: list[str] = []
        behind = numbers[-1] + 1 if numbers else 1
        for number in reversed(numbers):
            damage += self._missing(number + 1, behind)
            behind = number
            try:
                data = await self._get(self._name(number))
                if data is None:
                    return None
                found.append(_decoded(data, self._name(number)))
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
        """Return the epoch of an object's owner, -1 where nobody knows."""
        try:
            data = await self._get(name)
            return -1 if data is None else _decoded(data, name).epoch
        except DamagedError:
            return -1

    def _check_epoch(self, theirs: int) -> None:
        if theirs >= self._epoch:
            raise FencedError(
                f"an owner with epoch {theirs} has begun with {self.prefix}: epoch {self._epoch} "
                "must not write any more",
                theirs,
            )

    def _name(self, number: int) -> str:
        return f"{self.prefix}{number:016d}.journal"


def _decoded(data: bytes, name: str) -> Added:
    if len(data) < _HEADER.size + _ABOUT.size:
        raise DamagedError(f"{name} is damaged: it is cut to {len(data)} bytes")
    magic, checksum = _HEADER.unpack_from(data)
    about = data[_HEADER.size :]
    if magic != _MAGIC or crc32c(about) != checksum:
        raise DamagedError(f"{name} is damaged: its checksum does not fit")
    epoch, is_whole, _ = _ABOUT.unpack_from(about)
    return Added(epoch, is_whole, about[_ABOUT.size :])
