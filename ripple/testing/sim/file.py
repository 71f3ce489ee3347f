"""An open file, and a lock that is held, on a simulated disk."""

from __future__ import annotations

import errno
import zlib
from typing import TYPE_CHECKING

from ripple.world.errors import DiskFullError, SyncFailedError

if TYPE_CHECKING:
    from ripple.testing.sim.chance import Chance
    from ripple.testing.sim.contents import Contents
    from ripple.testing.sim.disk import SimDisk


class SimFile:
    """An open file of a simulated disk."""

    def __init__(
        self, disk: SimDisk, path: str, contents: Contents, *, is_writable: bool = True
    ) -> None:
        self._disk = disk
        self._path = path
        self._contents = contents
        self._is_writable = is_writable
        self._sync_failed = False

    def append(self, data: bytes | memoryview) -> None:
        self._check_writable()
        self._check_synced()
        written = bytes(data)
        place = f"{self.size()}+{len(written)} {zlib.crc32(written):08x}"
        self._disk.act(
            "append",
            f"{self._path} {place}",
            lambda: self._append(written),
            tear=lambda chance: self._tear(written, chance),
        )

    def read(self, offset: int, length: int) -> bytes:
        self._disk.act("read", self._path, lambda: None)
        return bytes(self._contents.data[offset : offset + length])

    def size(self) -> int:
        return len(self._contents.data)

    def is_named(self) -> bool:
        return self._disk.is_at(self._path, self._contents)

    def truncate(self, size: int) -> None:
        self._check_writable()
        if size > self.size():
            raise ValueError(f"{self._path}: cannot be cut to {size} bytes, it has {self.size()}")
        self._disk.act("truncate", f"{self._path} {size}", lambda: self._contents.truncate(size))

    def sync(self) -> None:
        self._check_synced()
        if "fsync_file" not in self._disk.removed:
            self._disk.act("sync", self._path, self._contents.sync, spoil=self._spoil_sync)

    def close(self) -> None:
        pass

    def _append(self, data: bytes) -> None:
        room = self._disk.room_bytes(len(data))
        if room:
            self._contents.append(data[:room])
        if room < len(data):
            raise DiskFullError(self._path)

    def _tear(self, data: bytes, chance: Chance) -> None:
        self._contents.append(data[: chance.below(len(data) + 1)])

    def _spoil_sync(self, chance: Chance) -> None:
        self._sync_failed = True
        self._contents.sync_in_part(chance)

    def _check_writable(self) -> None:
        if not self._is_writable:
            raise OSError(errno.EBADF, "opened to be read", self._path)

    def _check_synced(self) -> None:
        if self._sync_failed:
            raise SyncFailedError(self._path, "an earlier sync failed")


class SimLock:
    """A lock that is held until the simulated process ends."""

    def __init__(self, locks: dict[str, str], path: str) -> None:
        self._locks = locks
        self._path = path

    def release(self) -> None:
        if self._path:
            self._locks.pop(self._path, None)
            self._path = ""
