"""A disk in memory that forgets, tears and fails as real ones do."""

from __future__ import annotations

import copy
import errno
from functools import partial
from typing import TYPE_CHECKING

from ripple.core.errors import LimitError
from ripple.testing.sim.contents import Contents, Fate
from ripple.testing.sim.effects import Effects, Trace
from ripple.testing.sim.faults import Planned
from ripple.testing.sim.file import SimFile, SimLock
from ripple.testing.sim.names import Change, Names
from ripple.testing.sim.watch import SimWatch
from ripple.world import paths
from ripple.world.errors import DiskFullError, DiskLockedError, NotALockError, SyncFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.testing.sim.chance import Chance
    from ripple.testing.sim.faults import Fault

CAPACITY_BYTES = 1 << 40
# Effects that a watch does not report.
_UNSEEN = ("read", "sync", "sync_folder")


class SimDisk:
    """The disk of one machine in one incarnation.

    ``capacity_bytes`` may be set at any time; syncs below the folder ``sound`` never fail.
    ``removed`` names safeguards that are off: ``fsync_file`` and ``fsync_folder`` do nothing,
    ``link_absent`` replaces, ``lock`` is given, ``watch`` notes nothing.
    """

    def __init__(self, effects: Effects | None = None, names: Names | None = None) -> None:
        self.effects = effects or Effects(0, Planned(()), Trace())
        self.removed: frozenset[str] = frozenset()
        self.capacity_bytes = CAPACITY_BYTES
        self.sound: str | None = None
        self._names = names or Names()
        self._locks: dict[str, str] = {}
        self._watches: list[SimWatch] = []

    # What the port promises.

    def open(
        self,
        path: str,
        *,
        create: bool = False,
        exclusive: bool = False,
        like: str = "",  # there are no permissions here
    ) -> SimFile:
        paths.parts(path)
        paths.parts(like)
        contents = self._names.files.get(path)
        if contents is not None:
            if exclusive:
                raise FileExistsError(errno.EEXIST, "exists", path)
            return SimFile(self, path, contents)
        if not (create or exclusive):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._check_target(path)
        made = Contents()
        self.act("create", path, lambda: self._names.change({path: made}))
        return SimFile(self, path, made)

    def open_to_read(self, path: str) -> SimFile:
        return SimFile(self, path, self._file(path), is_writable=False)

    def read_bytes(self, path: str, *, length_max: int) -> bytes:
        contents = self._file(path)
        self.act("read", path, lambda: None)
        if len(contents.data) > length_max:
            raise LimitError(f"{path} is longer than {length_max} bytes")
        return bytes(contents.data)

    def list(self, folder: str) -> list[str]:
        paths.parts(folder)
        return self._names.within(folder)

    def exists(self, path: str) -> bool:
        paths.parts(path)
        return path in self._names.files or path in self._names.folders

    def is_at(self, path: str, contents: Contents) -> bool:
        """Whether a name leads to these contents."""
        return self._names.files.get(path) is contents

    def make_folder(self, folder: str) -> None:
        names = paths.parts(folder)
        for length in range(1, len(names) + 1):
            path = "/".join(names[:length])
            if path in self._names.files:
                raise FileExistsError(errno.EEXIST, "is a file", path)
            if path not in self._names.folders:
                self.act("make_folder", path, partial(self._names.add_folder, path))

    def rename(self, source: str, target: str) -> None:
        contents = self._file(source)
        self._check_target(target)
        change: Change = {source: None}
        change[target] = contents
        self.act("rename", f"{source} {target}", lambda: self._names.change(change))

    def link_absent(self, source: str, target: str) -> bool:
        contents = self._file(source)
        self._check_target(target)
        if target in self._names.files and "link_absent" not in self.removed:
            return False
        self.act("link", f"{source} {target}", lambda: self._names.change({target: contents}))
        return True

    def remove(self, path: str) -> None:
        self._file(path)
        self.act("remove", path, lambda: self._names.change({path: None}))

    def remove_folder(self, folder: str) -> None:
        paths.parts(folder)
        if folder not in self._names.folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder", folder)
        if self._names.within(folder):
            raise OSError(errno.ENOTEMPTY, "is not empty", folder)
        self.act("remove_folder", folder, lambda: self._names.remove_folder(folder))

    def sync_folder(self, folder: str) -> None:
        paths.parts(folder)
        if folder not in self._names.folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder", folder)
        if "fsync_folder" not in self.removed:
            self.act("sync_folder", folder, lambda: self._names.sync(folder))

    def lock(self, path: str, holder: str) -> SimLock:
        if path in self._locks and "lock" not in self.removed:
            raise DiskLockedError(path, self._locks[path])
        if self.open(path, create=True).size():
            raise NotALockError(path, "a user's own file")
        self._locks[path] = holder
        return SimLock(self._locks, path)

    def watch(self, folders: Sequence[str]) -> SimWatch:
        for folder in folders:
            paths.parts(folder)
        return SimWatch(self._watches, folders)

    def free_bytes(self) -> int:
        return max(0, self.capacity_bytes - self._names.used_bytes())

    # What a test asks.

    def without(self, removed: frozenset[str]) -> SimDisk:
        """Return the same disk with safeguards switched off."""
        other = copy.copy(self)
        other.removed = removed
        return other

    def peek(self, path: str) -> bytes | None:
        """Return a file's durable bytes, None if it has no durable name; that is no effect."""
        return self._names.durable(path)

    def contents(self, path: str) -> bytes | None:
        """Return a file as it is now, None if there is none; that is no effect."""
        found = self._names.files.get(path)
        return None if found is None else bytes(found.data)

    def image(self) -> dict[str, bytes]:
        """Return all files as they are now, by path."""
        return {path: bytes(contents.data) for path, contents in self._names.files.items()}

    def install(self, image: Mapping[str, bytes]) -> None:
        """Put files there, durably, as if they had always been: no effect."""
        self._names.install(image)

    def flip_bit(self, path: str, bit: int) -> None:
        """Damage a file as a bad medium does, durably."""
        self._file(path).damage(bit)

    def after_exit(self, effects: Effects) -> SimDisk:
        """Return the disk that the next process finds when this one has ended or was killed."""
        return self._next(effects, self._names.after_exit())

    def after_power_cut(self, effects: Effects, salt: int) -> SimDisk:
        """Return the disk after a power cut; ``salt`` decides which unsynced data survive."""
        return self._next(effects, self._names.after_power_cut(Fate(salt)))

    def lose_power(self, salt: int) -> None:
        """Bring this very disk into its state after a power cut; no file may be open."""
        self._names = self._names.after_power_cut(Fate(salt))

    # For its files.

    def act(
        self,
        name: str,
        subject: str,
        act: Callable[[], object],
        *,
        tear: Callable[[Chance], None] | None = None,
        spoil: Callable[[Chance], None] | None = None,
    ) -> None:
        """Carry out an effect; ``tear`` does part of it, ``spoil`` damages after a failed sync."""

        def fail(fault: Fault, chance: Chance) -> None:
            path = subject.partition(" ")[0]
            if fault.kind == "disk_full":
                self.capacity_bytes = self._names.used_bytes()
                if name == "create":
                    raise DiskFullError(path)
            elif fault.kind == "sync_failed":
                if self.sound is not None and f"{path}/".startswith(f"{self.sound}/"):
                    return
                if spoil is not None:
                    spoil(chance)
                raise SyncFailedError(path, "simulated")
            else:
                if tear is not None:
                    tear(chance)
                raise OSError(errno.EIO, "simulated input/output error", path)

        try:
            self.effects.run(name, subject, act, fail, tear)
        finally:  # an effect that failed may have taken place in part
            if name not in _UNSEEN and "watch" not in self.removed:
                for watch in self._watches:
                    watch.note(subject)

    def room_bytes(self, wanted: int) -> int:
        """Return how many of ``wanted`` bytes fit."""
        if self.capacity_bytes == CAPACITY_BYTES:
            return wanted
        return min(wanted, self.free_bytes())

    def _file(self, path: str) -> Contents:
        paths.parts(path)
        contents = self._names.files.get(path)
        if contents is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return contents

    def _check_target(self, path: str) -> None:
        paths.parts(path)
        if path in self._names.folders:
            raise IsADirectoryError(errno.EISDIR, "is a folder", path)
        if paths.folder_of(path) not in self._names.folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)

    def _next(self, effects: Effects, names: Names) -> SimDisk:
        disk = SimDisk(effects, names)
        disk.removed = self.removed
        return disk
