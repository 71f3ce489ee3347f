"""Objects in a folder of a disk."""

from __future__ import annotations

import errno
from contextlib import suppress

from ripple.storage.store.errors import StoreRefusedError
from ripple.world.errors import StoreError, UnreadableError, is_of_one_file
from ripple.world.live_threads import Threads
from ripple.world.ports import Disk, Guards, Random, all_guards

READS_MAX = 3  # of a file before the error is raised

_TEMPORARY = ".tmp-"
# Part of a file system's root, for its superuser alone.
_LOST_AND_FOUND = "lost+found"


class DiskStore:
    """Objects as files below a folder of a disk, shared by the processes of one machine.

    An object appears whole or not at all: its data are synced under a temporary name before the
    file is given its own. The last part of a name has a dot and no part before it has one, which
    tells files from folders; ValueError otherwise. Errors of the disk are raised as StoreError,
    with the original as the cause. Without ``random`` the store is read-only.

    Slow calls run in threads of its own.
    """

    def __init__(
        self,
        disk: Disk,
        random: Random | None = None,
        folder: str = "",
        *,
        guards: Guards = all_guards,
    ) -> None:
        self._guards = guards
        self._disk = disk
        self._random = random
        self._folder = folder
        self._tidied: set[str] = set()
        self._threads = Threads("ripple-store")

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        """Store an object unless the name is taken; return whether this call stored it."""
        if self._random is None:
            raise StoreError(f"{name}: the store was opened for reading only", done=False)
        path = self._path(name)
        folder = path.rpartition("/")[0]
        done: bool | None = False
        temporary = _joined(folder, f"{_TEMPORARY}{self._random.bytes(8).hex()}")
        try:
            self._make_tidy(folder)
            await self._threads.begin(self._write, temporary, data)
            done = None
            return await self._threads.begin(self._name, temporary, path, folder)
        except (FileExistsError, NotADirectoryError) as error:
            raise StoreRefusedError(
                f"{name} cannot be stored: a file stands where {folder} should be: move it away"
            ) from error
        except OSError as error:
            # Without the temporary name: the same fault should give the same text.
            why = error.strerror or str(error)
            where = f" in {folder}" if folder else ""
            raise StoreError(f"{name} cannot be stored{where}: {why}", done=done) from error

    def _write(self, path: str, data: bytes) -> None:
        file = self._disk.open(path, exclusive=True)
        try:
            file.append(data)
            file.sync()
        except OSError:
            with suppress(OSError):
                self._disk.remove(path)
            raise
        finally:
            file.close()

    def _name(self, temporary: str, path: str, folder: str) -> bool:
        """Rename a file to its final name unless that is taken; return whether it was renamed."""
        try:
            stored = self._disk.link_absent(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                self._disk.remove(temporary)
        # Also for another writer's object: one that a caller has seen must not vanish.
        if self._guards("folder_sync"):
            self._disk.sync_folder(folder)
        return stored

    def _make_tidy(self, folder: str) -> None:
        """Make the folder; the first time, remove temporary files that a crashed put left.

        A put of another process that was under way fails, and is repeated.
        """
        if folder in self._tidied:
            return
        self._disk.make_folder(folder)
        for name in self._disk.list(folder):
            if name.startswith(_TEMPORARY):
                with suppress(FileNotFoundError):
                    self._disk.remove(_joined(folder, name))
        self._tidied.add(folder)

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        """Return an object, None if there is none."""
        try:
            return await self._threads.begin(self._read, self._path(name), length_max)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            why = f"{name} cannot be read: {error.strerror or error}"
            is_own = is_of_one_file(error) or error.errno == errno.EIO
            if is_own and self._is_there(name):
                raise UnreadableError(why) from error
            raise StoreError(why, done=False) from error

    def _read(self, path: str, length_max: int) -> bytes:
        """Read a file; a failed read is repeated, since the error may be transient."""
        for _ in range(READS_MAX - 1):
            try:
                return self._disk.read_bytes(path, length_max=length_max)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
        return self._disk.read_bytes(path, length_max=length_max)

    def _is_there(self, name: str) -> bool:
        """Return whether an object is visible; without access to its folder, none is."""
        try:
            return self._disk.exists(self._path(name))
        except OSError:
            return False

    def _names_in(self, folder: str) -> list[str]:
        names: list[str] = []
        for part in self._disk.list(_joined(self._folder, folder)):
            name = _joined(folder, part)
            if part == _LOST_AND_FOUND:
                continue
            if "." not in part:
                with suppress(NotADirectoryError):  # a foreign file
                    names += self._names_in(name)
            elif not part.startswith("."):
                names.append(name)
        return names

    async def list(self, prefix: str) -> list[str]:
        """Return the names that start with ``prefix``, sorted."""
        try:
            names = await self._threads.begin(self._names_in, prefix.rpartition("/")[0])
            return sorted(name for name in names if name.startswith(prefix))
        except NotADirectoryError as error:
            raise StoreRefusedError(
                f"{prefix} cannot be listed: a file stands where its folder should be: move it away"
            ) from error
        except OSError as error:
            raise StoreError(f"{prefix} cannot be listed: {error}", done=False) from error

    async def delete(self, name: str) -> None:
        """Forget an object."""
        path = self._path(name)
        try:
            self._disk.remove(path)
            await self._threads.begin(self._disk.sync_folder, path.rpartition("/")[0])
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{name} cannot be deleted: {error}", done=None) from error

    def _path(self, name: str) -> str:
        folder, _, last = name.rpartition("/")
        if "." in folder or "." not in last or last.startswith("."):
            raise ValueError(f"{name!r}: the last part of a name has a dot, those before have none")
        return _joined(self._folder, name)


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder and name else folder or name
