"""An object store with a local cache of the objects that were put and got."""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING

from ripple.core.errors import LimitError
from ripple.world.live_threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.world.ports import Disk, ObjectStore, Random

DIGEST_BYTES = 32
_TEMPORARY = ".tmp-"
_KEPT = re.compile(r"(\d{16,})-[0-9a-f]{32}")


class CachedStore:
    """Reads an object from the disk if it is there with a valid checksum; else from the store.

    Only immutable objects are cached: ones with names that ``is_kept`` accepts. A file's name holds
    the time of its arrival and its object's name; the oldest are evicted when all files together
    exceed ``bytes_max``. Several processes may share the disk. An error of the disk costs speed and
    nothing else; other files in the folder are left alone.

    A file is the BLAKE2b of the object's name and data, followed by the data.
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
        self._threads = Threads("ripple-cache")

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        """Store an object unless the name is taken; return whether this call stored it."""
        stored = await self._store.put_if_absent(name, data)
        if stored and self._is_kept(name):
            await self._threads.begin(self._folder.keep, name, data)
        return stored

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        """Return an object, None if there is none."""
        if not self._is_kept(name):
            return await self._store.get(name, length_max=length_max)
        data = await self._threads.begin(self._folder.read, name, length_max)
        if data is None:
            data = await self._store.get(name, length_max=length_max)
            if data is not None:
                await self._threads.begin(self._folder.keep, name, data)
        return data

    async def list(self, prefix: str) -> list[str]:
        """Return the names that start with ``prefix``, sorted: the store's, not the cache's."""
        return await self._store.list(prefix)

    async def delete(self, name: str) -> None:
        """Forget an object."""
        await self._store.delete(name)
        if self._is_kept(name):
            await self._threads.begin(self._folder.forget, name)


class _Folder:
    """The cache's files. Errors of the disk are ignored. Thread-safe."""

    def __init__(self, disk: Disk, random: Random, bytes_max: int) -> None:
        self._disk = disk
        self._random = random
        self._bytes_max = bytes_max
        self._room = Lock()  # held while files are counted and added

    def read(self, name: str, length_max: int) -> bytes | None:
        """Return an object's data from the disk; a damaged file is removed."""
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
                self._disk.remove(temporary)  # a full disk would collect them
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
        """Remove an object's files."""
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
        # Temporary files of a killed process sort first: a dot is before all digits.
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
