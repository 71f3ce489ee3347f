"""An object store behind a folder of this machine, which keeps what was put and got."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING

from ripple.core.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.world.ports import Disk, ObjectStore, Random

DIGEST_BYTES = 32
_TEMPORARY = ".tmp-"
_KEPT = re.compile(r"(\d{16,})-[0-9a-f]{32}")


class CachedStore:
    """Reads from a disk what is there, and is believed only with its checksum; else the store.

    Only objects are kept that ``is_kept`` allows by their names: those which nobody ever puts a
    second time with other data. A file is named by when it came, and by its object's name, so that
    the oldest goes first where they are more than ``bytes_max`` together. Several processes may
    share the disk. What the disk cannot do costs speed and nothing else; other files in the folder
    are let alone.

    A file is the BLAKE2b of the object's name and data, and the data.
    """

    def __init__(
        self,
        store: ObjectStore,
        disk: Disk,
        random: Random,
        *,
        bytes_max: int,
        is_kept: Callable[[str], bool],
    ) -> None:
        self._store = store
        self._folder = _Folder(disk, random, bytes_max)
        self._is_kept = is_kept

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        """Store an object unless the name is taken; return whether this call stored it."""
        stored = await self._store.put_if_absent(name, data)
        if stored and self._is_kept(name):
            await asyncio.to_thread(self._folder.keep, name, data)
        return stored

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        """Return an object, None if there is none."""
        if not self._is_kept(name):
            return await self._store.get(name, length_max=length_max)
        data = await asyncio.to_thread(self._folder.read, name, length_max)
        if data is None:
            data = await self._store.get(name, length_max=length_max)
            if data is not None:
                await asyncio.to_thread(self._folder.keep, name, data)
        return data

    async def list(self, prefix: str) -> list[str]:
        """Return the names that start with ``prefix``, sorted: as the store has them."""
        return await self._store.list(prefix)

    async def delete(self, name: str) -> None:
        """Forget an object."""
        await self._store.delete(name)
        if self._is_kept(name):
            await asyncio.to_thread(self._folder.forget, name)


class _Folder:
    """The files. What the disk cannot do is not done. Several threads may call."""

    def __init__(self, disk: Disk, random: Random, bytes_max: int) -> None:
        self._disk = disk
        self._random = random
        self._bytes_max = bytes_max
        self._room = Lock()  # of who counts what is there, and adds to it

    def read(self, name: str, length_max: int) -> bytes | None:
        """Return what the disk has of an object; what is damaged is removed."""
        with suppress(OSError, LimitError):
            for file in self._files_of(name):
                held = self._disk.read_bytes(file, length_max=length_max + DIGEST_BYTES)
                data = held[DIGEST_BYTES:]
                if held[:DIGEST_BYTES] == _digest(name, data):
                    return data
                self._disk.remove(file)
        return None

    def keep(self, name: str, data: bytes) -> None:
        """Write a file, if it fits, after making room for it."""
        size = len(data) + DIGEST_BYTES
        if size > self._bytes_max:
            return
        with self._room, suppress(OSError):
            self._disk.make_folder("")
            if self._files_of(name):
                return
            self._make_room(size)
            temporary = f"{_TEMPORARY}{self._random.bytes(8).hex()}"
            try:
                self._write(temporary, _digest(name, data), data)
            except OSError:
                self._disk.remove(temporary)  # of a full disk each would leave another one
                return
            number = max((int(held.partition("-")[0]) for held in self._all()), default=0) + 1
            self._disk.rename(temporary, f"{number:016d}-{_part(name)}")

    def _write(self, path: str, *pieces: bytes) -> None:
        file = self._disk.open(path, exclusive=True)
        try:
            for piece in pieces:
                file.append(piece)
        finally:
            file.close()

    def forget(self, name: str) -> None:
        """Remove what there is of an object."""
        with suppress(OSError):
            for file in self._files_of(name):
                self._disk.remove(file)

    def _make_room(self, size: int) -> None:
        sizes = {}
        for name in [*self._all(), *self._temporary()]:
            with suppress(OSError):  # another process has removed it
                file = self._disk.open_to_read(name)
                sizes[name] = file.size()
                file.close()
        # Half a file that a killed process left behind sorts first: a dot is before all digits.
        left = sum(sizes.values())
        for name in sorted(sizes):
            if left + size <= self._bytes_max:
                return
            with suppress(FileNotFoundError):
                self._disk.remove(name)
            left -= sizes[name]

    def _files_of(self, name: str) -> list[str]:
        part = _part(name)
        return [file for file in self._all() if file.endswith(part)]

    def _all(self) -> list[str]:
        return [name for name in self._disk.list("") if _KEPT.fullmatch(name)]

    def _temporary(self) -> list[str]:
        return [name for name in self._disk.list("") if name.startswith(_TEMPORARY)]


def _part(name: str) -> str:
    return blake2b(name.encode(), digest_size=16).hexdigest()


def _digest(name: str, data: bytes) -> bytes:
    return blake2b(name.encode() + b"\0" + data, digest_size=DIGEST_BYTES).digest()
