"""The locks that tell people who writes to a partition. They fence nobody: see docs/seals.md."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.storage.log.epochs import EPOCH_MAX, lock_path, make_folder, newest_owner
from ripple.world.errors import DiskLockedError

if TYPE_CHECKING:
    from ripple.world.ports import Disk, Lock


class OwnerLocks:
    """The locks of one owner: ``lock``, which all have in common, or that of its epoch.

    The second is for who finds the first held, by one that it replaces; one file is less to keep
    open for each partition.
    """

    def __init__(self, disk: Disk, folder: str, holder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._holder = holder
        self._locks: list[Lock] = []

    def take(self, epoch: int | None) -> int:
        """Take the locks of an owner of ``epoch``; return its epoch.

        Without an epoch nobody else may be there, and it is the one after the newest, or 0 if there
        was none; raises DiskLockedError naming the holder. With one, others keep what they hold.
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
                    with suppress(DiskLockedError):  # one of the same epoch: its fence refuses
                        self._take(epoch)
        except BaseException:
            self.release()
            raise
        return epoch

    def take_all(self) -> int:
        """Take the locks of all who may be there; return the newest epoch.

        Raises DiskLockedError naming the holder.
        """
        self._take(0)
        newest = newest_owner(self._disk, self._folder)
        if newest:
            self._take(newest)
        return newest

    def release(self) -> None:
        """Let others have them; releasing twice is allowed."""
        for lock in self._locks:
            lock.release()
        self._locks = []

    def _take(self, epoch: int) -> None:
        self._locks.append(self._disk.lock(lock_path(self._folder, epoch), self._holder))
