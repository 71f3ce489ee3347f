"""The names on a simulated disk: which file each names now, and which one after a power cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ripple.testing.sim.contents import Contents, Fate
from ripple.world import paths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Changes names in one step; None removes a name.
Change: TypeAlias = dict[str, Contents | None]


class Unsynced(NamedTuple):
    """A change that a power cut may undo, and the folders that it is in."""

    change: Change
    folders: tuple[str, ...]


class Names:
    """Folders, and the files in them by path.

    Invariants: applying all of ``_unsynced`` to the durable names gives ``files``; a power cut
    keeps any subset of ``_unsynced``. Folders are durable at once, as the port promises.
    """

    def __init__(self) -> None:
        self.folders: dict[str, None] = {"": None}
        self.files: dict[str, Contents] = {}
        self._durable: dict[str, Contents] = {}
        self._unsynced: list[Unsynced] = []
        self._listed: dict[str, dict[str, None]] = {}  # names in each folder, by its path

    def within(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted(self._listed.get(folder, ()))

    def used_bytes(self) -> int:
        """Return the size of all files, each counted once however many names it has."""
        files = {id(contents): contents for contents in self.files.values()}
        return sum(len(contents.data) for contents in files.values())

    def durable(self, path: str) -> bytes | None:
        """Return the least that a power cut would leave of a file, None if not even its name."""
        contents = self._durable.get(path)
        return None if contents is None else contents.durable

    def install(self, image: Mapping[str, bytes]) -> None:
        """Put files and their folders there, durably."""
        for path, data in image.items():
            names = paths.parts(path)
            for length in range(1, len(names)):
                self.add_folder("/".join(names[:length]))
            self.files[path] = self._durable[path] = Contents(data)
            self._list(path, is_there=True)

    def add_folder(self, path: str) -> None:
        """Let a folder be there, in an existing one."""
        self.folders[path] = None
        self._list(path, is_there=True)

    def remove_folder(self, path: str) -> None:
        """Let an empty folder be gone."""
        del self.folders[path]
        self._list(path, is_there=False)

    def change(self, change: Change) -> None:
        """Change names now, durably only after a sync."""
        _apply(change, self.files)
        self._unsynced.append(Unsynced(change, tuple(map(paths.folder_of, change))))
        for path, contents in change.items():
            self._list(path, is_there=contents is not None)

    def _list(self, path: str, *, is_there: bool) -> None:
        folder, _, name = path.rpartition("/")
        if is_there:
            self._listed.setdefault(folder, {})[name] = None
        else:
            self._listed.get(folder, {}).pop(name, None)

    def sync(self, folder: str) -> None:
        """Make changes in ``folder`` durable.

        A step between two folders is durable as a whole, and with it the steps that it rests on.
        """
        folders = {folder}
        synced: list[Unsynced] = []
        rest: list[Unsynced] = []
        for one in reversed(self._unsynced):
            if not folders.isdisjoint(one.folders):
                folders.update(one.folders)
                synced.append(one)
            else:
                rest.append(one)
        for one in reversed(synced):
            _apply(one.change, self._durable)
        self._unsynced = rest[::-1]

    def after_exit(self) -> Names:
        """Return the names for the next process after this one."""
        return self._formed(self.files, self._durable, self._unsynced, Contents.copy)

    def after_power_cut(self, fate: Fate) -> Names:
        """Return the names after a power cut."""
        files = dict(self._durable)
        for one in self._unsynced:
            if fate.survives():
                _apply(one.change, files)
        return self._formed(
            files, files, [], lambda contents: Contents(contents.after_power_cut(fate))
        )

    def _formed(
        self,
        files: dict[str, Contents],
        durable: dict[str, Contents],
        unsynced: list[Unsynced],
        form: Callable[[Contents], Contents],
    ) -> Names:
        # Names of one file still name one file.
        formed: dict[int, Contents] = {}

        def of(change: dict[str, Contents]) -> dict[str, Contents]:
            return {path: one(contents) for path, contents in change.items()}

        def one(contents: Contents) -> Contents:
            if id(contents) not in formed:
                formed[id(contents)] = form(contents)
            return formed[id(contents)]

        names = Names()
        names.folders = dict(self.folders)
        names.files = of(files)
        for path in (*filter(None, self.folders), *files):
            names._list(path, is_there=True)
        names._durable = of(durable)
        names._unsynced = [
            each._replace(
                change={path: contents and one(contents) for path, contents in each.change.items()}
            )
            for each in unsynced
        ]
        return names


def _apply(change: Change, files: dict[str, Contents]) -> None:
    for path, contents in change.items():
        if contents is None:
            files.pop(path, None)
        else:
            files[path] = contents
