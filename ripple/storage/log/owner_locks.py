"""The locks that name a partition's writer for people. They are no fences: see docs/seals.md."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.storage.log.epochs import EPOCH_MAX, lock_path, make_folder, newest_owner
from ripple.world.errors import DiskLockedError

if TYPE_CHECKING:
    from ripple.world.ports import Disk, Lock


class OwnerLocks:
    """The locks of one owner: the common ``lock``, or that of its epoch.

    An owner takes the second if its predecessor still holds the first. One lock, not two, saves an
    open file per partition.
    """

    def __init__(self, disk: Disk, folder: str, holder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._holder = holder
        self._locks: list[Lock] = []

    def take(self, epoch: int | None) -> int:
        """Take the locks of an owner of ``epoch``; return its epoch.

        Without an epoch no other owner may hold a lock; the epoch is the one after the newest, or 0
        if there was none; raises DiskLockedError naming the holder. With one, others keep their
        locks.
        """
        try:
            if epoch is None:
                newest = self.take_all()
                epoch = min(newest + 1, EPOCH_MAX) if newest else 0
            else:
                make_folder(self._disk, self._folder)
                try:
                    self._take(0)
                except DiskLockedError:
                    with suppress(DiskLockedError):  # the same epoch: its fence rejects it
                        self._take(epoch)
        except BaseException:
            self.release()
            raise
        return epoch

    def take_all(self) -> int:
        """Take the locks of all possible owners; return the newest epoch.

        Raises DiskLockedError naming the holder.
        """
        self._take(0)
        newest = newest_owner(self._disk, self._folder)
        if newest:
            self._take(newest)
        return newest

    def release(self) -> None:
        """Release the locks; releasing twice is allowed."""
        for lock in self._locks:
            lock.release()
        self._locks = []

    def _take(self, epoch: int) -> None:
        self._locks.append(self._disk.lock(lock_path(self._folder, epoch), self._holder))
